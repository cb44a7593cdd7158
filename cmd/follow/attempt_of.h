/* An attempt of a run, and the engine that has it. */
#ifndef STK_CMD_FOLLOW_ATTEMPT_OF_H
#define STK_CMD_FOLLOW_ATTEMPT_OF_H

#include "cmd/args/args.h"
#include "jobs/engine/engine.h"
#include "jobs/flow/flow.h"
#include "jobs/run/journal/journal.h"

struct attempt_of {
	const char *run;          /* borrowed */
	const char *wanted_phase; /* --phase; NULL: any */
	int64_t wanted;           /* --attempt; -1: the newest */
	json_t *plan;
	enum phase phase;
	int64_t attempt; /* 0: the run has no such attempt yet */
	char job[128];
	char *prefix; /* of the attempt's objects in the workspace */
	int64_t nodes;
	struct engine *engine; /* NULL until it is opened */
};

/* Begins a search by --phase and --attempt; `run` need not be known yet. */
int attempt_of_ask(struct attempt_of *of, const struct args *args, const char *run,
		   struct err **err);
/* True if the event begins an attempt that is searched for. */
bool attempt_of_is_wanted(const struct attempt_of *of, const struct event *ev);
/* Takes the plan from the first event, and enters the attempt of an event that is wanted. */
void attempt_of_add(struct attempt_of *of, const struct event *ev);
/* Reads the whole journal; EXIT_USAGE if no attempt is found. */
int attempt_of_find(struct attempt_of *of, struct journal *journal, struct err **err);
/* Sets the error for an attempt that is not there. */
int attempt_of_absent(const struct attempt_of *of, struct err **err);
/* EXIT_USAGE if the run has no such node. */
int attempt_of_check_node(const struct attempt_of *of, int64_t node, struct err **err);
/* Opens the engine of the plan. */
int attempt_of_open(struct attempt_of *of, struct err **err);
void attempt_of_release(struct attempt_of *of);

#endif
