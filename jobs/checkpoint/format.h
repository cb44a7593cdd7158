/*
 * Checks whether a file is whole: what the usual formats say about their own length, from a
 * few small reads. The bytes come from outside, so every number is bounded before it is used.
 * Contents are never unpickled, decompressed or run.
 *
 *   .safetensors  8 bytes of header length, the header's JSON, and offsets that
 *                 cover the rest of the file exactly
 *   zip           (torch.save since 1.6, npz) the end record and the central
 *                 directory, each entry of which lies inside and has its header
 *   .distcp       zips one behind the other, each checked like this, from the end
 *                 back to the start
 *   npy           header and, for plain types, shape × size of an element
 *   JSON          parses, as Python writes it: NaN and Infinity are accepted
 *   HDF5          the end of file that its superblock names
 *   pickle        the frames of protocol 4 and later end with the file
 *   manifest.ocdbt (Orbax) its own length and checksum
 */
#ifndef STK_CHECKPOINT_FORMAT_H
#define STK_CHECKPOINT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/checkpoint/tree.h"

/* Longer JSON is not parsed; only its first and last characters are looked at. */
#define FORMAT_JSON_MAX ((size_t)32 << 20)

/* Returns 1 if the file is whole, 0 if its format does not say, -1 if it is not; then `why`
 * holds a clause without the file's name ("is cut off"). `name` decides which format it must
 * have. */
int format_prove(int fd, uint64_t size, const char *name, struct sb *why);

/* Check one format; results as above, but never 0. */
int format_safetensors(int fd, uint64_t size, struct sb *why);
/* `chain`: other zips may precede it. */
int format_zip(int fd, uint64_t size, bool chain, struct sb *why);

/* Parses a npy header at the start of `bytes`. Returns 1 with the offset of the data and the
 * number of bytes that follow, 0 if that cannot be told, -1 if it is not a npy header. */
int format_npy(const char *bytes, size_t len, uint64_t *ret_data, uint64_t *ret_bytes);

/* Parses JSON as Python writes it; integers beyond 53 bits are rounded. Returns NULL if it is
 * not valid. */
json_t *format_json(const char *text, size_t len);

static inline uint64_t le64(const unsigned char *at)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

static inline uint32_t le32(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static inline uint32_t le16(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

#endif
