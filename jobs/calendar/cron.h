/*
 * Cron's five fields: minute, hour, day of the month, month, day of the week.
 *
 * jobs/calendar: due times: cron, time zones, due times in a zone, and the alarms of other
 * schedulers that cover them. Pure: no I/O, no clock, no memory of its own. A zone is read from
 * bytes that the caller has read.
 *
 * A field is a list, by commas, of '*', N, N-M, each of the last two also by name (JAN, MON, in any
 * case), and each with a step: A-B/S, '*'/S, and A/S, which is from A to the end of the field. Days
 * of the week are 0 to 7, both ends being Sunday. A line may also be @hourly, @daily (@midnight),
 * @weekly, @monthly or @yearly (@annually).
 *
 * If both day fields are restricted, a day fits that either of them names, as POSIX has it
 * (crontab, "RATIONALE" of POSIX.1-2017). A field that begins with '*' does not restrict, as in
 * Debian's cron (crontab(5) of cron 3.0pl1): with '*'/2 in one of them both must fit.
 */
#ifndef STK_CALENDAR_CRON_H
#define STK_CALENDAR_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cron_field { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY, CRON_FIELDS };

struct cron {
	uint64_t bits[CRON_FIELDS]; /* bit N: the value N; days and months from 1, Sunday is 0 */
	bool either_day;            /* both day fields are restricted: one that fits is enough */
};

/* The fault of a line, for people. */
struct cron_fault {
	enum cron_field field; /* CRON_FIELDS: the line as a whole */
	const char *text;      /* the part that is wrong, in the line */
	size_t len;
	const char *why, *hint; /* constant texts: "is not …" follows the part; a sentence */
};

/* Reads a line; false with *ret_fault set if it is none, or if it never comes (30 February). */
bool cron_parse(const char *line, struct cron *ret, struct cron_fault *ret_fault);

/* The least and the greatest value of a field. */
int cron_field_min(enum cron_field field);
int cron_field_max(enum cron_field field); /* 6 for days of the week */

/* True if this day is one of cron's. */
bool cron_has_day(const struct cron *cron, int month, int day, int weekday);
/* True if the field lets every value through. */
bool cron_is_full(const struct cron *cron, enum cron_field field);

/* Writes the values of a field as a list, 22-23,0 as 0,22,23 and 1,2,3 as 1-3; '*' for all of them.
 * `digits` 2: 03 for 3. `between` stands in a range: "-" or "..". */
#define CRON_LIST 192
void cron_write_list(uint64_t bits, enum cron_field field, int digits, const char *between,
		     char ret[CRON_LIST]);

#endif
