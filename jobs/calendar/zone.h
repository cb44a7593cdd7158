/*
 * A time zone: its offsets from UTC, as a compiled file of tzdata has them (TZif, RFC 9636), with
 * the rule at its end for the time after its last change.
 *
 * Not glibc's own reading: that is one zone a process, through the environment, which threads
 * share. Moments are seconds since 1970-01-01T00:00:00Z. Files with leap seconds ("right/…") are
 * refused: no clock here counts them.
 */
#ifndef STK_CALENDAR_ZONE_H
#define STK_CALENDAR_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A day of the year on which the rule changes the offset. */
struct zone_day {
	enum { ZONE_WEEKDAY, ZONE_JULIAN, ZONE_DAY } kind; /* Mm.w.d, Jn, n */
	int month, week, day;
	int32_t time; /* local seconds after midnight; may lie on another day */
};

/* Read by zone_read(); the bytes are borrowed. */
struct zone {
	const uint8_t *times, *indexes, *types; /* of the file */
	size_t time_count, type_count;
	size_t time_size; /* 4 or 8 bytes */
	bool has_rule, has_summer;
	int32_t standard, summer;   /* offsets of the rule */
	struct zone_day begin, end; /* of summer time */
};

/* A time in which the offset is the same; `from` is the first second, `to` the first after it. Both
 * are bounded: ZONE_EVER is as good as never. */
#define ZONE_EVER (INT64_C(1) << 48)
struct zone_period {
	int64_t from, to;
	int32_t offset; /* seconds east of UTC, at most 26 hours */
};

void zone_utc(struct zone *ret);
/* Reads a file of tzdata; false if it is none. */
bool zone_read(const void *bytes, size_t len, struct zone *ret);
/* The rule of POSIX's TZ variable at the end of such a file, "CET-1CEST,M3.5.0,M10.5.0/3"; false if
 * it is none. Sets only the members that are the rule's. */
bool zone_rule_read(const char *text, size_t len, struct zone *ret);
/* The same for the time after the last change of the file. */
struct zone_period zone_rule_period(const struct zone *zone, int64_t at);

/* `at` may be any moment within ZONE_EVER. */
struct zone_period zone_period_at(const struct zone *zone, int64_t at);
int64_t zone_local(const struct zone *zone, int64_t at); /* local seconds at a moment */

#endif
