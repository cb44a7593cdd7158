/* SHA-256 by OpenSSL and random bytes by the kernel: see hash.h. */
#include "jobs/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "jobs/base/fs.h"

#define FILE_CHUNK ((size_t)256 << 10)

struct sha256 {
	EVP_MD_CTX *context;
};

struct sha256 *sha256_new(void)
{
	struct sha256 *sha = mem_zero(1, sizeof *sha);

	sha->context = EVP_MD_CTX_new();
	/* Without its digest nothing in stoker can be trusted: no caller could go on. */
	if (!sha->context || !EVP_DigestInit_ex(sha->context, EVP_sha256(), NULL))
		abort();
	return sha;
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t len)
{
	if (len > 0 && !EVP_DigestUpdate(sha->context, bytes, len))
		abort();
}

void sha256_end(struct sha256 *sha, char hex[SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (!EVP_DigestFinal_ex(sha->context, digest, &len) || len * 2 != SHA256_HEX - 1)
		abort();
	for (unsigned i = 0; i < len; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[SHA256_HEX - 1] = '\0';
	sha256_freep(&sha);
}

void sha256_freep(struct sha256 **sha)
{
	if (!*sha)
		return;
	EVP_MD_CTX_free((*sha)->context);
	free(*sha);
	*sha = NULL;
}

void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX])
{
	struct sha256 *sha = sha256_new();

	sha256_add(sha, bytes, len);
	sha256_end(sha, hex);
}

int sha256_file(const char *path, char hex[SHA256_HEX], uint64_t *ret_size, struct err **err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO(auto_free) char *buffer = NULL;
	AUTO(sha256_freep) struct sha256 *sha = NULL;
	struct stat st;
	uint64_t size = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fs_error(err, errno, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return fs_error(err, EISDIR, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EXIT_REFUSED, "cannot read '%s': not a regular file", path);
	buffer = mem_alloc(FILE_CHUNK);
	sha = sha256_new();
	while ((got = read(fd, buffer, FILE_CHUNK)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fs_error(err, errno, "cannot read '%s'", path);
		sha256_add(sha, buffer, (size_t)got);
		size += (uint64_t)got;
	}
	sha256_end(TAKE(sha), hex);
	*ret_size = size;
	return 0;
}

void random_bytes(void *bytes, size_t len)
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
