/*
 * The uploader: a helper (helper.h) that talks to a workspace that is not a directory, and to a
 * compile cache that is not one, so that the agent never waits for a service: the command's output
 * must flow, and signals must be heard, while the service does not answer.
 *
 * The uploader uploads the report whenever it is new, the log in pieces (order.h) while it grows,
 * and what node 0 needs to know of the others; it looks whether the claim still holds, another node
 * has failed, or a drain is asked for; it renews the claim on the graph key. A failed request is
 * tried again and fails nothing else: a service that cannot be reached does not end a training.
 *
 * The log is node-<k>/log: stdout of the local engine's agents, elsewhere a copy of the output.
 *
 * node/upload: what leaves the node: log, reports, outputs, and the command's own stdout. It waits
 * for no reader.
 */
#ifndef STK_NODE_UPLOAD_UPLOADER_H
#define STK_NODE_UPLOAD_UPLOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/process/loop.h"
#include "jobs/node/claim.h"
#include "jobs/node/helper.h"
#include "jobs/node/setup/agent_config.h"

enum uploader_news {
	UPLOADER_SUPERSEDED,  /* another attempt holds the claim */
	UPLOADER_DRAIN,       /* DRAIN_FILE is there */
	UPLOADER_DRAINED,     /* DRAINED_FILE is there */
	UPLOADER_PEER_FAILED, /* FAILED_FILE is there */
	UPLOADER_HEAD_ENDED,  /* ENDED_FILE is there */
};
#define UPLOADER_NEWS (UPLOADER_HEAD_ENDED + 1)

typedef void (*uploader_fn)(void *arg, enum uploader_news news);

struct uploader {
	struct helper helper;
	struct loop *loop;
	struct watch *watch;
	uploader_fn fn;
	void *arg;
};

/* True if this node needs an uploader. */
bool uploader_needed(const struct agent_config *config);

/* Starts the uploader; `fn` is called from the loop, once for each kind of news. The child has
 * copies of config and claim as they are now. The calls below do nothing without an uploader. */
int uploader_start(struct uploader *uploader, const struct agent_config *config,
		   const struct claim *claim, struct loop *loop, uploader_fn fn, void *arg,
		   struct err **err);
/* Tells the uploader that the report's file is new. */
void uploader_report(struct uploader *uploader);
/* Tells the uploader that the claim is taken: from now on it sees that the claim holds. */
void uploader_claimed(struct uploader *uploader);
/* Tells the uploader that the last report is written and the log is over: it uploads what is left,
 * then ends. Waits for that until `end`; a signal to stop (SIGTERM, SIGINT, SIGHUP; blocked, as a
 * loop that listens to them has them) leaves `grace_ms` from then on: `end` is then that, also for
 * an uploader that is tried after this one. */
enum uploader_end {
	UPLOADER_BROUGHT, /* all of it is uploaded */
	UPLOADER_TOO_LATE,
	UPLOADER_DEAD /* not running, or it failed */
};
enum uploader_end uploader_finish(struct uploader *uploader, struct mono *end, int64_t grace_ms);
/* To be called once the uploader is reaped. */
void uploader_gone(struct uploader *uploader);
void uploader_release(struct uploader *uploader);

/* Runs in the child (uploader_work.c) and returns its exit status. */
int uploader_work(const struct agent_config *config, const struct claim *claim, int news_fd,
		  int orders_fd);

/* Orders of the agent, a byte each. */
#define UPLOADER_ORDER_REPORT  'r'
#define UPLOADER_ORDER_CLAIMED 'c'
#define UPLOADER_ORDER_LAST    'l'

/* Progress of other nodes, in node 0's folder. */
#define UPLOADER_PEER_FILE "peer-%d.json"

/* Interval of that exchange, milliseconds. */
#define UPLOADER_EXCHANGE_MS 30000

#endif
