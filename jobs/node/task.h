/*
 * The order as one agent understands it: order.json, checked, with the rank and
 * the folders of this node. Read once at the start; nothing of it changes.
 *
 * It is named by its path or by a URL of the workspace. Of a path the node's folder
 * lies beside it, of a URL in the folder that goes with the workspace
 * (jobs/store/work.h).
 */
#ifndef STK_NODE_TASK_H
#define STK_NODE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/node/platform.h"
#include "jobs/store/order.h"

/* Strings are borrowed from `order`, except those marked as owned. */
struct task {
	json_t *order;
	const char *run, *phase, *job, *nonce, *workspace, *prefix, *run_prefix;
	const char *source; /* key of the bundle, or NULL */
	int64_t attempt;
	int64_t restart; /* of the job by the engine; where that tells none, of the claim */
	int nodes, node;
	struct platform platform; /* owned */
	const char *token;        /* from the environment; "" where the engine has none */
	bool scratch;
	bool far; /* the workspace is no directory: what is asked there may take its time */
	int64_t grace_ms, heartbeat_ms, claim_wait_ms;
	int64_t look_ms;    /* between two looks at a workspace that is far */
	int64_t timeout_ms; /* of the command; 0: none */
	int64_t stop_ms;    /* from a signal to the end of all; 0: there is none */
	char *dir;          /* owned: node-<k>, absolute */
	char *src;          /* owned: working directory of the command */
	char *checkpoint;   /* owned: absolute */
	char *output;       /* owned: absolute */
};

/* Errors say what in the order is wrong (EXIT_DEFECT: stoker wrote it). */
int task_load(const char *order, const char *rank, struct task *ret, struct err **err);
void task_release(struct task *task); /* for AUTO(); { 0 } is fine */

/* How long after a signal from outside the command may live, what it saved may be copied,
 * and the log and the report may be brought: ms. The grace each, or less where the machine is
 * gone so soon that there would be nothing left for what comes after. */
int64_t task_kill_ms(const struct task *task);
int64_t task_keep_ms(const struct task *task);
int64_t task_bring_ms(const struct task *task);

/* A key beneath the attempt's prefix or this node's folder. Yours to free. */
char *task_key(const struct task *task, const char *name);
char *task_node_key(const struct task *task, const char *name);

#endif
