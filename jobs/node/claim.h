/*
 * Claim and fence: several processes may believe that they are to run a phase, but only one attempt
 * does. Engines start jobs at least once at best (a reply is lost, a node cut off goes on
 * computing), so the decision falls here, in one object of the workspace that is only ever created
 * if absent or replaced if unchanged.
 *
 * Node 0 of an attempt takes the claim; other nodes wait for one that names their own job. Every
 * holder looks again with each heartbeat: once another attempt holds it, the command must stop.
 *
 * If the service does not number restarts (engine_env.h), node 0 counts them: it takes over a claim
 * of the very same job (token and all), and must be the next start of that job. The other nodes
 * could mistake the old claim for one that holds, so node 0 shows for a while that it lives
 * (claim_show), and they believe a claim that was there before them only when they have seen it
 * change.
 */
#ifndef STK_NODE_CLAIM_H
#define STK_NODE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"

#define CLAIM_HOLDER 33 /* hex digits and a NUL */

struct claim {
	char *key;
	char holder[CLAIM_HOLDER]; /* unique to this agent process */
	bool believed;   /* other nodes: node 0 is known to be, or to have been, of this start */
	char *first;     /* claim at the first look: "" nothing of our job; NULL: not looked yet */
	int64_t restart; /* start of our job, from the claim */
	char *master_addr; /* address of node 0, from the claim */
	int64_t master_port;
	int64_t taken_ms; /* utc; when this node learnt that it may run */
};

enum claim_state {
	CLAIM_OURS,    /* we, or node 0 of our own job, may run */
	CLAIM_NOT_YET, /* other nodes: node 0 has not claimed yet */
	CLAIM_OTHERS,  /* another attempt, job or process has it */
};

void claim_init(struct claim *claim, const struct agent_config *config);
void claim_release(struct claim *claim); /* for AUTO(); { 0 } is fine */

/* Node 0 takes the claim; other nodes look whether node 0 has it. Returns -1 if the
 * workspace cannot be used. */
int claim_take(struct claim *claim, const struct agent_config *config, struct store *store,
	       enum claim_state *ret, struct err **err);

/* Time for which such a node 0 shows that it lives, and the interval, in ms. */
#define CLAIM_SHOW_MS  ((int64_t)20 * 60 * 1000)
#define CLAIM_AGAIN_MS 3000
bool claim_shown(const struct agent_config *config); /* true if node 0 has to */
/* Writes the claim again, with a higher "beat". Returns as claim_check(). */
int claim_show(const struct claim *claim, const struct agent_config *config, struct store *store);

/* Returns the start of our job that holds the claim: the config's number if the service gives it,
 * else the claim's; INT64_MAX if our job's claim cannot be read now. */
int64_t claim_restart(const struct claim *claim, const struct agent_config *config,
		      struct store *store);

/* Returns 1 if the claim is still ours, 0 if not, -1 if it cannot be read now. */
int claim_check(const struct claim *claim, const struct agent_config *config, struct store *store);
/* True if the claim is ours or cannot be read now: unknown is not lost. */
bool claim_holds(const struct claim *claim, const struct agent_config *config, struct store *store);

#endif
