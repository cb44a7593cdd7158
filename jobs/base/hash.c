/* Digests by OpenSSL and random bytes by the kernel: see hash.h. */
#include "jobs/base/hash.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

#define FILE_CHUNK ((size_t)256 << 10)

#define BLOCK 64 /* SHA-256 block size in bytes; HMAC pads a key to it */

struct sha256 {
	EVP_MD_CTX *context;
};

/* The key is digested once, under each of HMAC's pads; a message starts from copies. */
struct hmac {
	struct sha256 *inner, *outer, *now;
};

void hash_ignore_settings(void)
{
	if (!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
		abort();
}

/* Looked up once: EVP_sha256() would look it up, behind a lock, for each digest. */
static EVP_MD *fetched;
static pthread_once_t fetched_once = PTHREAD_ONCE_INIT;

static void fetch(void)
{
	fetched = EVP_MD_fetch(NULL, "SHA2-256", NULL);
	/* Without its digest nothing in stoker can be trusted: no caller could go on. */
	if (!fetched)
		abort();
}

struct sha256 *hash_sha256_new(void)
{
	struct sha256 *sha = mem_zero(1, sizeof *sha);

	pthread_once(&fetched_once, fetch);
	sha->context = EVP_MD_CTX_new();
	if (!sha->context || !EVP_DigestInit_ex(sha->context, fetched, NULL))
		abort();
	return sha;
}

void hash_sha256_add(struct sha256 *sha, const void *bytes, size_t len)
{
	if (len > 0 && !EVP_DigestUpdate(sha->context, bytes, len))
		abort();
}

static void begin(struct sha256 *sha)
{
	if (!EVP_DigestInit_ex(sha->context, fetched, NULL))
		abort();
}

static void finish(struct sha256 *sha, uint8_t digest[SHA256_BYTES])
{
	unsigned len = 0;

	if (!EVP_DigestFinal_ex(sha->context, digest, &len) || len != SHA256_BYTES)
		abort();
}

void hash_sha256_next(struct sha256 *sha, uint8_t digest[SHA256_BYTES])
{
	finish(sha, digest);
	begin(sha);
}

void hash_sha256_end(struct sha256 *sha, char hex[SHA256_HEX])
{
	uint8_t digest[SHA256_BYTES];

	finish(sha, digest);
	hash_hex_lower(digest, sizeof digest, hex);
	hash_sha256_freep(&sha);
}

void hash_sha256_freep(struct sha256 **sha)
{
	if (!*sha)
		return;
	EVP_MD_CTX_free((*sha)->context);
	free(*sha);
	*sha = NULL;
}

void hash_sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX])
{
	struct sha256 *sha = hash_sha256_new();

	hash_sha256_add(sha, bytes, len);
	hash_sha256_end(sha, hex);
}

struct md5 {
	EVP_MD_CTX *context;
};

static void md5_begin(struct md5 *md5)
{
	if (!EVP_DigestInit_ex(md5->context, EVP_md5(), NULL))
		abort();
}

struct md5 *hash_md5_new(void)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	struct md5 *md5;

	if (!context || !EVP_DigestInit_ex(context, EVP_md5(), NULL)) {
		EVP_MD_CTX_free(context);
		return NULL;
	}
	md5 = mem_zero(1, sizeof *md5);
	md5->context = context;
	return md5;
}

void hash_md5_add(struct md5 *md5, const void *bytes, size_t len)
{
	if (len > 0 && !EVP_DigestUpdate(md5->context, bytes, len))
		abort();
}

void hash_md5_next(struct md5 *md5, uint8_t digest[MD5_BYTES])
{
	unsigned len = 0;

	if (!EVP_DigestFinal_ex(md5->context, digest, &len) || len != MD5_BYTES)
		abort();
	md5_begin(md5);
}

void hash_md5_freep(struct md5 **md5)
{
	if (!*md5)
		return;
	EVP_MD_CTX_free((*md5)->context);
	free(*md5);
	*md5 = NULL;
}

void hash_hex_lower(const void *bytes, size_t len, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *from = bytes;
	char *to = ret_hex;

	for (const uint8_t *end = from + len; from < end; from++) {
		*to++ = digits[*from >> 4];
		*to++ = digits[*from & 15];
	}
	*to = '\0';
}

static uint8_t nibble(char digit)
{
	if (digit >= '0' && digit <= '9')
		return (uint8_t)(digit - '0');
	if (digit < 'a' || digit > 'f')
		abort();
	return (uint8_t)(digit - 'a' + 10);
}

void hash_sha256_parse(const char *hex, uint8_t digest[SHA256_BYTES])
{
	if (strlen(hex) != SHA256_HEX - 1)
		abort();
	for (size_t i = 0; i < SHA256_BYTES; i++)
		digest[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

void hash_base64(const void *bytes, size_t len, char *ret)
{
	EVP_EncodeBlock((unsigned char *)ret, bytes, (int)len);
}

void hash_sha256_base64(const char *hex, char ret[SHA256_BASE64])
{
	uint8_t digest[SHA256_BYTES];

	hash_sha256_parse(hex, digest);
	hash_base64(digest, sizeof digest, ret);
}

bool hash_base64_hex(const char *base64, char ret[SHA256_HEX])
{
	unsigned char digest[SHA256_BYTES + 1]; /* the padding is decoded too */

	ret[0] = '\0';
	if (strlen(base64) != SHA256_BASE64 - 1 ||
	    EVP_DecodeBlock(digest, (const unsigned char *)base64, SHA256_BASE64 - 1) !=
		    (int)sizeof digest)
		return false;
	hash_hex_lower(digest, SHA256_BYTES, ret);
	return true;
}

void hash_sha1_hex(const void *bytes, size_t len, char hex[SHA1_HEX])
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;

	if (!EVP_Digest(bytes, len, digest, &size, EVP_sha1(), NULL) || 2 * size != SHA1_HEX - 1)
		abort();
	hash_hex_lower(digest, size, hex);
}

struct hmac *hash_hmac_new(void)
{
	struct hmac *hmac = mem_zero(1, sizeof *hmac);

	hmac->inner = hash_sha256_new();
	hmac->outer = hash_sha256_new();
	hmac->now = hash_sha256_new();
	return hmac;
}

void hash_hmac_freep(struct hmac **hmac)
{
	if (!*hmac)
		return;
	hash_sha256_freep(&(*hmac)->inner); /* OpenSSL wipes the states that it frees */
	hash_sha256_freep(&(*hmac)->outer);
	hash_sha256_freep(&(*hmac)->now);
	free(*hmac);
	*hmac = NULL;
}

static void pad(struct sha256 *sha, const uint8_t key[BLOCK], uint8_t with)
{
	uint8_t block[BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = key[i] ^ with;
	begin(sha);
	hash_sha256_add(sha, block, BLOCK);
	explicit_bzero(block, sizeof block);
}

void hash_hmac_key(struct hmac *hmac, const void *key, size_t len)
{
	uint8_t block[BLOCK] = { 0 };

	if (len > BLOCK) {
		begin(hmac->now); /* may still hold the state of an earlier message */
		hash_sha256_add(hmac->now, key, len);
		hash_sha256_next(hmac->now, block);
	} else if (len > 0) {
		memcpy(block, key, len);
	}
	pad(hmac->inner, block, 0x36);
	pad(hmac->outer, block, 0x5c);
	explicit_bzero(block, sizeof block);
}

/* Digests the padded key followed by `bytes`. */
static void keyed(struct sha256 *now, const struct sha256 *key, const void *bytes, size_t len,
		  uint8_t digest[SHA256_BYTES])
{
	if (!EVP_MD_CTX_copy_ex(now->context, key->context))
		abort();
	hash_sha256_add(now, bytes, len);
	finish(now, digest);
}

void hash_hmac_sign(struct hmac *hmac, const void *bytes, size_t len, uint8_t mac[SHA256_BYTES])
{
	keyed(hmac->now, hmac->inner, bytes, len, mac);
	keyed(hmac->now, hmac->outer, mac, SHA256_BYTES, mac);
}

int hash_sha256_range(int fd, uint64_t from, uint64_t len, char hex[SHA256_HEX], struct err **err)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	AUTO(auto_free) char *buffer = mem_alloc(FILE_CHUNK);

	while (len > 0) {
		size_t want = len < FILE_CHUNK ? (size_t)len : FILE_CHUNK;
		ssize_t got = fs_read_full(fd, buffer, want, (int64_t)from);

		if (got < 0)
			return fs_error(err, errno, "cannot read the file");
		if ((size_t)got < want)
			return err_set(err, EXIT_REFUSED,
				       "the file became shorter while it was read");
		hash_sha256_add(sha, buffer, want);
		from += want;
		len -= want;
	}
	hash_sha256_end(TAKE(sha), hex);
	return 0;
}

int hash_sha256_file(const char *path, char hex[SHA256_HEX], uint64_t *ret_size, struct err **err)
{
	AUTO(auto_close) int fd = fs_open_regular(path, err);
	AUTO(auto_free) char *buffer = NULL;
	AUTO(hash_sha256_freep) struct sha256 *sha = NULL;
	uint64_t size = 0;
	ssize_t got;

	if (fd < 0)
		return -1;
	buffer = mem_alloc(FILE_CHUNK);
	sha = hash_sha256_new();
	while ((got = fs_read_full(fd, buffer, FILE_CHUNK, -1)) > 0) {
		hash_sha256_add(sha, buffer, (size_t)got);
		size += (uint64_t)got;
	}
	if (got < 0)
		return fs_error(err, errno, "cannot read '%s'", path);
	hash_sha256_end(TAKE(sha), hex);
	*ret_size = size;
	return 0;
}

void hash_random_bytes(void *bytes, size_t len)
{
	char *at = bytes;

	while (len > 0) {
		ssize_t got = getrandom(at, len, 0);

		if (got < 0 && errno != EINTR)
			abort();
		if (got > 0) {
			at += got;
			len -= (size_t)got;
		}
	}
}

void hash_random_hex(size_t len, char *ret_hex)
{
	AUTO(auto_free) uint8_t *bytes = mem_alloc(len);

	hash_random_bytes(bytes, len);
	hash_hex_lower(bytes, len, ret_hex);
}
