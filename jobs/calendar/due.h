/*
 * Due times: when cron's line comes in a time zone.
 *
 * Each local minute that the line names is due once: at the first moment at which the clock on the
 * wall shows it or a later time. So a time that a clock change skips is due in the first minute
 * after the gap, several of them at once, and a time that comes twice is due the first time.
 *
 * Moments are seconds since 1970-01-01T00:00:00Z. Due times are whole minutes, as far as the zone's
 * offsets and changes are, which they have been for a century.
 */
#ifndef STK_CALENDAR_DUE_H
#define STK_CALENDAR_DUE_H

#include "jobs/calendar/cron.h"
#include "jobs/calendar/zone.h"

struct due {
	int64_t at;     /* the moment */
	int64_t wanted; /* the local time that the line names (civil.h) */
	bool moved;     /* the clock skips it: it is due after the gap */
};

/* The first due time after a moment; false if there is none within 40 years. */
bool due_next(const struct cron *cron, const struct zone *zone, int64_t after, struct due *ret);
/* The last due time up to a moment, that included; false if there is none within 40 years. Of
 * several that one gap has moved, the last. */
bool due_last(const struct cron *cron, const struct zone *zone, int64_t at, struct due *ret);

#endif
