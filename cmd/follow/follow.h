/*
 * Prints new output of a run, turn by turn, until the run has ended.
 *
 * cmd/follow: a run as it goes on. Its journal opened and folded, its events printed as they come,
 * the run driven from here with Ctrl-C handled, or left to a driver in the background. No command
 * is here, and nothing that decides about a run: that is jobs/run.
 */
#ifndef STK_CMD_FOLLOW_FOLLOW_H
#define STK_CMD_FOLLOW_FOLLOW_H

#include "jobs/base/process/loop.h"
#include "jobs/run/journal/journal.h"

struct follow {
	struct journal *journal;
	const char *run;
	struct loop *loop;
	int64_t next; /* sequence number */
	bool ended;
	bool more; /* the turn left something: the next one follows immediately */
	struct err **err;
	int result;
	/* Prints a bounded part of the new output; returns -1 with *err set on failure. */
	int (*turn)(struct follow *follow);
};

/* Repeats turns until the run has ended, or the loop is left. Returns -1 if a turn fails. */
int follow_run(struct follow *follow, struct err **err);

#endif
