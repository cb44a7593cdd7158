/*
 * The part of a run in the statistics of all runs: how it ended, what failed and what was done
 * about it, and on which machines. Folded from its events beside its status (status.h), and kept in
 * its summary, so that thousands of runs are counted at once (stats.h).
 */
#ifndef STK_REPORT_RUN_TALLY_H
#define STK_REPORT_RUN_TALLY_H

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

struct run_tally {
	int64_t attempts;                         /* attempts that ended */
	int64_t failures[CLASS_COUNT];            /* attempts that ended with the class */
	int64_t acted[CLASS_COUNT][ACTION_COUNT]; /* actions that followed */
	int64_t drained, refused;                 /* attempts that were asked to save and end;
						     check-ups that found a sick node */
	int64_t nodes;                            /* of each attempt */
	bool debug;                               /* a debug run */
	bool looked;                              /* the first look at the cache: */
	enum cache_state verdict;
	enum run_limit limit;      /* the limit that ended the run; LIMIT_NONE */
	struct utc claimed;        /* the attempt under way; ms 0: none */
	bool draining;             /* the attempt is asked to end */
	bool open;                 /* the action after the newest failure is not known, */
	enum failure_class newest; /* the class of that failure */
	/* {"host": {"ms", "exposed", "attempts", "failed"}}: time of ended attempts, that up to the
	 * first in "failed", their number, and those of their failures that the machine may be the
	 * cause of. Owned; NULL: none. */
	json_t *machines;
	char *instance; /* type of the machines; owned; NULL: not known */
};

void run_tally_add(struct run_tally *tally, const struct event *ev);
void run_tally_release(struct run_tally *tally);

/* True if attempts that end so were interrupted: by machines, network or service, or by a cause
 * that is not known. False for what the program, its data or its user did, and for a job that got
 * no machines. */
bool run_tally_interrupts(enum failure_class class);

/* Adds what is not 0 to the object. */
void run_tally_put(const struct run_tally *tally, json_t *ret);

#endif
