/* The lines of a service's log that are read: see series_mark.h. */
#include "jobs/series/series_mark.h"

#include <stdlib.h>
#include <string.h>

#define LATE_MS    ((int64_t)60 * 1000) /* how late a line may come: aws/logs/logs.h */
#define HEAD       24
#define ONE_LINE   12
#define TIME_MAX   (INT64_C(1) << 52) /* ms */
#define LINES_ROOM (2 * SERIES_MARK_LINES)

void series_mark_release(struct series_mark *mark)
{
	free(mark->lines);
	*mark = (struct series_mark){ 0 };
}

void series_mark_copy(struct series_mark *ret, const struct series_mark *mark)
{
	series_mark_release(ret);
	*ret = *mark;
	ret->room = mark->count;
	ret->lines = mem_zero(mark->count + 1, sizeof *ret->lines);
	if (mark->count > 0)
		memcpy(ret->lines, mark->lines, mark->count * sizeof *ret->lines);
}

static int by_time(const void *a, const void *b)
{
	const struct series_mark_line *x = a, *y = b;

	return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

/* Leaves the lines that still matter, and so many that a block has room for them. */
static void shorten(struct series_mark *mark)
{
	int64_t floor = mark->at_ms - LATE_MS;
	size_t gone = 0;

	if (mark->count > 0)
		qsort(mark->lines, mark->count, sizeof *mark->lines, by_time);
	if (mark->count > SERIES_MARK_LINES) {
		size_t over = mark->count - SERIES_MARK_LINES;
		int64_t least = mark->lines[over - 1].at_ms + 1;

		/* No service takes so many lines of a single millisecond. */
		if (least > mark->lines[mark->count - 1].at_ms)
			gone = over;
		else if (least > floor)
			floor = least;
	}
	if (floor > mark->floor_ms)
		mark->floor_ms = floor;
	while (gone < mark->count && mark->lines[gone].at_ms < mark->floor_ms)
		gone++;
	mark->count -= gone;
	if (gone > 0)
		memmove(mark->lines, mark->lines + gone, mark->count * sizeof *mark->lines);
}

void series_mark_line(struct series_mark *mark, uint64_t id, struct utc at, bool has_readings)
{
	if (at.ms >= mark->at_ms) {
		mark->at_ms = at.ms;
		mark->id = id;
	}
	if (!has_readings)
		return;
	if (mark->count >= LINES_ROOM)
		shorten(mark);
	if (mark->room < LINES_ROOM)
		mark->lines = mem_grow(mark->lines, mark->room = LINES_ROOM, sizeof *mark->lines);
	mark->lines[mark->count++] = (struct series_mark_line){ id, at.ms };
}

bool series_mark_has(const struct series_mark *mark, uint64_t id, struct utc at)
{
	if (at.ms < mark->floor_ms)
		return true;
	for (size_t i = 0; at.ms <= mark->at_ms && i < mark->count; i++)
		if (mark->lines[i].id == id)
			return true;
	return false;
}

void series_mark_encode(struct series_mark *mark, const struct series_block *block, struct sb *ret)
{
	struct series_block own = { .metrics = block->metrics };

	shorten(mark);
	series_block_begin(&own, block->to, block->step_after);
	own.flags = SERIES_MARK | block->flags;
	series_block_put_number(&own.payload, (uint64_t)mark->at_ms, 8);
	series_block_put_number(&own.payload, mark->id, 8);
	series_block_put_number(&own.payload, (uint64_t)mark->floor_ms, 8);
	for (size_t i = 0; i < mark->count; i++) {
		series_block_put_number(&own.payload, mark->lines[i].id, 8);
		series_block_put_number(&own.payload,
					(uint64_t)(mark->lines[i].at_ms - mark->floor_ms), 4);
	}
	series_block_encode(&own, ret);
	series_block_release(&own);
}

bool series_mark_decode(const struct series_block *block, struct series_mark *ret)
{
	const unsigned char *at = block->bytes;
	size_t len = (size_t)(block->end - block->bytes);
	struct series_mark mark = { 0 };

	if (!(block->flags & SERIES_MARK) || len < HEAD || (len - HEAD) % ONE_LINE != 0)
		return false;
	mark.at_ms = (int64_t)series_block_get_number(at, 8);
	mark.id = series_block_get_number(at + 8, 8);
	mark.floor_ms = (int64_t)series_block_get_number(at + 16, 8);
	/* The block may be anybody's. */
	if (mark.at_ms < 0 || mark.at_ms > TIME_MAX || mark.floor_ms < 0 ||
	    mark.floor_ms > TIME_MAX)
		return false;
	mark.count = mark.room = (len - HEAD) / ONE_LINE;
	mark.lines = mem_zero(mark.count + 1, sizeof *mark.lines);
	for (size_t i = 0; i < mark.count; i++) {
		const unsigned char *line = at + HEAD + i * ONE_LINE;

		mark.lines[i].id = series_block_get_number(line, 8);
		mark.lines[i].at_ms = mark.floor_ms + (int64_t)series_block_get_number(line + 8, 4);
	}
	series_mark_release(ret);
	*ret = mark;
	return true;
}
