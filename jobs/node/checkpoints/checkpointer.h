/*
 * The checkpointer: a child process of the agent that looks after checkpoints (on node 0, and on
 * each node if they have no folder in common: checkpoint_coordinator.h) and uploads compiled
 * graphs to a cache that is not a folder (on each node). Listing, proving and copying may take
 * minutes on a slow file system; in a process of their own they never delay the agent's heartbeat.
 *
 * Each beat: see what changed beneath the checkpoint folder → copy each checkpoint that has
 * settled and proves complete to the root (if that is another folder) → read the claim once more
 * → mark → remove surplus checkpoints where `keep` says so. When the command is over there is one
 * last pass in which nothing needs to settle any more, and the newest comes first. The checkpointer
 * ends by itself, and with its agent.
 *
 * node/checkpoints: checkpoints and graphs while the command runs. Complete checkpoints are marked
 * and copied, unusable ones reported; the one to resume from is fetched. The driver decides which
 * checkpoint is chosen.
 */
#ifndef STK_NODE_CHECKPOINTS_CHECKPOINTER_H
#define STK_NODE_CHECKPOINTS_CHECKPOINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/js.h"
#include "jobs/node/claim.h"
#include "jobs/node/helper.h"
#include "jobs/node/news.h"
#include "jobs/node/orders.h"
#include "jobs/node/setup/agent_config.h"

enum checkpointer_news {
	CHECKPOINTER_SAVING,   /* something beneath the checkpoint folder has changed */
	CHECKPOINTER_SAVED,    /* nothing beneath the checkpoint folder is unfinished */
	CHECKPOINTER_MARKED,   /* `news` holds "step" and "url" */
	CHECKPOINTER_COPYING,  /* a copy makes progress */
	CHECKPOINTER_PASSED,   /* a checkpoint that will not be used, as in passed.h */
	CHECKPOINTER_PARTIAL,  /* after the last pass: "name" and "why" of an unmarked checkpoint */
	CHECKPOINTER_TROUBLE,  /* "why": an error; the checkpointer goes on */
	CHECKPOINTER_PUSHED,   /* after the last pass: all graphs are cached; "brought", "cut" */
	CHECKPOINTER_UNPUSHED, /* "why": not all graphs could be uploaded yet */
	CHECKPOINTER_LOST, /* after the last pass: complete ones are not in the root, or not marked:
			    * "why", "class" (may be absent), "errno" */
	CHECKPOINTER_KEPT  /* after the last pass: no checkpoint is lost */
};

typedef void (*checkpointer_fn)(void *arg, enum checkpointer_news kind, const json_t *news);

struct checkpointer {
	struct helper helper;
	bool last_pass; /* the last pass was asked for */
	struct news news;
	struct orders orders; /* to this one alone: none waits for another checkpointer */
	checkpointer_fn fn;
	void *arg;
};

/* True if this node has checkpoints to look after; checkpointer_needed() also if it has
 * graphs to upload. */
bool checkpointer_has_checkpoints(const struct agent_config *config);
bool checkpointer_needed(const struct agent_config *config);

/* Starts the checkpointer; `fn` is then called from the loop. SIGCHLD shows its end: the caller
 * reaps it and calls checkpointer_gone(). The child has copies of config and claim. */
int checkpointer_start(struct checkpointer *checkpointer, const struct agent_config *config,
		       const struct claim *claim, struct loop *loop, checkpointer_fn fn, void *arg,
		       struct err **err);
/* Tells the checkpointer that a drain waits for a mark. */
void checkpointer_drain(struct checkpointer *checkpointer);
/* Tells the checkpointer that the command is over: one last pass, then it ends. `cut`: the command
 * did not reach its end, and may have been about to save more. */
void checkpointer_finish(struct checkpointer *checkpointer, bool cut);
/* Kills the checkpointer at once. */
void checkpointer_kill(struct checkpointer *checkpointer);
/* To be called once the checkpointer is reaped; handles the news that it left. */
void checkpointer_gone(struct checkpointer *checkpointer);
void checkpointer_release(struct checkpointer *checkpointer); /* for AUTO(); { 0 } is fine */

/* Runs in the child and returns its exit status. `news_fd` takes lines of JSON; `orders_fd` gives
 * orders (orders.h) of the kinds CHECKPOINTER_ORDER_*, or ends. In checkpointer_work.c. */
#define CHECKPOINTER_ORDER_LAST  "last" /* "cut": the command was cut off */
#define CHECKPOINTER_ORDER_DRAIN "drain"
int checkpointer_work(const struct agent_config *config, const struct claim *claim, int news_fd,
		      int orders_fd);

#endif
