/*
 * The section `schedule`: cron's line and its time zone, read by jobs/calendar, with the zone's
 * file from the system's tzdata. UTC is known without one.
 */
#ifndef STK_SPEC_SCHEDULE_H
#define STK_SPEC_SCHEDULE_H

#include "jobs/base/sb.h"
#include "jobs/calendar/zone.h"
#include "jobs/spec/spec.h"

/* A zone with the bytes that it is read from. Start from SCHEDULE_ZONE_INIT. */
struct schedule_zone {
	struct zone zone;
	struct sb bytes;
};
#define SCHEDULE_ZONE_INIT ((struct schedule_zone){ .bytes = SB_INIT })
void schedule_zone_release(struct schedule_zone *zone); /* for AUTO() */

/* Reads the zone of this name; $TZDIR counts, by `getenv_fn` (NULL: the process's own). Returns 1;
 * 0 if there is no such zone; -1 with an error (EXIT_REFUSED) if this machine has no zones, or the
 * file of this one is damaged. */
int schedule_zone_read(const char *name, spec_getenv_fn *getenv_fn, struct schedule_zone *ret,
		       struct err **err);

#endif
