/*
 * The run's claim on its graph key, renewed by the agent of node 0 while phase 1 is
 * under way: its driver may be dead, and the job lives on and fills the cache.
 * One small object of the cache now and then; it is only ever renewed here, never
 * taken and never given up: see jobs/cache/key_claim.h.
 */
#ifndef STK_NODE_RENEWAL_H
#define STK_NODE_RENEWAL_H

#include "jobs/base/clock.h"
#include "jobs/cache/key_claim.h"
#include "jobs/node/task.h"

struct renewal {
	struct store *cache; /* NULL: not opened yet */
	struct key_claim claim;
	struct mono next; /* when it is due; ms 0: at once */
};

/* Called with each heartbeat: renews it where that is due. What goes wrong is no reason
 * to stop anything. */
void renewal_look(struct renewal *renewal, const struct task *task);
void renewal_release(struct renewal *renewal); /* for AUTO(); { 0 } is fine */

#endif
