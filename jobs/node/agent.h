/*
 * stoker-node: what happens on one node of one attempt, in order.
 *
 *   read the order → report "starting" → claim the phase (node 0) or wait for
 *   the claim of our job (the others) → fresh source, folders, what must be
 *   fetched (fetch.h), environment → check-up of the node, alone and with the others
 *   (health.h) →
 *   start the command in its own process group → report "running" → pass its
 *   output on, look at the claim, forward signals, watch for stalls (watchdog.h),
 *   look after checkpoints (keeper.h), drain when asked (drain.h) → see that
 *   nothing of it is left → a last look at its checkpoints → report how it ended,
 *   exit with its status.
 *
 * Node 0 leaves last where its end would be the end of all (farewell.h).
 *
 * Where the workspace is no directory, the courier (courier.h) looks at it, and brings
 * reports and the log there.
 *
 * Whatever ends it early goes the same way out: SIGTERM to the command's group,
 * after the grace SIGKILL to everything that descends from it, then the report.
 */
#ifndef STK_NODE_AGENT_H
#define STK_NODE_AGENT_H

#include <stdbool.h>

#include "jobs/base/loop.h"
#include "jobs/node/claim.h"
#include "jobs/node/courier.h"
#include "jobs/node/drain.h"
#include "jobs/node/envlist.h"
#include "jobs/node/errand.h"
#include "jobs/node/health.h"
#include "jobs/node/keeper.h"
#include "jobs/node/relay.h"
#include "jobs/node/renewal.h"
#include "jobs/node/report.h"
#include "jobs/node/task.h"
#include "jobs/node/watchdog.h"

struct agent {
	struct task task;
	struct store *store;
	struct loop *loop;
	struct relay relay;
	struct report report;
	struct claim claim;
	struct envlist env;
	int lock_fd; /* node-<k>/lock */
	int log_fd;  /* node-<k>/log, where our output goes elsewhere; else -1 */

	/* the command */
	pid_t command; /* leads its own session and group; 0: not started */
	int pipe_fd;   /* its stdout and stderr; -1: not open */
	struct watch *pipe_watch, *kill_timer;
	bool over;      /* it has ended and is reaped */
	bool childless; /* nothing that descends from it is left */
	int status;     /* of waitpid, once over */
	int kill_rounds;
	bool heirs_left; /* what it left behind has come to an exit of its own */
	bool ended_due;  /* others are to be told that node 0 has ended, and are not yet */
	size_t leftovers;
	struct mono stop_at;  /* when we began to stop it */
	struct mono told_at;  /* when the first signal told us to stop; ms 0: none has */
	struct mono start_at; /* of the command */
	int64_t oom_before;   /* oom_kills() then */

	struct watchdog watchdog;
	struct drain drain;
	struct renewal renewal;
	struct errand errand; /* before the command starts */
	struct health health; /* the same */
	struct keeper keeper;
	struct watch *keeper_timer;
	int keeper_starts;
	struct mono keeper_end; /* of its last pass, after a signal; ms 0: not yet known */
	bool keeper_stuck;      /* it was killed for its silence */
	bool pushed;            /* all that was compiled here is in the cache */
	bool kept;              /* all that was saved is where it is looked for */
	struct err *lost;       /* why not */
	char *lost_class;       /* NULL: its number tells */
	struct courier courier; /* where the workspace is far; else there is none */
	int courier_starts;

	/* how it goes out */
	struct err *trouble;       /* why we could not go on, where it is our failure */
	const char *stopped;       /* STOPPED_*, once we stop it ourselves */
	const char *state;         /* REPORT_*, once decided */
	int exit;                  /* of the agent */
	struct utc begun;          /* this process */
	int64_t claim_deadline_ms; /* mono */
	int64_t claim_pause_ms;    /* before the next look at it */
};

/* The whole of it; the exit status. Prints only report lines to stdout, and to
 * stderr why there can be none. */
int agent_main(const char *program, const char *order, const char *rank);

/* Between agent.c and supervise.c. */

/* Start the command and watch it until nothing of it is left; then the loop
 * quits with state and exit set. Called from the loop. */
void supervise_start(struct agent *agent);
/* Stop it for this reason (STOPPED_*), the first one that counts. Also before it
 * was started: then it never is. */
void supervise_stop(struct agent *agent, const char *why);

/* Tell the others that node 0 has ended well (ENDED_FILE), if that is still to be told. */
void supervise_tell_ended(struct agent *agent);

/* Tell the other nodes that this one has failed with this exit status; the first
 * to say so stands for the attempt. */
void agent_tell_peers(struct agent *agent, int exit_status);

/* What the courier has seen in the workspace. */
void supervise_hear(void *agent, enum courier_news news);

/* Write the report with this state, for who reads it here and elsewhere. */
int agent_report(struct agent *agent, const char *state, struct err **err);
int agent_start_courier(struct agent *agent, struct err **err);

/* The keeper showed that it is at work: it may go on for a while. */
void supervise_keeper_lives(struct agent *agent);

/* Decide how it went and leave the loop. */
void agent_finish(struct agent *agent, const char *state, int exit_status);
/* The same for the agent's own failure; takes the error. */
void agent_fail(struct agent *agent, struct err **why, const char *class);

#endif
