/*
 * Shared by the parts of a check-up: health_work.c (its order, calls all others), health_kinds.c
 * (what each kind of accelerator has), health_device.c, health_nvidia.c, health_nccl.c and
 * health_program.c (this node), health_across.c, health_compare.c, health_peers.c and
 * health_baseline.c (all nodes), health_checkup.c (calls none of them). Included by these files
 * alone.
 */
#ifndef STK_NODE_HEALTH_HEALTH_INTERNAL_H
#define STK_NODE_HEALTH_HEALTH_INTERNAL_H

#include "jobs/base/accelerator.h"
#include "jobs/base/clock.h"
#include "jobs/node/health/health.h"
#include "jobs/node/health/health_tool.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/store/store.h"

/* A figure below this fraction of the others' median, or of the baseline, is slow. */
#define HEALTH_SLOW 0.7
/* Number of check-ups in a row, all slower than the baseline, that become the next baseline. */
#define HEALTH_SLOW_RUNS 3

/* Values of a row's "verdict". */
#define ROW_OK        "ok"
#define ROW_WARNED    "warned"
#define ROW_SICK      "sick"
#define ROW_UNCHECKED "unchecked"

struct checkup {
	const struct agent_config *config;
	const struct claim *claim;
	const struct order_health *order;
	struct store *store;
	struct command_env
		env; /* environment of the tools: the command's, with a cache of their own */
	const struct accelerator *accelerator;
	const struct health_kind *kind; /* of the accelerator */
	char *folder;                   /* working folder of the tools: node-<k>/health */
	char *python;                   /* Python of the command; NULL: not found */
	struct mono begun, end;         /* start and end of this node's own part */
	struct utc began;
	int cores;              /* cores or GPUs of this node; 0: not known */
	bool sick;              /* a row is ROW_SICK */
	bool unable;            /* a collective did not get to run: the image is to blame */
	bool hangs;             /* the tool of the devices does; it is asked nothing more */
	bool torch;             /* torch can be imported */
	bool xla;               /* PyTorch computes on the accelerator */
	json_t *told;           /* content of node-<k>/health.json: see order.h */
	json_t *rows, *figures; /* members of `told`; owned references */
};

/* health_checkup.c */

/* Adds a row: the check, its verdict (ROW_*), and words. */
void health_checkup_say(struct checkup *c, const char *check, const char *verdict, const char *fmt,
			...) STK_PRINTF(4, 5);
/* Returns the words of the rows that are ROW_SICK, "" if none is. The caller frees it. */
char *health_checkup_sick_words(const json_t *rows);
/* Returns "health.timeout (10m)", for messages. The caller frees it. */
char *health_checkup_limit(const struct checkup *c);
/* True if a tool that was stopped had enough of health.timeout between `from` and `end` to say that
 * it hangs. Time that earlier tools took is not its fault. */
bool health_checkup_had_time(const struct checkup *c, struct mono from, struct mono end);
/* True if collectives over several machines of this type are supported. */
bool health_checkup_meets_others(const struct checkup *c);

/* health_kinds.c: what a check-up does for each kind of accelerator (jobs/base/accelerator.h). */
struct health_kind {
	const char *accelerator; /* name of its row there */
	const char *tool;        /* by which it is known where the order does not tell the kind */
	/* Say how many there are, and who uses them; which errors they count. */
	void (*devices)(struct checkup *c);
	void (*counters)(struct checkup *c);
	/* Runs a collective on the devices of this node. Returns NULL with its figures in
	 * c->figures, or what went wrong, or, with c->unable, why it could not be run; the caller
	 * frees it. */
	char *(*collective)(struct checkup *c, const char *operation);
	const char *backend; /* of health_reduce.py on the accelerator */
	/* Program of the collectives, also between nodes, over mpirun; NULL: there are several. */
	const char *collectives;
};

/* Sets the kind of the accelerators, as the order tells, else as the tools on this node do. */
void health_find_kind(struct checkup *c);

/* health_device.c */
void health_check_place(struct checkup *c);
void health_neuron_devices(struct checkup *c);
void health_neuron_counters(struct checkup *c);
/* Reports a number of devices other than the order's, as `who` shows. Returns true if it did. */
bool health_say_devices(struct checkup *c, const char *who, int found);
/* Reports the processes that use devices: [{"device","pid","command"}…]. */
void health_say_processes(struct checkup *c, const json_t *processes);

/* health_nvidia.c */
void health_nvidia_devices(struct checkup *c);
void health_nvidia_counters(struct checkup *c);

/* health_nccl.c: a collective by nccl-tests, or, of all-reduce alone, by our program over torchrun.
 */
char *health_nccl_collective(struct checkup *c, const char *operation);

/* health_program.c */
void health_check_tensor(struct checkup *c);
/* Finds out whether there is a torch by which the nodes can be tested together. The tensor
 * check finds it too. */
void health_find_torch(struct checkup *c);
void health_check_collectives(struct checkup *c);
char *health_nccom_collective(struct checkup *c, const char *operation);
/* Adds the figures of an operation: busbw as its tool counts it; time_us 0: not known. */
void health_put_figures(json_t *figures, const char *name, double busbw, double time_us, int ranks);
/* Returns that the tool hangs, stopped at `end`. The caller frees it. */
char *health_hung_words(const struct checkup *c, const char *what, struct mono from,
			struct mono end);
/* Runs the collective of nccom-test over `ranks` ranks on these hosts (NULL: here alone). Returns
 * NULL with the figures added to `figures` as `name`, or what went wrong; the caller frees it. */
char *health_run_nccom(struct checkup *c, const char *operation, int ranks, const json_t *hosts,
		       struct mono end, const char *name, json_t *figures);
/* Does the same as an all-reduce among `nodes` nodes by torchrun; this node is number `rank` of
 * them. */
char *health_run_torch(struct checkup *c, int nodes, int rank, const char *addr, int64_t port,
		       struct mono end, const char *name, json_t *figures);

/* health_peers.c: node-<k>/health.json and health.json of this start of the job. */
int health_tell_own(struct checkup *c, const char *state, struct err **err);
/* Returns a new reference to node 0's orders or verdict, NULL if there is nothing (yet). */
json_t *health_read_orders(struct checkup *c);
int health_tell_all(struct checkup *c, json_t *body, struct err **err);
/* Waits before the next look, a little longer each time; longer still where looks are requests. */
void health_wait_a_moment(const struct checkup *c, int64_t *pause_ms);
/* True if another node's agent has failed: it will report nothing. */
bool health_peer_is_gone(struct checkup *c);
/* Gives a node that was found sick the time to say so: the first node that ends takes the
 * others down with it. */
void health_let_the_sick_speak(struct checkup *c);
/* Returns the reports of all nodes that are done and, from the first round on, of this round: a new
 * array by rank, null where a node has not reported by `end`. */
json_t *health_gather(struct checkup *c, int64_t round, struct mono end);

/* health_across.c: tests the way between the nodes. Returns the member "across" of node 0's report,
 * with "failing" if no single node explains the failure; adds nodes that it found sick to
 * `sick`. */
json_t *health_test_across(struct checkup *c, const json_t *nodes, struct mono end, json_t *sick);
/* Part of the nodes other than 0: does what node 0 has ordered. */
void health_join_round(struct checkup *c, const json_t *orders);

/* health_baseline.c: figures of earlier check-ups, in an object of the workspace for each type of
 * instance, or machine without a type: {"v":1, "figures": {name: {"busbw": GiB/s, "runs": how many
 * are in it, "slower": {"busbw": the best, "runs": how many in a row were slow since then}}…}}. An
 * object that cannot be read counts for nothing, and a failed write is ignored. */
struct baseline {
	char *key, *url;
	char tag[STORE_TAG];
	bool there, changed;
	json_t *object;
};

void health_baseline_load(struct checkup *c, struct baseline *ret);
void health_baseline_release(struct baseline *baseline); /* for AUTO(); { 0 } is fine */
/* True if the figure is below HEALTH_SLOW of the kept one. False if none is kept, or
 * if it is negative. */
bool health_baseline_is_slow(const struct baseline *baseline, const char *name, double busbw);
/* Returns the number, from 1, that a slow figure would have now among slow ones in a row. */
int64_t health_baseline_slower(const struct baseline *baseline, const char *name);
/* Returns the kept figure and its place, for messages; `counted`: also the number of this slow one
 * in a row. The caller frees it. */
char *health_baseline_words(const struct baseline *baseline, const char *name, bool counted);
/* Adds a new figure to the kept one, or beside it if the new one is slow. */
void health_baseline_add(struct baseline *baseline, const char *name, double busbw);
void health_baseline_store(struct checkup *c, const struct baseline *baseline);

/* health_compare.c: returns the nodes that are sick by their reports: [{"node","host","words"}…];
 * adds to `warned`, as texts, what is slow without a single node to blame. */
json_t *health_compare_nodes(struct checkup *c, const json_t *nodes,
			     const struct baseline *baseline, json_t *warned);
/* Returns a message if all of several nodes fail the same check of what the image computes with, so
 * that no single node is to blame; else NULL. The caller frees it. */
char *health_common_failure(const json_t *nodes);
/* True if the node is in such a list. */
bool health_is_sick(const json_t *sick, int node);
json_t *health_sick_row(const json_t *nodes, int node, const char *words);
/* Does the same as health_compare_nodes() for the figure that health_test_across() measured. */
void health_compare_across(struct checkup *c, const json_t *across, const struct baseline *baseline,
			   json_t *warned);
/* Adds all measured figures to the baseline, as it is by now. */
void health_remember_figures(struct checkup *c, const json_t *nodes, const json_t *across);

#endif
