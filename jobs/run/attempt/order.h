/*
 * The order of an attempt, made from a plan; before there is a run, the same order and the request
 * that an engine would get. Orders shown to a person and orders sent come from one function.
 * Members: see jobs/store/order.h.
 */
#ifndef STK_RUN_ATTEMPT_ORDER_H
#define STK_RUN_ATTEMPT_ORDER_H

#include "jobs/base/text/js.h"
#include "jobs/flow/flow.h"

/* Attempt for which an order is made. All strings are borrowed for the call. */
struct order_of {
	const char *run, *nonce, *job;
	const char *workspace; /* absolute */
	enum phase phase;
	int64_t attempt;          /* from 1 */
	int64_t workers;          /* parallel compile processes; 0: as planned */
	const char *resumed_from; /* a complete checkpoint; NULL: none */
	int64_t resume_step;      /* step of that checkpoint */
	const json_t *compiler;   /* compiler that filled the cache for a training; NULL: none */
	const char *tolerated;    /* another compiler that is accepted too; NULL: none */
	const char *lock;         /* graph key of a training's compile manifest; NULL: none */
	const char *claim;        /* nonce of the claim of the graph key, for a precompile */
	const json_t *inputs;     /* the run's inputs: run.created's; NULL: nothing */
	const struct flow *flow;  /* of the run, for phases with tasks; NULL: none yet */
	const char *agent;        /* SHA-256 that the agent must have; NULL: stoker delivers it */
};

/* Returns the order as a new reference. The plan must have a phase of that name. */
json_t *order_make(const json_t *plan, const struct order_of *of);

/* Returns "runs/<run>/<phase>-<attempt>/". The caller frees it. */
char *order_attempt_prefix(const char *run, enum phase phase, int64_t attempt);

/* Returns "stk-<run>-<phase>-<attempt>", the name of the attempt's job. The caller frees it. */
char *order_job_name(const char *run, enum phase phase, int64_t attempt);

/* Returns "runs/<run>/outputs/<phase>-<attempt>/": the outputs that the nodes' commands left in
 * STOKER_OUTPUT_DIR, a folder per node. The caller frees it. */
char *order_outputs(const char *run, enum phase phase, int64_t attempt);

/* Returns the place of a training attempt's complete checkpoints. The caller frees it. */
char *order_checkpoint_root(const json_t *plan, const char *workspace, const char *run,
			    int64_t attempt);

/* Returns a new array: the orders of the first attempt of each phase that starts a job, in the
 * order of the plan; before a stage that is compiled ahead, that of its phase 1, which has "stage".
 * Values that only a run knows are "<id>", "<nonce>" and "<claim>", or are left
 * out: the compiler that a training is held to. Each order also has "agent_env": the part of the
 * caller's environment that the agent gets, and its secrets by where their values come from. In
 * command and env, values with names that look like secrets are hashes. */
json_t *order_planned(const json_t *plan);

/* Returns the command line of a phase as its machines will run it, as a new array; NULL if it is
 * the plan's own. */
json_t *sends_command_as_run(const json_t *plan, const char *phase);

/* Adds "sends" to each of order_planned(): the requests with which the engine would start it
 * (`requests` in engine.h); nothing if the engine sends nothing. "command" becomes the one that
 * runs. Sends no request. */
int sends_of_order(const json_t *plan, json_t *orders, struct err **err);

/* Returns the placeholders that occur in requests that are shown: a new array
 * [{"mark","meaning"}]. */
json_t *placeholders_of_requests(const json_t *requests);

/* Compares two of order_planned(): a new array [{"field","precompile","train"}], a row for each
 * path with different values, sorted; null where one side has none. */
json_t *order_difference(const json_t *precompile, const json_t *train);

#endif
