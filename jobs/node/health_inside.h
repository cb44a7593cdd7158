/*
 * What the parts of a check-up share: health_work.c (its order), health_device.c and
 * health_program.c (this node), health_peers.c, health_across.c and health_compare.c (all of
 * them). Included by these alone.
 */
#ifndef STK_NODE_HEALTH_INSIDE_H
#define STK_NODE_HEALTH_INSIDE_H

#include "jobs/base/clock.h"
#include "jobs/node/envlist.h"
#include "jobs/node/health.h"
#include "jobs/node/health_tool.h"

/* A node below this part of the others' median, or of the baseline, is slow. */
#define HEALTH_SLOW 0.7

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
	bool torch;             /* it can be imported */
	bool xla;               /* PyTorch computes on the accelerator */
	json_t *told;           /* node-<k>/health.json: see order.h */
	json_t *rows, *figures; /* of it; borrowed */
};

/* A row: what was looked at, how that was (ROW_*), and in words. */
void checkup_say(struct checkup *c, const char *check, const char *verdict, const char *fmt, ...)
	STK_PRINTF(4, 5);
/* "health.timeout of 10m", for words. Yours to free. */
char *checkup_limit(const struct checkup *c);

/* health_device.c */
void check_place(struct checkup *c);
void check_devices(struct checkup *c);
void check_counters(struct checkup *c);

/* health_program.c */
void check_tensor(struct checkup *c);
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
/* What node k has told, NULL: nothing (yet). A new reference. */
json_t *hear_node(struct checkup *c, int node);
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
/* The other nodes' part: do what node 0 has written. */
void join_round(struct checkup *c, const json_t *orders);

/* health_compare.c: nodes that are sick by what they told: [{"node","host","words"}…]. */
json_t *compare_nodes(struct checkup *c, const json_t *nodes);
json_t *sick_row(const json_t *nodes, int node, const char *words);
/* The baseline with what was measured now. */
void update_baseline(struct checkup *c, const json_t *nodes, const json_t *across);

#endif
