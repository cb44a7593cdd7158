/* The course of a run for a report: lanes of a timeline, and events in words. */
#ifndef STK_CMD_REPORT_COURSE_H
#define STK_CMD_REPORT_COURSE_H

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

#define COURSE_FIRST 150 /* events kept from the begin, and */
#define COURSE_LAST  150 /* from the end */

struct course {
	json_t *lanes, *events, *newest; /* owned; newest: a ring */
	json_t *lane;                    /* of the attempt; borrowed */
	const char *kind;                /* of the open stretch; NULL: none */
	int64_t since_ms, seen;
	int64_t newest_ms;
};
void course_release(struct course *course); /* { 0 } is fine */

/* Adds the next event of the run. */
void course_add(struct course *course, const struct event *ev, const json_t *row);
/* Puts the course into the data of a run; open stretches end `now`, or with the newest event if
 * the run has ended. */
void course_put(struct course *course, struct utc now, bool ended, json_t *run);

#endif
