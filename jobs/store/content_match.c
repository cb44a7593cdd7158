/* Compares files and objects by content: see content_match.h. */
#include "jobs/store/content_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"

#define CHUNK   ((size_t)1 << 20)
#define MD5_HEX (2 * MD5_BYTES)
#define MIB     ((uint64_t)1 << 20)

/* Part sizes: ours, and the defaults of other programs and libraries. Some raise theirs to a
 * power of two times 8 MiB for large files. */
static const uint64_t part_sizes[] = {
	16 * MIB,  8 * MIB,   5 * MIB,  10 * MIB,  15 * MIB,  20 * MIB,   25 * MIB,
	32 * MIB,  50 * MIB,  64 * MIB, 100 * MIB, 128 * MIB, 256 * MIB,  512 * MIB,
	MIB << 10, MIB << 11, 6 * MIB,  7 * MIB,   12 * MIB,  100000000u, 10000000u,
};

/* Parses an ETag into its hex digits and its number of parts (0: one piece). */
static bool parse_tag(const char *tag, char hex[MD5_HEX + 1], uint64_t *ret_parts)
{
	const char *end;
	size_t len;

	tag += *tag == '"';
	len = strspn(tag, "0123456789abcdef");
	if (len != MD5_HEX)
		return false;
	memcpy(hex, tag, MD5_HEX);
	hex[MD5_HEX] = '\0';
	end = tag + len;
	*ret_parts = 0;
	if (*end == '-') {
		char *rest;

		*ret_parts = strtoull(end + 1, &rest, 10);
		end = rest;
		if (*ret_parts == 0)
			return false;
	}
	return strcmp(end, "\"") == 0 || *end == '\0';
}

static int read_error(const struct transfer_backend_row *row, int os_errno, struct err **err)
{
	return fs_error(err, os_errno, "cannot read '%s'", row->key);
}

/* Computes the MD5 of `len` bytes from `at`. Returns 1, 0 if the file ends before, -1 with an
 * error. */
static int md5_stretch(struct transfer_backend *backend, const struct transfer_backend_row *row,
		       int fd, struct md5 *md5, uint64_t at, uint64_t len,
		       uint8_t digest[MD5_BYTES], struct err **err)
{
	AUTO(auto_free) char *bytes = mem_alloc(len < CHUNK ? (size_t)len + 1 : CHUNK);

	while (len > 0) {
		size_t want = len < CHUNK ? (size_t)len : CHUNK;
		ssize_t got = fs_read_full(fd, bytes, want, (int64_t)at);

		if (got < 0)
			return read_error(row, errno, err);
		if ((size_t)got < want)
			return 0;
		hash_md5_add(md5, bytes, want);
		at += want;
		len -= want;
		if (len > 0 && backend)
			backend->kind->turn(backend, 0);
	}
	hash_md5_next(md5, digest);
	return 1;
}

/* Returns 1 if the file's tag, computed with parts of this size, is `hex`, else 0; -1 with an
 * error. */
static int same_parts(struct transfer_backend *backend, const struct transfer_backend_row *row,
		      int fd, uint64_t part, const char *hex, struct err **err)
{
	AUTO(hash_md5_freep) struct md5 *md5 = hash_md5_new(), *all = hash_md5_new();
	uint8_t digest[MD5_BYTES];
	char found[MD5_HEX + 1];

	if (!md5 || !all)
		return 0;
	for (uint64_t at = 0; at < row->size; at += part) {
		uint64_t len = row->size - at < part ? row->size - at : part;
		int done = md5_stretch(backend, row, fd, md5, at, len, digest, err);

		if (done <= 0)
			return done;
		hash_md5_add(all, digest, sizeof digest);
	}
	hash_md5_next(all, digest);
	hash_hex_lower(digest, sizeof digest, found);
	return strcmp(found, hex) == 0;
}

static int same_by_tag(struct transfer_backend *backend, const struct transfer_backend_row *row,
		       int fd, struct err **err)
{
	AUTO(hash_md5_freep) struct md5 *md5 = NULL;
	char hex[MD5_HEX + 1], found[MD5_HEX + 1];
	uint8_t digest[MD5_BYTES];
	uint64_t parts;
	int done;

	if (!parse_tag(row->tag, hex, &parts))
		return 0;
	for (size_t i = 0; parts > 0 && i < STK_LENGTH(part_sizes); i++) {
		if ((row->size + part_sizes[i] - 1) / part_sizes[i] != parts)
			continue;
		done = same_parts(backend, row, fd, part_sizes[i], hex, err);
		if (done != 0)
			return done;
		if (parts == 1)
			break; /* with one part, every part size gives the same tag */
	}
	if (parts > 0)
		return 0;
	md5 = hash_md5_new();
	if (!md5)
		return 0;
	done = md5_stretch(backend, row, fd, md5, 0, row->size, digest, err);
	if (done <= 0)
		return done;
	hash_hex_lower(digest, sizeof digest, found);
	return strcmp(found, hex) == 0;
}

static int same_bytes(struct transfer_backend *backend, const struct transfer_backend_row *row,
		      int fd, struct err **err)
{
	AUTO(auto_close) int other = backend->kind->open(backend);
	AUTO(auto_free) char *a = NULL, *b = NULL;

	if (other < 0)
		return 0; /* the fetch that follows reports the error */
	a = mem_alloc(CHUNK);
	b = mem_alloc(CHUNK);
	for (uint64_t at = 0;;) {
		ssize_t in_a = fs_read_full(fd, a, CHUNK, (int64_t)at), in_b;

		if (in_a < 0)
			return read_error(row, errno, err);
		in_b = fs_read_full(other, b, CHUNK, (int64_t)at);
		if (in_b < 0)
			return read_error(row, errno, err);
		if (in_a != in_b || memcmp(a, b, (size_t)in_a) != 0)
			return 0;
		if (in_a == 0)
			return 1;
		at += (uint64_t)in_a;
	}
}

int content_match_file(struct transfer_backend *backend, const struct transfer_backend_row *row,
		       int fd, struct err **err)
{
	if (row->size == 0)
		return 1;
	return backend->kind->open ? same_bytes(backend, row, fd, err)
				   : same_by_tag(backend, row, fd, err);
}

int content_match_tag(int fd, const char *key, uint64_t size, const char *tag, struct err **err)
{
	struct transfer_backend_row row = { .key = key, .size = size };

	snprintf(row.tag, sizeof row.tag, "%s", tag);
	return same_by_tag(NULL, &row, fd, err);
}
