/* The start of a run from a spec, for `run`, `retrain` and turns of a schedule:
 * its plan, what it is given, and its driver, here or in the background. */
#ifndef STK_CMD_FOLLOW_START_H
#define STK_CMD_FOLLOW_START_H

#include "cmd/args/args.h"
#include "jobs/base/text/js.h"

struct start_how {
	bool retrain; /* new data is asked for first, and the run promotes */
	/* The turn of a schedule, as in the run's inputs (jobs/run/plan/plan.h);
	 * NULL: none. */
	const json_t *turn;
	const char *id; /* of the run; NULL: --id, or a fresh one */
	/* The plan of the run; NULL: the spec of the first operand. Its source is in the
	 * workspace. */
	const json_t *plan;
};

/* Starts the run, or goes on with it, and writes the file of --outcome. Returns
 * the exit code, or -1. A retraining without new data prints one line and
 * returns EXIT_DONE: there is no run then, and *ret_nothing_new (may be NULL)
 * is true. */
int start_run(const struct args *args, const struct start_how *how, bool *ret_nothing_new,
	      struct err **err);

#endif
