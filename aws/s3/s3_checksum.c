/*
 * The checksums that S3 keeps of objects, computed over received bytes: SHA-256, of the whole or
 * of parts, and the three CRCs, which official clients and S3 itself add.
 *
 * All three CRCs are reflected, begin and end with all bits inverted, and are written with the
 * highest byte first: one routine with eight tables for each polynomial serves them. Source: the
 * catalogue of parametrised CRC algorithms (CRC-32/ISO-HDLC, CRC-32/ISCSI, CRC-64/NVME).
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/s3/s3_request.h"
#include "jobs/base/fs/fs.h"

#define READ_BYTES ((size_t)256 << 10)

struct crc_tables {
	bool made;
	uint64_t of[8][256];
};

static const struct {
	const char *header;
	enum s3_algorithm algorithm;
	uint64_t polynomial; /* reflected; 0: not a CRC */
	int bytes;
} kinds[] = {
	{ "x-amz-checksum-sha256", S3_SHA256, 0, 32 },
	{ "x-amz-checksum-crc64nvme", S3_CRC64NVME, 0x9a6c9329ac4bc9b5, 8 },
	{ "x-amz-checksum-crc32c", S3_CRC32C, 0x82f63b78, 4 },
	{ "x-amz-checksum-crc32", S3_CRC32, 0xedb88320, 4 },
};

static size_t kind_of(enum s3_algorithm algorithm)
{
	size_t kind = 0;

	while (kinds[kind].algorithm != algorithm)
		kind++;
	return kind;
}

static const struct crc_tables *tables_of(size_t kind)
{
	static _Thread_local struct crc_tables all[STK_LENGTH(kinds)];
	struct crc_tables *tables = &all[kind];

	if (tables->made)
		return tables;
	for (unsigned byte = 0; byte < 256; byte++) {
		uint64_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? (crc >> 1) ^ kinds[kind].polynomial : crc >> 1;
		tables->of[0][byte] = crc;
	}
	for (unsigned byte = 0; byte < 256; byte++)
		for (int i = 1; i < 8; i++) {
			uint64_t before = tables->of[i - 1][byte];

			tables->of[i][byte] = tables->of[0][before & 255] ^ (before >> 8);
		}
	tables->made = true;
	return tables;
}

static uint64_t crc_add(const struct crc_tables *tables, uint64_t crc, const unsigned char *bytes,
			size_t len)
{
	for (; len >= 8; len -= 8, bytes += 8) {
		uint64_t word, next = 0;

		memcpy(&word, bytes, sizeof word);
		word = le64toh(word) ^ crc;
		for (int i = 0; i < 8; i++)
			next ^= tables->of[7 - i][(word >> (8 * i)) & 255];
		crc = next;
	}
	for (; len > 0; len--, bytes++)
		crc = tables->of[0][(crc ^ *bytes) & 255] ^ (crc >> 8);
	return crc;
}

void s3_checksum_read(const struct http_reply *reply, struct s3_checksum *ret)
{
	char type[32] = "", part[32] = "";

	*ret = (struct s3_checksum){ 0 };
	s3_header_text(reply, "x-amz-checksum-type", type, sizeof type);
	for (size_t i = 0; i < STK_LENGTH(kinds) && ret->algorithm == S3_NO_CHECKSUM; i++) {
		s3_header_text(reply, kinds[i].header, ret->value, sizeof ret->value);
		if (ret->value[0])
			ret->algorithm = kinds[i].algorithm;
	}
	if (strcmp(type, "COMPOSITE") != 0 && !strchr(ret->value, '-'))
		return;
	s3_header_text(reply, S3_PART_HEADER, part, sizeof part);
	errno = 0;
	ret->of_part = strtoull(part, NULL, 10);
	/* A checksum of parts cannot be verified if the size of the parts is unknown. */
	if (errno || ret->algorithm != S3_SHA256 || ret->of_part == 0)
		ret->algorithm = S3_NO_CHECKSUM;
}

/* --- computing --- */

/* State of one pass over the content; the result is in S3's notation. */
struct sum {
	const struct s3_checksum *checksum;
	const struct crc_tables *tables;
	int bytes;
	uint64_t crc;
	struct sha256 *sha, *of_digests;
	uint64_t in_part, parts;
};

static void sum_begin(struct sum *sum, const struct s3_checksum *checksum)
{
	size_t kind = kind_of(checksum->algorithm);

	*sum = (struct sum){ .checksum = checksum, .bytes = kinds[kind].bytes };
	if (kinds[kind].polynomial) {
		sum->tables = tables_of(kind);
		sum->crc = sum->bytes == 8 ? UINT64_MAX : UINT32_MAX;
		return;
	}
	sum->sha = hash_sha256_new();
	if (checksum->of_part)
		sum->of_digests = hash_sha256_new();
}

static void end_part(struct sum *sum)
{
	uint8_t digest[SHA256_BYTES];

	hash_sha256_next(sum->sha, digest);
	hash_sha256_add(sum->of_digests, digest, sizeof digest);
	sum->in_part = 0;
	sum->parts++;
}

static void sum_add(struct sum *sum, const char *bytes, size_t len)
{
	if (sum->tables) {
		sum->crc = crc_add(sum->tables, sum->crc, (const unsigned char *)bytes, len);
		return;
	}
	while (len > 0) {
		uint64_t take = len;

		if (sum->of_digests && take > sum->checksum->of_part - sum->in_part)
			take = sum->checksum->of_part - sum->in_part;
		hash_sha256_add(sum->sha, bytes, (size_t)take);
		bytes += take;
		len -= (size_t)take;
		sum->in_part += take;
		if (sum->of_digests && sum->in_part == sum->checksum->of_part)
			end_part(sum);
	}
}

static bool sum_matches(struct sum *sum)
{
	char text[64];
	uint8_t digest[SHA256_BYTES];

	if (sum->tables) {
		uint64_t value = sum->bytes == 8 ? ~sum->crc : (~sum->crc & UINT32_MAX) << 32;
		uint64_t big = htobe64(value);

		hash_base64(&big, (size_t)sum->bytes, text);
		return strcmp(text, sum->checksum->value) == 0;
	}
	if (sum->of_digests && sum->in_part > 0)
		end_part(sum);
	hash_sha256_next(sum->of_digests ? sum->of_digests : sum->sha, digest);
	hash_base64(digest, sizeof digest, text);
	if (sum->checksum->of_part)
		snprintf(text + strlen(text), sizeof text - strlen(text), "-%" PRIu64, sum->parts);
	return strcmp(text, sum->checksum->value) == 0;
}

static void sum_release(struct sum *sum)
{
	hash_sha256_freep(&sum->sha);
	hash_sha256_freep(&sum->of_digests);
}

int s3_checksum_bytes(const struct s3_checksum *checksum, const void *bytes, size_t len)
{
	AUTO(sum_release) struct sum sum = { 0 };

	if (checksum->algorithm == S3_NO_CHECKSUM)
		return 1;
	sum_begin(&sum, checksum);
	sum_add(&sum, bytes, len);
	return sum_matches(&sum);
}

int s3_checksum_file(const struct s3_checksum *checksum, int fd, uint64_t size)
{
	AUTO(sum_release) struct sum sum = { 0 };
	AUTO(auto_free) char *buffer = NULL;
	uint64_t at = 0;

	if (checksum->algorithm == S3_NO_CHECKSUM)
		return 1;
	buffer = mem_alloc(READ_BYTES);
	sum_begin(&sum, checksum);
	while (at < size) {
		size_t want = size - at < READ_BYTES ? (size_t)(size - at) : READ_BYTES;
		ssize_t got = fs_read_full(fd, buffer, want, (int64_t)at);

		if (got < 0)
			return -1;
		if (got == 0)
			return 0;
		sum_add(&sum, buffer, (size_t)got);
		at += (uint64_t)got;
	}
	return sum_matches(&sum);
}
