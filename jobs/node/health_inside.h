/*
 * What the parts of a check-up share: health_work.c (its order), health_device.c and
 * health_program.c (this node), health_peers.c, health_across.c, health_compare.c and
 * health_baseline.c (all of them). Included by these alone.
 */
#ifndef STK_NODE_HEALTH_INSIDE_H
#define STK_NODE_HEALTH_INSIDE_H

#include "jobs/base/clock.h"
#include "jobs/node/envlist.h"
#include "jobs/node/health.h"
#include "jobs/node/health_tool.h"
#include "jobs/store/store.h"

/* A figure below this part of the others' median, or of the baseline, is slow. */
#define HEALTH_SLOW 0.7
/* So many check-ups in a row, all slower than the baseline, are the next baseline. */
#define HEALTH_SLOW_RUNS 3

/* Values of a row's "verdict". */
#define ROW_OK        "ok"
#define ROW_WARNED    "warned"
#define ROW_SICK      "sick"
#define ROW_UNCHECKED "unchecked"

struct checkup {
	const struct task *task;
	const struct claim *claim;
	const json_t *order; /* its member "health" */
	struct store *store;
	struct envlist env;     /* of the tools: the command's, with a cache of their own */
	char *folder;           /* where they run: node-<k>/health */
	char *python;           /* the command's; NULL: there is none */
	struct mono begun, end; /* of this node's own part */
	struct utc began;
	int cores;              /* of this node; 0: not known */
	bool sick;              /* some row is */
	bool unable;            /* nccom-test did not get to run: that is the image */
	bool torch;             /* it can be imported */
	bool xla;               /* PyTorch computes on the accelerator */
	json_t *told;           /* node-<k>/health.json: see order.h */
	json_t *rows, *figures; /* of it; borrowed */
};

/* A row: what was looked at, how that was (ROW_*), and in words. */
void checkup_say(struct checkup *c, const char *check, const char *verdict, const char *fmt, ...)
	STK_PRINTF(4, 5);
/* "health.timeout (10m)", for words. Yours to free. */
char *checkup_limit(const struct checkup *c);
/* Had a tool from its start to its end enough of health.timeout that it hangs, where it was
 * stopped? What others before it took is not its fault. */
bool checkup_had_time(const struct checkup *c, struct mono from, struct mono end);

/* health_device.c */
void check_place(struct checkup *c);
void check_devices(struct checkup *c);
void check_counters(struct checkup *c);

/* health_program.c */
void check_tensor(struct checkup *c);
/* Is there a torch by which the nodes can be tested together? The tensor check says it too. */
void find_torch(struct checkup *c);
void check_collectives(struct checkup *c);
/* The collective of nccom-test over `ranks` ranks on these hosts (NULL: here alone): NULL
 * and the figures added to `figures` as `name`, or what went wrong; yours to free. */
char *run_nccom(struct checkup *c, const char *operation, int ranks, const json_t *hosts,
		struct mono end, const char *name, json_t *figures);
/* The same as an all-reduce among these nodes by torchrun; we are number `rank` of them. */
char *run_torch(struct checkup *c, int nodes, int rank, const char *addr, int64_t port,
		struct mono end, const char *name, json_t *figures);

/* health_peers.c: node-<k>/health.json and health.json of this start of the job. */
int tell_own(struct checkup *c, const char *state, struct err **err);
/* NULL: nothing (yet). A new reference. */
json_t *hear_verdict(struct checkup *c);
int tell_all(struct checkup *c, json_t *body, struct err **err);
/* Wait a moment before the next look; longer each time where looks are requests. */
void wait_a_moment(const struct checkup *c, int64_t *pause_ms);
/* Another node's agent has failed: it will tell nothing. */
bool peer_is_gone(struct checkup *c);
/* The first node that ends takes the others down with it: the one that has something to say
 * goes first. */
void let_the_sick_speak(struct checkup *c);
/* All nodes' tellings with this state and, from the first round on, of this round, as an
 * array by rank; null where one has not told by then. A new reference. */
json_t *gather(struct checkup *c, int64_t round, struct mono end);

/* health_across.c: test the way between the nodes. The member "across" of node 0's report, and
 * nodes that it found sick added to `sick`; "failing" in it: what no single node explains. */
json_t *test_across(struct checkup *c, const json_t *nodes, struct mono end, json_t *sick);
/* Are collectives over several machines of this type supported? */
bool meets_others(const struct checkup *c);
/* The other nodes' part: do what node 0 has written. */
void join_round(struct checkup *c, const json_t *orders);

/* health_baseline.c: what former check-ups measured, an object of the workspace for each type
 * of instance, or machine that has none: {"v":1, "figures": {name: {"busbw": GiB/s, "runs": how
 * many are in it, "slower": {"busbw": the best, "runs": how many in a row were slow since
 * then}}…}}. What cannot be read counts for nothing, and what cannot be written is not missed. */
struct baseline {
	char *key, *url;
	char tag[STORE_TAG];
	bool there, changed;
	json_t *object;
};

void baseline_load(struct checkup *c, struct baseline *ret);
void baseline_release(struct baseline *baseline); /* for AUTO(); { 0 } is fine */
/* Is it below HEALTH_SLOW of what is kept? Not where nothing is, nor if it is negative. */
bool baseline_is_slow(const struct baseline *baseline, const char *name, double busbw);
/* Which one in a row a slow figure would be now, from 1. */
int64_t baseline_slower(const struct baseline *baseline, const char *name);
/* What is kept and where, for words; `counted`: and which one in a row this is. Yours to free. */
char *baseline_words(const struct baseline *baseline, const char *name, bool counted);
/* A new figure: it goes into what is kept, or if it is slow, beside that. */
void baseline_add(struct baseline *baseline, const char *name, double busbw);
void baseline_store(struct checkup *c, const struct baseline *baseline);

/* health_compare.c: nodes that are sick by what they told: [{"node","host","words"}…]; and
 * into `warned`, as texts, what is slow and no single node's doing. */
json_t *compare_nodes(struct checkup *c, const json_t *nodes, const struct baseline *baseline,
		      json_t *warned);
/* Where all of several nodes fail the same check of what the image computes with, no single one
 * is to blame: in words, yours to free; else NULL. */
char *common_failure(const json_t *nodes);
json_t *sick_row(const json_t *nodes, int node, const char *words);
/* The same of what test_across() measured. */
void compare_across(struct checkup *c, const json_t *across, const struct baseline *baseline,
		    json_t *warned);
/* Into the baseline, as it is by now, with all that was measured. */
void remember_figures(struct checkup *c, const json_t *nodes, const json_t *across);

#endif
