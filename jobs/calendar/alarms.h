/*
 * Alarms: patterns of local times for another scheduler, which wakes stoker. stoker then decides
 * what is due, so an alarm too many costs a look, and one too few costs a turn.
 *
 * All that is asked of the scheduler is that it wakes stoker in the minutes whose local time fits.
 * It may leave out times that the clock skips (systemd, EventBridge), and of a time that comes
 * twice the second (Debian's cron): jobs/calendar/due.h says when a turn is due nevertheless.
 */
#ifndef STK_CALENDAR_ALARMS_H
#define STK_CALENDAR_ALARMS_H

#include "jobs/calendar/cron.h"
#include "jobs/calendar/zone.h"

/* All fields must fit. */
struct alarm {
	uint64_t bits[CRON_FIELDS]; /* as in struct cron */
};

#define ALARMS_MAX   3
#define ALARMS_YEARS 10 /* for which they are placed */

/* The alarms in the schedule's own zone: one; two if either day field is enough; and one more for
 * due times that clock changes of the years after `from` move. Returns their number. */
size_t alarms_in_zone(const struct cron *cron, const struct zone *zone, int64_t from,
		      struct alarm ret[ALARMS_MAX]);

/* A line of cron by the clock of another zone, for the years after `from`. */
void alarms_elsewhere(const struct cron *cron, const struct zone *zone, const struct zone *other,
		      int64_t from, struct cron *ret);

#endif
