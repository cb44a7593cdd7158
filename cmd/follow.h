/* Printing what is new in a run, turn after turn, until it has ended. */
#ifndef STK_CMD_FOLLOW_H
#define STK_CMD_FOLLOW_H

#include "jobs/base/loop.h"
#include "jobs/run/journal.h"

struct follow {
	struct journal *journal;
	const char *run;
	struct loop *loop;
	int64_t next; /* sequence number */
	bool ended;
	struct err **err;
	int result;
	int (*turn)(struct follow *follow); /* print what is new; -1 with *err set */
};

/* Turn after turn until the run has ended, or the loop is left. -1 as the turn. */
int follow_run(struct follow *follow, struct err **err);

#endif
