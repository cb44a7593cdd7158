/*
 * The stored form of readings: a file of blocks, each of which says which bytes of the log it has
 * read, and is whole or not by its sum. It is made from the log and nothing else: what is lost or
 * damaged is read from the log again (series_read.h), with the same result but for the times.
 *
 * A block, numbers little-endian:
 *    0  "stkser1\n"
 *    8  u32 bytes of payload, at most SERIES_PAYLOAD_MAX
 *   12  u32 CRC-32 of all that follows
 *   16  u64 from, u64 to   the bytes of the log that are read, both at the begin of a line
 *   32  i64 the newest step before them (behind a part that was left out: before that), i64 the
 *       newest step at their end; -1: none
 *   48  u32 CRC-32 of the log's place and of the metrics' names and patterns: other metrics, other
 *       readings
 *   52  u32 number of the start of the command, from 0
 *   56  u32 readings in the payload
 *   60  u32 flags: SERIES_LATE and the others below
 *   64  readings: metric, step and time (UTC in ms) less those of the reading before as LEB128, the
 *       signed ones zigzag; the value as IEEE 754 double. About 12 bytes each.
 *
 * A log that is a service's events has no bytes that two readers would count alike. There `from`
 * and `to` count readings, the start is 0, and a block with SERIES_MARK, without readings, says
 * which lines are read (series_mark.h).
 */
#ifndef STK_SERIES_SERIES_BLOCK_H
#define STK_SERIES_SERIES_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/sb.h"
#include "jobs/series/metric_reader.h"

#define SERIES_HEADER_BYTES 64
#define SERIES_PAYLOAD_MAX  ((size_t)32 << 10)
#define SERIES_BLOCK_MAX    (SERIES_HEADER_BYTES + SERIES_PAYLOAD_MAX)
/* Bytes of an object: blocks that stay as they are are joined (series_upload.h). */
#define SERIES_OBJECT_MAX (32 * SERIES_BLOCK_MAX)

#define SERIES_LATE 1u /* the times are not those at which the lines came, but later */
#define SERIES_MARK 2u /* the payload is a mark */
#define SERIES_LOST 4u /* lines were lost before it */
#define SERIES_END  8u /* of a mark: the log is read to its end */

struct series_point {
	size_t metric;
	int64_t step; /* -1: before the first */
	struct utc at;
	double value;
};

struct series_block {
	uint64_t from, to;
	int64_t step_before, step_after;
	uint32_t metrics; /* series_sum() */
	uint32_t start, count, flags;
	struct sb payload;                /* while it is written: owned */
	struct series_point last;         /* while it is written: the newest reading */
	const unsigned char *bytes, *end; /* of one that is read: borrowed */
};

/* Returns the sum by which a block knows its log, that of a node of the attempt with this prefix,
 * and its metrics, [{"name","regex"}…]. */
uint32_t series_sum(const json_t *specs, const char *prefix, int node);

/* ---- writing ---- */

/* Makes the block empty, to go on at this offset after this step; its other members stay. */
void series_block_begin(struct series_block *block, uint64_t from, int64_t step);
void series_block_release(struct series_block *block);
bool series_block_has_room(const struct series_block *block, size_t readings);
/* Adds a reading; there must be room. */
void series_block_add(struct series_block *block, const struct series_point *point);
/* Appends the bytes of the block. */
void series_block_encode(const struct series_block *block, struct sb *ret);

/* Appends a number of so many bytes, and reads it. */
void series_block_put_number(struct sb *out, uint64_t value, size_t bytes);
uint64_t series_block_get_number(const unsigned char *at, size_t bytes);

/* ---- reading ---- */

/* Reads the block at the begin of the bytes, which it borrows. Returns its length; 0 if there is
 * none, or not all of one. */
size_t series_block_decode(const void *bytes, size_t len, struct series_block *ret);
/* Goes on to the next reading of a block that was decoded; false at its end. `point` starts as
 * zeros and is handed in again. */
bool series_block_next(struct series_block *block, struct series_point *point);
/* Takes a decoded block up to be written on. */
void series_block_reopen(struct series_block *block);

#endif
