/*
 * Claim and fence: of all processes that believe they are to run a phase, one
 * attempt does. Engines start jobs at least once at best (a reply is lost, a
 * node cut off goes on computing), so the decision falls here, in one object of
 * the workspace that is only ever created if absent or replaced if unchanged.
 *
 * Node 0 of an attempt takes the claim; other nodes wait for one that names
 * their own job. Every holder looks again with each heartbeat: once another
 * attempt holds it, the command must stop.
 *
 * Where the service tells no restarts (platform.h) node 0 counts them: it takes over a
 * claim of the very same job (token and all), of which it must be the next start. The
 * other nodes could mistake that claim for one that holds, so node 0 shows for a while
 * that it lives (claim_show), and they believe a claim that was there before them only
 * when they have seen it change.
 */
#ifndef STK_NODE_CLAIM_H
#define STK_NODE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/node/task.h"
#include "jobs/store/store.h"

#define CLAIM_HOLDER 33 /* hex digits and a NUL */

struct claim {
	char *key;
	char holder[CLAIM_HOLDER]; /* this agent process, unlike any other */
	bool believed; /* other nodes: node 0 is known to be, or to have been, of this start */
	char *first;   /* what there was at the first look: "" nothing of our job; NULL: none yet */
	int64_t restart;   /* of our job, from the claim */
	char *master_addr; /* where node 0 is reached, from the claim */
	int64_t master_port;
	int64_t taken_ms; /* utc; when this node knew that it may run */
};

enum claim_state {
	CLAIM_OURS,    /* we, or node 0 of our own job, may run */
	CLAIM_NOT_YET, /* other nodes: node 0 has not claimed yet */
	CLAIM_OTHERS,  /* another attempt, job or process has it */
};

void claim_init(struct claim *claim, const struct task *task);
void claim_release(struct claim *claim); /* for AUTO(); { 0 } is fine */

/* Node 0: take it. Other nodes: look whether node 0 has. -1: the workspace
 * cannot be used. */
int claim_take(struct claim *claim, const struct task *task, struct store *store,
	       enum claim_state *ret, struct err **err);

/* How long, in ms, and how often such a node 0 shows that it lives. */
#define CLAIM_SHOW_MS  ((int64_t)20 * 60 * 1000)
#define CLAIM_AGAIN_MS 3000
bool claim_shown(const struct task *task); /* does it have to? */
/* Write the claim anew, with a higher "beat". As claim_look(). */
int claim_show(const struct claim *claim, const struct task *task, struct store *store);

/* Which start of our job holds it: the task's own number where that is told, else what the
 * claim says; INT64_MAX: it cannot be read now. */
int64_t claim_restart(const struct claim *claim, const struct task *task, struct store *store);

/* Is it still ours? 1 yes, 0 no, -1 it cannot be read now. */
int claim_look(const struct claim *claim, const struct task *task, struct store *store);
/* The same, true also while it cannot be read: unknown is not lost. */
bool claim_holds(const struct claim *claim, const struct task *task, struct store *store);

#endif
