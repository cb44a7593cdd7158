/*
 * SHA-256, the only digest that stoker trusts, and the MAC built on it. Hex is lower case. No other
 * file includes OpenSSL's headers.
 *
 * The only failures here are lack of memory and a broken OpenSSL: both abort the process.
 */
#ifndef STK_BASE_HASH_H
#define STK_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

#define SHA256_BYTES  32
#define SHA256_HEX    65 /* 64 digits and a NUL */
#define SHA256_BASE64 45 /* 44 characters and a NUL */
#define SHA1_HEX      41

/* OpenSSL reads no settings of the machine from now on, which may name modules to load. To be
 * called before anything else here. */
void hash_ignore_settings(void);

struct sha256; /* a digest in progress */

struct sha256 *hash_sha256_new(void);
void hash_sha256_add(struct sha256 *sha, const void *bytes, size_t len);
/* Ends the digest and frees `sha`. */
void hash_sha256_end(struct sha256 *sha, char hex[SHA256_HEX]);
void hash_sha256_freep(struct sha256 **sha); /* for AUTO(); NULL is fine */

/* Ends the digest as bytes and resets `sha` for the next one. */
void hash_sha256_next(struct sha256 *sha, uint8_t digest[SHA256_BYTES]);
void hash_sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX]);

/* Digest and size of a regular file, read once from start to end. */
int hash_sha256_file(const char *path, char hex[SHA256_HEX], uint64_t *ret_size, struct err **err);
/* Digest of `len` bytes of an open file from `from` on; an error if it is shorter. */
int hash_sha256_range(int fd, uint64_t from, uint64_t len, char hex[SHA256_HEX], struct err **err);

/* `len` bytes as 2 * len digits and a NUL. */
void hash_hex_lower(const void *bytes, size_t len, char *ret_hex);

/* The digest `hex` as bytes, or in base64 as S3's checksum headers expect it. Anything but 64
 * lower-case hex digits is a bug of the caller and aborts the process. */
void hash_sha256_parse(const char *hex, uint8_t digest[SHA256_BYTES]);
void hash_sha256_base64(const char *hex, char ret[SHA256_BASE64]);
/* The digest that S3 writes in base64, as hex; false, and "" in `ret`, if it is none. */
bool hash_base64_hex(const char *base64, char ret[SHA256_HEX]);
/* `ret` has room for 4 characters for each 3 bytes begun, and a NUL. */
void hash_base64(const void *bytes, size_t len, char *ret);

/* MD5, from which S3 makes the tags of its objects; not secure against malice. */
#define MD5_BYTES 16
struct md5;
struct md5 *hash_md5_new(void); /* NULL if this machine's OpenSSL does not offer MD5 (FIPS) */
void hash_md5_add(struct md5 *md5, const void *bytes, size_t len);
void hash_md5_next(struct md5 *md5, uint8_t digest[MD5_BYTES]); /* resets `md5` */
void hash_md5_freep(struct md5 **md5);                          /* for AUTO(); NULL is fine */

/* SHA-1, only for the file names of other tools; not secure. */
void hash_sha1_hex(const void *bytes, size_t len, char hex[SHA1_HEX]);

/* HMAC-SHA-256 (RFC 2104) with one key after another, each for any number of messages. */
struct hmac;

struct hmac *hash_hmac_new(void);         /* call hash_hmac_key() first */
void hash_hmac_freep(struct hmac **hmac); /* for AUTO(); wipes all state derived from the key */
void hash_hmac_key(struct hmac *hmac, const void *key, size_t len);
void hash_hmac_sign(struct hmac *hmac, const void *bytes, size_t len, uint8_t mac[SHA256_BYTES]);

/* `len` random bytes from the kernel. */
void hash_random_bytes(void *bytes, size_t len);
/* The same as 2 * `len` hex digits and a NUL, for names that no other process has. */
void hash_random_hex(size_t len, char *ret_hex);
#define HASH_NAME_HEX 17 /* room for the digits of 8 bytes: enough for a name */

#endif
