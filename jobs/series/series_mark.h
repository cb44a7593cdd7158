/*
 * The lines that are read of a log that is a service's events: by them a process goes on where
 * another one has stopped, without a reading twice or none. Lines have no numbers there, come late
 * by up to a minute, and are known by their identity (log_id of an engine) and time alone.
 *
 * All lines are read that are older than `floor_ms`; of those since then, the ones in the list,
 * and those without readings, which matter to nobody. The newest line of all, with a reading or
 * without, shows whether the log still reaches back so far: a reader to whom the service does not
 * give it again may have lost what came behind it.
 *
 * Payload of a block with SERIES_MARK, numbers little-endian:
 *    0  i64 time of the newest line, UTC in ms; 0: none is read
 *    8  u64 its identity
 *   16  i64 floor, UTC in ms
 *   24  for each line of the list: u64 identity, u32 time in ms behind the floor
 */
#ifndef STK_SERIES_SERIES_MARK_H
#define STK_SERIES_SERIES_MARK_H

#include "jobs/series/series_block.h"

/* The list is as long as a block has room for. If more lines with readings came in the last minute,
 * it is of a shorter time, and a line that comes later than that, between two drivers, is missed.
 */
#define SERIES_MARK_LINES ((SERIES_PAYLOAD_MAX - 24) / 12)

struct series_mark_line {
	uint64_t id;
	int64_t at_ms;
};

struct series_mark {
	int64_t at_ms;
	uint64_t id;
	int64_t floor_ms;
	struct series_mark_line *lines;
	size_t count, room;
};

void series_mark_release(struct series_mark *mark); /* for AUTO() */
void series_mark_copy(struct series_mark *ret, const struct series_mark *mark);

/* A line came, that is read. */
void series_mark_line(struct series_mark *mark, uint64_t id, struct utc at, bool has_readings);
/* True if the line's readings are read. */
bool series_mark_has(const struct series_mark *mark, uint64_t id, struct utc at);

/* Appends it as a block at this place. */
void series_mark_encode(struct series_mark *mark, const struct series_block *block, struct sb *ret);
/* Reads that of a block that was decoded; false if it is none. */
bool series_mark_decode(const struct series_block *block, struct series_mark *ret);

#endif
