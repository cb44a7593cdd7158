/*
 * SHA-256, the only digest of stoker. Hex is lower case. The one home of
 * OpenSSL's headers below aws/.
 */
#ifndef STK_BASE_HASH_H
#define STK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

#define SHA256_HEX 65 /* 64 digits and a NUL */

struct sha256; /* a digest in the making */

struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *sha, const void *bytes, size_t len);
/* Ends the digest and frees `sha`. */
void sha256_end(struct sha256 *sha, char hex[SHA256_HEX]);
void sha256_freep(struct sha256 **sha); /* for AUTO(); NULL is fine */

void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX]);

/* Digest and size of a regular file, read once from start to end. */
int sha256_file(const char *path, char hex[SHA256_HEX], uint64_t *ret_size, struct err **err);

/* `len` random bytes from the kernel. */
void random_bytes(void *bytes, size_t len);

#endif
