/*
 * The order of an attempt, made from a plan, and what it says before there is a
 * run: the request that an engine would get. What a person is shown and what is
 * sent come from one function. Its members are those of jobs/store/order.h.
 */
#ifndef STK_RUN_ORDER_H
#define STK_RUN_ORDER_H

#include "jobs/base/json.h"
#include "jobs/flow/event.h"

/* One attempt. All strings are borrowed for the call. */
struct order_of {
	const char *run, *nonce, *job;
	const char *workspace; /* absolute */
	enum phase phase;
	int64_t attempt;          /* from 1 */
	int64_t workers;          /* compile processes at once; 0: as many as ever */
	const char *resumed_from; /* a complete checkpoint; NULL: none */
	int64_t resume_step;      /* of that checkpoint */
	const json_t *compiler;   /* that filled the cache a training is held to; NULL: none */
	const char *tolerated;    /* another one that it may be all the same; NULL: none */
	const char *lock;         /* graph key of the lock that a training rests on; NULL: none */
	const char *claim;        /* nonce of the claim of the graph key, for a precompile */
	const char *agent;        /* SHA-256 that the agent is held against; NULL: it is ours */
};

/* A new reference. The plan has a phase of that name. */
json_t *order_make(const json_t *plan, const struct order_of *of);

/* "runs/<run>/<phase>-<attempt>/". Yours to free. */
char *attempt_prefix(const char *run, enum phase phase, int64_t attempt);

/* Where the complete checkpoints of a training attempt are to be found. Yours to
 * free. */
char *order_checkpoint_root(const json_t *plan, const char *workspace, const char *run,
			    int64_t attempt);

/* The orders of the first attempt of each phase that starts a job, in the order of
 * the plan: a new array. What only a run knows is "<id>", "<nonce>" and
 * "<claim>", or is left out: the compiler that a training is held to. Beyond the
 * members of an order each has "agent_env": what the agent gets of the caller's
 * environment, and its secrets by where their values come from. Values of command
 * and env whose names look like secrets are hashes. */
json_t *order_planned(const json_t *plan);

/* To each of order_planned() "sends": what the engine would send to start it, as engine.h says
 * of `requests`; nothing where it sends nothing. Asks nobody. */
int order_sends(const json_t *plan, json_t *orders, struct err **err);

/* [{"field","precompile","train"}], one row a path whose value differs, sorted; null
 * where one side has none. Of two of order_planned(): a new array. */
json_t *order_difference(const json_t *precompile, const json_t *train);

#endif
