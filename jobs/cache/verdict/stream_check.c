/*
 * Checks for truncated streams: see stream_check.h. Formats: RFC 1950 (zlib, read by libraries) and
 * RFC 8878 (zstd: magic, frame header, blocks with a 3-byte header each, an optional 4-byte
 * checksum).
 *
 * libdeflate inflates a stream that is in memory as a whole about three times as fast as zlib,
 * checksum included. So it is tried first on small entries, of which a cache has tens of thousands.
 * Its success is a proof; on any other result zlib, which reads piece by piece and can tell
 * truncation from damage, starts again from the beginning.
 */
#include "jobs/cache/verdict/stream_check.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK 65536
#define MAGIC 4      /* bytes that tell the formats apart */
#define WHOLE 262144 /* inflated bytes of a stream that libdeflate may try */

struct stream_check_reader {
	int fd;
	unsigned char bytes[CHUNK];
	size_t at, have;
	bool failed; /* errno has the cause */
};

/* Reads more bytes after the present ones; false at the end of the file. */
static bool read_more(struct stream_check_reader *in)
{
	ssize_t got;

	do
		got = read(in->fd, in->bytes + in->have, sizeof in->bytes - in->have);
	while (got < 0 && errno == EINTR);
	in->failed = got < 0;
	in->have += got > 0 ? (size_t)got : 0;
	return got > 0;
}

/* Replaces the buffer by the next bytes; false at the end of the file. */
static bool refill(struct stream_check_reader *in)
{
	in->at = in->have = 0;
	return read_more(in);
}

static bool take_bytes(struct stream_check_reader *in, unsigned char *to, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (in->at == in->have && !refill(in))
			return false;
		to[i] = in->bytes[in->at++];
	}
	return true;
}

static bool skip(struct stream_check_reader *in, uint64_t len)
{
	while (len > 0) {
		size_t step;

		if (in->at == in->have && !refill(in))
			return false;
		step = in->have - in->at;
		if (step > len)
			step = (size_t)len;
		in->at += step;
		len -= step;
	}
	return true;
}

/* True if the reader's buffer holds the whole stream, from its start, and it is valid. */
static bool is_whole_in_memory(const struct stream_check_reader *in)
{
	struct libdeflate_decompressor *inflater;
	unsigned char out[WHOLE];
	size_t read, written;
	bool whole;

	if (in->have == sizeof in->bytes)
		return false; /* the file probably goes on */
	inflater = libdeflate_alloc_decompressor();
	whole = inflater && libdeflate_zlib_decompress_ex(inflater, in->bytes, in->have, out, WHOLE,
							  &read, &written) == LIBDEFLATE_SUCCESS;
	libdeflate_free_decompressor(inflater);
	return whole;
}

/* NULL if the zlib stream is whole, else its fault. */
static const char *zlib_fault(struct stream_check_reader *in)
{
	unsigned char out[CHUNK];
	z_stream z = { 0 };
	int rc = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return "the decompressor could not start";
	do {
		if (in->at == in->have && !refill(in))
			break;
		z.next_in = in->bytes + in->at;
		z.avail_in = (uInt)(in->have - in->at);
		z.avail_out = 1; /* any value but 0, which would mean a full buffer */
		while (rc == Z_OK && (z.avail_in > 0 || z.avail_out == 0)) {
			z.next_out = out;
			z.avail_out = sizeof out;
			rc = inflate(&z, Z_NO_FLUSH);
			if (rc == Z_BUF_ERROR)
				rc = Z_OK; /* more input is needed */
		}
		in->at = in->have;
	} while (rc == Z_OK);
	inflateEnd(&z);
	if (rc == Z_STREAM_END)
		return NULL;
	return rc == Z_OK ? "cut off before its end" : "damaged bytes";
}

static const char *zstd_header(struct stream_check_reader *in, bool *ret_checksum)
{
	static const unsigned dictionary_bytes[] = { 0, 1, 2, 4 };
	static const unsigned size_bytes[] = { 0, 2, 4, 8 };
	unsigned char descriptor;
	unsigned skipped;

	if (!take_bytes(in, &descriptor, 1))
		return "cut off in its header";
	if (descriptor & 0x08)
		return "damaged header";
	*ret_checksum = descriptor & 0x04;
	skipped = dictionary_bytes[descriptor & 3] + size_bytes[descriptor >> 6];
	if (!(descriptor & 0x20))
		skipped++; /* window descriptor */
	else if (descriptor >> 6 == 0)
		skipped++; /* single segment: a size of one byte */
	return skip(in, skipped) ? NULL : "cut off in its header";
}

/* The same for a zstd frame; `in` is behind the magic. */
static const char *zstd_fault(struct stream_check_reader *in)
{
	bool checksum = false, last = false;
	const char *fault = zstd_header(in, &checksum);

	while (!fault && !last) {
		unsigned char head[3];
		uint32_t block, type, size;

		if (!take_bytes(in, head, sizeof head))
			return "cut off before its end";
		block = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16;
		last = block & 1;
		type = block >> 1 & 3;
		size = type == 1 ? 1 : block >> 3; /* 1: one byte, repeated */
		if (type == 3)
			return "damaged bytes";
		if (!skip(in, size))
			return "cut off before its end";
	}
	if (!fault && checksum && !skip(in, 4))
		return "cut off before its end";
	return fault;
}

int stream_check_inspect(int fd, enum entry_state *ret_state, const char **ret_why)
{
	struct stream_check_reader in;
	const char *fault;

	/* `in` is not zeroed as a whole: that would take as long as reading a small entry. */
	in.fd = fd;
	in.at = in.have = 0;
	in.failed = false;
	*ret_why = NULL;
	if (!refill(&in)) {
		*ret_state = ENTRY_EMPTY;
		*ret_why = "no bytes";
		return in.failed ? -1 : 0;
	}
	while (in.have < MAGIC && read_more(&in))
		; /* a read may return fewer bytes than there are */
	if (in.have >= MAGIC && memcmp(in.bytes, "\x28\xb5\x2f\xfd", MAGIC) == 0) {
		in.at = MAGIC;
		fault = zstd_fault(&in);
	} else if (in.bytes[0] == 0x78) {
		fault = is_whole_in_memory(&in) ? NULL : zlib_fault(&in);
	} else {
		fault = "neither a zlib nor a zstd stream";
	}
	if (in.failed)
		return -1;
	*ret_state = fault ? ENTRY_PARTIAL : ENTRY_DONE;
	*ret_why = fault;
	return 0;
}
