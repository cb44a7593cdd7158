/*
 * Prefetch: a helper (helper.h) fetches what the command needs from a service before it starts, so
 * that the agent hears signals meanwhile. At most one runs at a time.
 */
#ifndef STK_NODE_CHECKPOINTS_PREFETCH_H
#define STK_NODE_CHECKPOINTS_PREFETCH_H

#include "jobs/base/err.h"
#include "jobs/base/process/loop.h"
#include "jobs/node/helper.h"
#include "jobs/node/news.h"
#include "jobs/node/setup/agent_config.h"

/* Runs in the helper, and opens the stores that it needs. */
typedef int (*prefetch_fn)(const struct agent_config *config, struct err **err);
/* Called from the loop when the prefetch is over; `why` is NULL on success. The callee owns it. */
typedef void (*prefetch_done_fn)(void *arg, struct err *why);

struct prefetch {
	struct helper helper; /* pid 0: no prefetch is under way */
	struct news news;
	struct err *why; /* owned: the child's error, as it told it */
	bool died; /* the helper ended without a word: nothing is known against what it fetches */
	prefetch_done_fn done;
	void *arg;
};

/* Starts a prefetch. `prefetch` must stay in place until `done` is called. */
int prefetch_start(struct prefetch *prefetch, const struct agent_config *config, prefetch_fn fn,
		   struct loop *loop, prefetch_done_fn done, void *arg, struct err **err);
/* Stops a prefetch that is under way; `done` is not called. For AUTO(); { 0 } is fine. */
void prefetch_release(struct prefetch *prefetch);

#endif
