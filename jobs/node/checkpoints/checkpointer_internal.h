/* State of a checkpointer, shared by its files. */
#ifndef STK_NODE_CHECKPOINTS_CHECKPOINTER_INTERNAL_H
#define STK_NODE_CHECKPOINTS_CHECKPOINTER_INTERNAL_H

#include "jobs/base/clock.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/checkpoints/cache_push.h"
#include "jobs/node/checkpoints/checkpoint_coordinator.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/checkpoints/passed.h"
#include "jobs/node/orders.h"
#include "jobs/store/store.h"

struct work {
	const struct agent_config *config;
	const struct claim *claim;
	struct store *store;
	const struct ckpt_kind *kind;
	struct ckpt_root root;    /* destination of complete checkpoints */
	struct store *remote;     /* store of the root; NULL: the root is a folder */
	bool awaits;              /* another program uploads to that store */
	const char *source;       /* folder that the command or the engine saves to */
	int64_t keep;             /* checkpoints to keep; 0: all */
	struct ckpt_watch *watch; /* NULL: no checkpoints to look after */
	struct checkpoint_coordinator
		*coordinator;    /* NULL: this node alone has all of each checkpoint */
	struct cache_push *push; /* NULL: no graphs to upload */
	struct passed passed;
	char *stuck; /* name of the last one that could not be handled */
	uint64_t changes;
	bool saving;          /* "saving" was sent, "saved" not yet */
	bool draining;        /* a drain waits for a mark */
	bool last;            /* in the last pass: its time may be short */
	bool cut;             /* the command did not reach its end */
	bool postponed;       /* nothing is copied or marked until the end, or a drain */
	struct utc looked_at; /* when the folder was last looked at */
	int quiet;            /* beats without a change */
	int news_fd;
	struct orders_reader orders;
	struct mono told;    /* when "copying" was last sent */
	uint64_t moved;      /* bytes moved until then */
	bool ended;          /* the agent, or the claim, is gone */
	bool away;           /* a service did not answer; it may later */
	char *trouble;       /* text of the last error sent */
	enum exit_code code; /* exit code of the last error */
	int os_errno;
};

/* Reports whether all complete checkpoints are where the next attempt would look for them. */
void checkpointer_lost_say(const struct work *work);

#endif
