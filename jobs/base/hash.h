/*
 * SHA-256, the only digest that stoker trusts, and the MAC built on it. Hex is lower
 * case. The one home of OpenSSL's headers below aws/.
 *
 * What goes wrong in here is memory or a broken OpenSSL: the process ends.
 */
#ifndef STK_BASE_HASH_H
#define STK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

#define SHA256_BYTES  32
#define SHA256_HEX    65 /* 64 digits and a NUL */
#define SHA256_BASE64 45 /* 44 characters and a NUL */
#define SHA1_HEX      41

struct sha256; /* a digest in the making */

struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *sha, const void *bytes, size_t len);
/* Ends the digest and frees `sha`. */
void sha256_end(struct sha256 *sha, char hex[SHA256_HEX]);
void sha256_freep(struct sha256 **sha); /* for AUTO(); NULL is fine */

/* Ends the digest as bytes; `sha` is as new, for those who need one after another. */
void sha256_next(struct sha256 *sha, uint8_t digest[SHA256_BYTES]);
void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX]);

/* Digest and size of a regular file, read once from start to end. */
int sha256_file(const char *path, char hex[SHA256_HEX], uint64_t *ret_size, struct err **err);

/* `len` bytes as 2 * len digits and a NUL. */
void hex_lower(const void *bytes, size_t len, char *ret_hex);

/* What `hex` says, as S3's checksum headers want it. Other than 64 digits of hex in lower
 * case is a mistake of the caller's: the process ends. */
void sha256_base64(const char *hex, char ret[SHA256_BASE64]);

/* MD5, as the tags of S3's objects are made of it; it proves nothing against malice. */
#define MD5_BYTES 16
struct md5;
struct md5 *md5_new(void); /* NULL: this machine's OpenSSL does not do it (FIPS) */
void md5_add(struct md5 *md5, const void *bytes, size_t len);
void md5_next(struct md5 *md5, uint8_t digest[MD5_BYTES]); /* `md5` is as new then */
void md5_freep(struct md5 **md5);                          /* for AUTO(); NULL is fine */

/* SHA-1 names files of other tools and proves nothing. */
void sha1_hex(const void *bytes, size_t len, char hex[SHA1_HEX]);

/* HMAC-SHA-256 (RFC 2104) with one key after another, each for any number of messages. */
struct hmac;

struct hmac *hmac_new(void);         /* hmac_key() comes first */
void hmac_freep(struct hmac **hmac); /* for AUTO(); wipes what is known of the key */
void hmac_key(struct hmac *hmac, const void *key, size_t len);
void hmac_sign(struct hmac *hmac, const void *bytes, size_t len, uint8_t mac[SHA256_BYTES]);

/* `len` random bytes from the kernel. */
void random_bytes(void *bytes, size_t len);

#endif
