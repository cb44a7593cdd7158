/* When a schedule is due: its line of cron and its zone, from a spec or from what is pinned of one.
 */
#ifndef STK_CMD_SCHEDULE_SCHEDULE_TIMES_H
#define STK_CMD_SCHEDULE_SCHEDULE_TIMES_H

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/calendar/due.h"
#include "jobs/spec/schedule.h"

struct schedule_times {
	const char *name, *line, *timezone; /* borrowed */
	struct cron cron;
	struct schedule_zone zone;
};
#define SCHEDULE_TIMES_INIT ((struct schedule_times){ .zone = SCHEDULE_ZONE_INIT })
void schedule_times_release(struct schedule_times *times); /* for AUTO() */

/* EXIT_SPEC if the spec has no section `schedule`; `path` names it. */
int schedule_times_of_spec(const struct spec *spec, const char *path, struct schedule_times *ret,
			   struct err **err);
/* The times of a pin (jobs/run/schedule/schedule_record.h). EXIT_REFUSED if this machine has not
 * its zone. */
int schedule_times_of_pin(const json_t *pin, struct schedule_times *ret, struct err **err);

/* Prints the due times after a moment: a table, or with --json a line each. */
void schedule_times_print(const struct schedule_times *times, struct utc at, int64_t count);

#endif
