/*
 * The courier: a helper (helper.h) that talks to a workspace which is no directory, and
 * to a compile cache that is none, so that the agent never waits for a service: the
 * command's output must flow, and signals must be heard, while that does not answer.
 *
 * It brings the report there whenever that is new, the log in pieces (order.h) while it
 * grows, and what node 0 needs to know of the others; it looks whether the claim still
 * holds, another node has failed, or a drain is wished for; it renews the claim on the
 * graph key. What does not work is tried again, and is nobody's failure: who cannot
 * be reached does not end a training.
 *
 * Only the local engine's agents have a log to bring: their stdout is the file.
 */
#ifndef STK_NODE_COURIER_H
#define STK_NODE_COURIER_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/loop.h"
#include "jobs/node/claim.h"
#include "jobs/node/helper.h"
#include "jobs/node/task.h"

enum courier_news {
	COURIER_SUPERSEDED,  /* another attempt holds the claim */
	COURIER_DRAIN,       /* DRAIN_FILE is there */
	COURIER_DRAINED,     /* DRAINED_FILE is there */
	COURIER_PEER_FAILED, /* FAILED_FILE is there */
	COURIER_HEAD_ENDED,  /* ENDED_FILE is there */
};
#define COURIER_NEWS (COURIER_HEAD_ENDED + 1)

typedef void (*courier_fn)(void *arg, enum courier_news news);

struct courier {
	struct helper helper;
	struct loop *loop;
	struct watch *watch;
	courier_fn fn;
	void *arg;
};

/* Does this task need one? */
bool courier_needed(const struct task *task);

/* Start it; `fn` is called from the loop, once for each kind of news. Task and claim must
 * stay as they are. The calls below do nothing without one. */
int courier_start(struct courier *courier, const struct task *task, const struct claim *claim,
		  struct loop *loop, courier_fn fn, void *arg, struct err **err);
/* The report's file is new. */
void courier_report(const struct courier *courier);
/* The claim was taken: from now on see that it holds. */
void courier_claimed(const struct courier *courier);
/* The last report is written, the log is over: bring what is left, then end. Waits for
 * that until `end`; a signal that tells to stop (SIGTERM, SIGINT, SIGHUP; blocked, as a loop
 * that listens to them has them) leaves it `grace_ms` from then on: `end` is then that, for
 * the one that is tried after it too. */
enum courier_end {
	COURIER_BROUGHT, /* all of it is there */
	COURIER_TOO_LATE,
	COURIER_DEAD /* there was none, or it failed */
};
enum courier_end courier_finish(struct courier *courier, struct mono *end, int64_t grace_ms);
/* It was reaped. */
void courier_gone(struct courier *courier);
void courier_release(struct courier *courier);

/* In the child: the whole of it (courier_work.c). */
int courier_work(const struct task *task, const struct claim *claim, int news_fd, int orders_fd);

/* What the agent tells it, a byte each. */
#define COURIER_ORDER_REPORT  'r'
#define COURIER_ORDER_CLAIMED 'c'
#define COURIER_ORDER_LAST    'l'

/* Where it puts what other nodes tell, in node 0's folder. */
#define COURIER_PEER_FILE "peer-%d.json"

/* How often nodes exchange that, milliseconds. */
#define COURIER_EXCHANGE_MS 30000

#endif
