/*
 * The keeper: a child process of the agent that looks after checkpoints (node 0, and each
 * node where they have no folder in common: shards.h) and
 * brings compiled graphs to a cache that is no folder (each node), so that listing,
 * proving and copying, which may take minutes on a slow file system, never keep the
 * agent from its heartbeat.
 *
 * Each beat: see what changed beneath the checkpoint folder → whatever has settled
 * and proves complete is copied to the root (if that is another folder) → the claim
 * is read once more → marked → surplus ones are removed where `keep` says so.
 * When the command is over there is one last pass in which nothing needs to settle
 * any more, and the newest comes first. It ends by itself, and with its agent.
 */
#ifndef STK_NODE_KEEPER_H
#define STK_NODE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/base/loop.h"
#include "jobs/base/sb.h"
#include "jobs/node/claim.h"
#include "jobs/node/helper.h"
#include "jobs/node/task.h"

enum keeper_news {
	KEEPER_SAVING,   /* something beneath the checkpoint folder has changed */
	KEEPER_SAVED,    /* nothing there is unfinished any more */
	KEEPER_MARKED,   /* `news` holds "step" and "url" */
	KEEPER_COPYING,  /* still at it */
	KEEPER_PARTIAL,  /* after the last pass: "name" and "why" of one not marked */
	KEEPER_TROUBLE,  /* "why": it goes on all the same */
	KEEPER_PUSHED,   /* after the last pass: all graphs are in the cache; "brought", "cut" */
	KEEPER_UNPUSHED, /* "why": not all of them could be brought there yet */
	KEEPER_LOST,     /* after the last pass: complete ones are not in the root, or not marked:
			  * "why", "class" (may be absent), "errno" */
	KEEPER_KEPT      /* after the last pass: there are no such */
};

typedef void (*keeper_fn)(void *arg, enum keeper_news kind, const json_t *news);

struct keeper {
	struct helper helper;
	bool last_pass; /* asked for */
	struct loop *loop;
	struct watch *watch;
	struct sb text;
	keeper_fn fn;
	void *arg;
};

/* Does this task have checkpoints to look after, or graphs to bring away? */
bool keeper_has_checkpoints(const struct task *task);
bool keeper_needed(const struct task *task);

/* Start it; `fn` is then called from the loop. Its end shows as SIGCHLD: the
 * caller reaps it and says so with keeper_gone(). Store, claim and task must stay
 * as they are. */
int keeper_start(struct keeper *keeper, const struct task *task, const struct claim *claim,
		 struct loop *loop, keeper_fn fn, void *arg, struct err **err);
/* A mark is waited for. */
void keeper_hurry(const struct keeper *keeper);
/* The command is over: one last pass, then end. `cut`: it did not come to its end, so what it
 * has not saved it may have been about to save. */
void keeper_finish(struct keeper *keeper, bool cut);
/* End at once, whatever it is doing. */
void keeper_kill(struct keeper *keeper);
/* It was reaped; what it still had to say is heard now. */
void keeper_gone(struct keeper *keeper);
void keeper_release(struct keeper *keeper); /* for AUTO(); { 0 } is fine */

/* In the child: the whole of it. `news_fd` takes lines of JSON, `orders_fd` gives
 * KEEPER_ORDER_*, or ends. In keeper_work.c. */
#define KEEPER_ORDER_LAST  'L'
#define KEEPER_ORDER_CUT   'C' /* the last pass, after a command that was cut off */
#define KEEPER_ORDER_HURRY 'H'
int keeper_work(const struct task *task, const struct claim *claim, int news_fd, int orders_fd);

#endif
