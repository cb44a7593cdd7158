/*
 * The part of an ended run that a list shows, and that it adds to statistics, as its summary keeps
 * it (jobs/run/journal/summary.h): one line for each member, so that ten thousand of them are read
 * in no time.
 */
#ifndef STK_CMD_FOLLOW_RUN_HEAD_H
#define STK_CMD_FOLLOW_RUN_HEAD_H

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"

/* Each is NULL if it is not known. They point into the text that was read. */
struct run_head {
	const char *name, *engine, *state, *phase;
	const char *created, *ended; /* RFC 3339 */
	const char *cost;            /* USD, as in JSON */
	const char *tally;           /* for the statistics of all runs: status_tally() as JSON */
};

/* Makes the text from what status_json() and status_tally() returned. */
void run_head_make(const json_t *status, const json_t *tally, struct sb *ret);

/* Splits the text in place. False if it is no such text: the status itself is read then. */
bool run_head_read(char *text, struct run_head *ret);

#endif
