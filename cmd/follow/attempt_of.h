/* An attempt of a run, and the engine that has it. */
#ifndef STK_CMD_FOLLOW_ATTEMPT_OF_H
#define STK_CMD_FOLLOW_ATTEMPT_OF_H

#include "cmd/args/args.h"
#include "jobs/engine/engine.h"
#include "jobs/flow/flow.h"
#include "jobs/run/journal/journal.h"

struct attempt_of {
	json_t *plan;
	enum phase phase;
	int64_t attempt; /* 0: the run has no such attempt yet */
	char job[128];
	char *prefix; /* of the attempt's objects in the workspace */
	bool ended;
	int64_t nodes;
	struct engine *engine; /* NULL until it is opened */
};

/* Enters an attempt.intended. */
void attempt_of_enter(struct attempt_of *of, const char *run, const struct event *ev);

/* Finds the newest attempt, or the one that --phase and --attempt name; EXIT_USAGE if there is
 * none. */
int attempt_of_find(const struct args *args, struct journal *journal, const char *run,
		    struct attempt_of *ret, struct err **err);
/* Sets the error for an attempt that is not there. */
int attempt_of_absent(const struct args *args, const char *run, struct err **err);
/* Opens the engine of the plan. */
int attempt_of_open(struct attempt_of *of, struct err **err);
void attempt_of_release(struct attempt_of *of);

#endif
