/*
 * stoker-node: the steps of one node of one attempt, in order.
 *
 *   read the order → report "starting" → claim the phase (node 0) or wait for
 *   the claim of our job (the others) → fresh source, folders, what must be
 *   fetched (fetch.h), environment → check-up of the node, alone and with the others
 *   (health.h) →
 *   start the command in its own process group → report "running" → pass its
 *   output on, look at the claim, forward signals, watch for stalls (watchdog.h),
 *   look after checkpoints (checkpointer.h), drain when asked (drain.h) → see that
 *   no process of the command is left → a last look at its checkpoints → upload its
 *   outputs (outputs.h) → report how it ended, exit with its status.
 *
 * Node 0 leaves last where its exit would end all nodes (main_node_exit.h).
 *
 * If the workspace is not a directory, the uploader (uploader.h) looks at it, and uploads
 * reports and the log.
 *
 * An early end takes the same way out: SIGTERM to the command's group, after the grace
 * SIGKILL to everything that descends from it, then the report.
 */
#ifndef STK_NODE_AGENT_H
#define STK_NODE_AGENT_H

#include <stdbool.h>

#include "jobs/base/process/loop.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/checkpoints/prefetch.h"
#include "jobs/node/claim.h"
#include "jobs/node/claim_renewal.h"
#include "jobs/node/drain.h"
#include "jobs/node/health/health.h"
#include "jobs/node/report.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/node/upload/output_relay.h"
#include "jobs/node/upload/outputs.h"
#include "jobs/node/upload/uploader.h"
#include "jobs/node/watchdog.h"
#include "jobs/node/workers.h"

struct agent {
	struct agent_config config;
	struct store *store;
	struct loop *loop;
	struct output_relay relay;
	struct report report;
	struct claim claim;
	struct command_env env;
	int lock_fd; /* node-<k>/lock */
	int log_fd;  /* node-<k>/log, if our output goes elsewhere; else -1 */

	/* the command */
	pid_t command; /* leads its own session and group; 0: not started */
	int pipe_fd;   /* command's stdout and stderr; -1: not open */
	struct watch *pipe_watch, *kill_timer;
	bool over;      /* the command has ended and is reaped */
	bool childless; /* no descendant of the command is left */
	int status;     /* status from waitpid(), valid once `over` */
	int kill_rounds;
	bool heirs_left; /* a process that outlived the command has exited by itself */
	bool ended_due;  /* the other nodes have yet to be told that node 0 has ended */
	size_t leftovers;
	struct mono stop_at;  /* when we began to stop the command */
	struct mono told_at;  /* time of the first stop signal; ms 0: none yet */
	struct mono start_at; /* start of the command */
	int64_t oom_before;   /* host_evidence_oom_kills() at the start */

	struct watchdog watchdog;
	struct drain drain;
	struct claim_renewal renewal;
	struct prefetch prefetch; /* before the command starts */
	struct health health;     /* before the command starts */
	struct checkpointer checkpointer;
	struct watch *checkpointer_timer;
	struct mono checkpointer_end; /* deadline of the last pass after a signal; ms 0: unknown */
	bool checkpointer_stuck;      /* the checkpointer was killed for its silence */
	bool pushed;                  /* every graph compiled here is in the cache */
	bool kept;                    /* every saved checkpoint is where it is looked for */
	struct err *lost;             /* why `kept` is false */
	char *lost_class;             /* failure class of `lost`; NULL: its errno decides */
	struct outputs outputs;       /* after the command is over */
	struct uploader uploader;     /* only where the workspace is far */
	struct workers workers;       /* both of them */

	/* how the agent ends */
	struct err *trouble;       /* our own failure that ended the command; else NULL */
	const char *stopped;       /* STOPPED_*, once we stop the command ourselves */
	const char *state;         /* REPORT_*, once decided */
	int exit;                  /* exit status of the agent */
	struct utc begun;          /* start of this process */
	int64_t claim_deadline_ms; /* monotonic clock */
	int64_t claim_pause_ms;    /* pause before the next look at the claim */
};

/* Runs the agent and returns its exit status. Prints only report lines to stdout; if no report is
 * possible, the reason goes to stderr. */
int agent_main(const char *program, const char *order, const char *rank);

/* Shared by agent.c and supervise.c. */

/* Starts the command and watches it until no process of it is left; then the loop quits with state
 * and exit set. Called from the loop. */
void supervise_start(struct agent *agent);
/* Stops the command for the reason `why` (STOPPED_*); the first reason counts. If the command was
 * not started yet, it never is. */
void supervise_stop(struct agent *agent, const char *why);

/* Tells the other nodes that node 0 has ended well (ENDED_FILE), if that is still due. */
void supervise_tell_ended(struct agent *agent);

/* Tells the other nodes that this one has failed with this exit status; the first to say so counts
 * for the attempt. */
void agent_tell_peers(struct agent *agent, int exit_status);

/* Handles the uploader's news about the workspace. */
void supervise_hear(void *agent, enum uploader_news news);

/* Writes the report with this state, here and, through the uploader, in a far workspace. */
int agent_report(struct agent *agent, const char *state, struct err **err);
int agent_start_uploader(struct agent *agent, struct err **err);

/* Sets the result and leaves the loop. */
void agent_finish(struct agent *agent, const char *state, int exit_status);
/* Same as agent_finish(), for the agent's own failure. Takes ownership of the error. */
void agent_fail(struct agent *agent, struct err **why, const char *class);

#endif
