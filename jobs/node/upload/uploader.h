/*
 * The uploader: a helper (helper.h) that talks to the workspace, and to a compile cache that is not
 * a directory, so that the agent never waits for them while the command runs: the command's output
 * must flow, and signals must be heard, while a service does not answer or a network file system
 * hangs.
 *
 * It carries out what the agent orders (carry_out.h): the report, flags for the other nodes and, if
 * the workspace is a directory, the log. It looks whether the claim still holds, another node has
 * failed, or a drain is asked for; it tells the nodes of each other; it renews the claim on the
 * graph key. If the workspace is no directory it uploads the log in pieces (order.h) while it
 * grows, and tries again what failed: a service that cannot be reached does not end a training.
 *
 * The log is node-<k>/log: stdout of the local engine's agents, elsewhere a copy of the output. In
 * a directory only the uploader writes it, and goes on to the end of what it was given if the agent
 * is killed.
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
#include "jobs/node/news.h"
#include "jobs/node/orders.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"

enum uploader_news {
	UPLOADER_SUPERSEDED,  /* another attempt holds the claim */
	UPLOADER_DRAIN,       /* DRAIN_FILE is there */
	UPLOADER_DRAINED,     /* DRAINED_FILE is there */
	UPLOADER_PEER_FAILED, /* FAILED_FILE is there */
	UPLOADER_HEAD_ENDED,  /* ENDED_FILE is there */
	/* The kinds above are told once, the others as often as they are. */
	UPLOADER_LOOKED,   /* uploader_look() is carried out */
	UPLOADER_REPORTED, /* a report is in the directory: "state" */
	UPLOADER_REFUSED,  /* the workspace is not: "state", "why", "errno" */
	UPLOADER_LOG_LOST, /* the log cannot be written any more: "errno" */
	UPLOADER_FLAGGED,  /* uploader_flag() was tried: "name", "set" */
	UPLOADER_PEER,     /* progress of a node: "node", "text" */
	UPLOADER_SUM,      /* uploader_sum() is carried out: "for", "sum" */
	UPLOADER_DONE,     /* orders are carried out: "bytes" of them */
};
#define UPLOADER_NEWS (UPLOADER_DONE + 1)

typedef void (*uploader_fn)(void *arg, enum uploader_news news, const json_t *line);

struct uploader {
	struct helper helper;
	struct orders orders; /* live longer than one uploader */
	struct news news;
	struct loop *loop;
	uploader_fn fn;
	void *arg;
};

/* Orders may be given from now on, also while no uploader runs. */
void uploader_init(struct uploader *uploader, struct loop *loop, uploader_fn fn, void *arg);
/* Starts the uploader, another one if one was running; `fn` is called from the loop. The child has
 * copies of config and claim as they are now. */
int uploader_start(struct uploader *uploader, const struct agent_config *config,
		   const struct claim *claim, struct err **err);
/* The claim is taken: from now on the uploader sees that it holds. */
void uploader_claimed(struct uploader *uploader, int64_t restart);
/* The report is new. `text` NULL: its file is. */
void uploader_report(struct uploader *uploader, const char *state, const char *text);
/* Sets a flag for all nodes (node_flag.h). Takes ownership of the body. */
void uploader_flag(struct uploader *uploader, const char *name, json_t *body);
/* Publishes the progress of this node, or the times of its steps. */
void uploader_progress(struct uploader *uploader, const char *text);
void uploader_pace(struct uploader *uploader, const char *text);
/* Adds up the compile cache at this path; `what` comes back. */
void uploader_sum(struct uploader *uploader, const char *path, int64_t what);
/* Keeps a sample of what the node does, after this step: [figure, value, …] (jobs/base/usage.h).
 * Takes ownership of the values. */
void uploader_usage(struct uploader *uploader, int64_t step, json_t *values);
/* Looks at the workspace now. */
void uploader_look(struct uploader *uploader);
/* Makes the log durable. */
void uploader_sync(struct uploader *uploader);
/* Tells the uploader that the last report is written and the log is over: it uploads what is left,
 * then ends. Waits for that until `end`; a signal to stop (SIGTERM, SIGINT, SIGHUP; blocked, as a
 * loop that listens to them has them) leaves `grace_ms` from then on (below 0: as long as it
 * takes): `end` is then that, also for an uploader that is tried after this one. */
enum uploader_end {
	UPLOADER_BROUGHT, /* all of it is uploaded */
	UPLOADER_TOO_LATE,
	UPLOADER_DEAD /* not running, or it failed */
};
enum uploader_end uploader_finish(struct uploader *uploader, struct mono *end, int64_t grace_ms);
/* Carries out in this process what no uploader has; only where the workspace is a directory. */
void uploader_replace(struct uploader *uploader, const struct agent_config *config,
		      const struct claim *claim, struct store *store);
/* To be called once the uploader is reaped. */
void uploader_gone(struct uploader *uploader);
void uploader_release(struct uploader *uploader); /* { 0 } is fine */

/* Runs in the child (uploader_work.c) and returns its exit status. */
int uploader_work(const struct agent_config *config, const struct claim *claim, int news_fd,
		  int orders_fd);

#endif
