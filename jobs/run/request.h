/*
 * Requests to the driver of a run: events that any process may append. The driver absorbs them when
 * it next looks; without a driver they wait for the next one.
 */
#ifndef STK_RUN_REQUEST_H
#define STK_RUN_REQUEST_H

#include "jobs/run/journal/journal.h"

enum request_result {
	REQUEST_APPENDED,
	REQUEST_TOO_LATE, /* the run has ended: nothing was appended */
	REQUEST_REPEATED, /* the same was asked before: nothing was appended */
};

/* Asks for the run to be stopped; it ends with EXIT_STOPPED. `reason` may be NULL. Returns -1 on
 * error (no such run is EXIT_USAGE). */
int request_stop(struct journal *journal, const char *run, const char *reason,
		 enum request_result *ret, struct err **err);

#endif
