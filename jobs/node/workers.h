/*
 * The agent's workers, the checkpointer (checkpointer.h), started with the command, and the
 * uploader (uploader.h), started with the agent. Each is started again when it died, up to
 * WORKER_RESTARTS times an hour. A training lasts for weeks, and a worker that dies now and then
 * costs nothing; one that dies again and again does not do its work: checkpoints are not marked, or
 * nobody sees that the claim has passed on. So the attempt is drained on all of its nodes and ends
 * as the fault of this one (STOPPED_WORKER), which the report tells at once ("worker", order.h). On
 * the way out each worker has a few last tries.
 */
#ifndef STK_NODE_WORKERS_H
#define STK_NODE_WORKERS_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

struct agent;

#define WORKER_RESTARTS 20 /* per hour */

enum worker_kind {
	WORKER_CHECKPOINTER,
	WORKER_UPLOADER,
	WORKER_PREFETCH, /* who starts it sees to it: workers_again() */
	WORKER_KINDS
};

struct worker {
	struct mono deaths[WORKER_RESTARTS + 1]; /* newest deaths, in a ring; ms 0: none */
	size_t next;                             /* place of the oldest */
	int last;                                /* starts on the way out */
	int status; /* waitpid() status of its last death; -1: it could not be started */
};

/* Budget of restarts, by itself. */
void worker_dies(struct worker *worker, int status, struct mono now);
bool worker_may_start(const struct worker *worker, struct mono now);

struct workers {
	struct worker kinds[WORKER_KINDS];
	struct err *lost; /* error about the worker that stays dead; NULL: none */
	bool drain_due;   /* the other nodes are not yet told to save and to stop */
};

/* Starts the checkpointer if it is needed and not running. */
void workers_keep(struct agent *agent);
/* Does the same for the uploader, which has the workspace in its hands. */
void workers_keep_uploader(struct agent *agent);
/* Starts the uploader now, whatever became of the one before. */
int workers_start_uploader(struct agent *agent, struct err **err);
/* To be called once a worker is reaped. */
void workers_died(struct agent *agent, enum worker_kind kind, int status);
/* True if a helper of this kind, which has died, may be started once more. */
bool workers_again(struct agent *agent, enum worker_kind kind);
/* Tells the other nodes, and the driver, of a worker that stays dead, if that is still to be
 * done. */
void workers_tell_lost(struct agent *agent);
void workers_release(struct workers *workers);

#endif
