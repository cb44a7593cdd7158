/*
 * State of the agent of one node of one attempt, and the services that all of its files need: the
 * report, the result, a word to the other nodes. agent.c calls none of the files that use it; the
 * steps in order are agent_main.c, the command is in command/.
 */
#ifndef STK_NODE_AGENT_H
#define STK_NODE_AGENT_H

#include <stdbool.h>

#include "jobs/base/process/loop.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/checkpoints/prefetch.h"
#include "jobs/node/claim.h"
#include "jobs/node/drain.h"
#include "jobs/node/health/health.h"
#include "jobs/node/report.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/node/tasks/tasks.h"
#include "jobs/node/upload/output_relay.h"
#include "jobs/node/upload/outputs.h"
#include "jobs/node/upload/uploader.h"
#include "jobs/node/usage/sampler.h"
#include "jobs/node/watchdog.h"
#include "jobs/node/workers.h"

struct agent {
	const char *order, *rank; /* as the command line has them; borrowed */
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
	struct watch *pipe_watch, *kill_timer, *look_timer, *late_timer;
	/* Called after news of the uploader, once the command has started. */
	void (*heard)(struct agent *agent);
	bool over;      /* the command has ended and is reaped */
	bool childless; /* no descendant of the command is left */
	int status;     /* status from waitpid(), valid once `over` */
	int kill_rounds;
	bool heirs_left;  /* a process that outlived the command has exited by itself */
	bool ended_due;   /* the other nodes have yet to be told that node 0 has ended */
	bool ended_asked; /* the uploader was asked to, and has not answered */
	bool looking;     /* the command has ended, and a last look for a drain is under way */
	bool head_ended;  /* node 0 has ended well, perhaps before our command starts */
	bool shown;       /* the workspace has a report of the running command */
	size_t leftovers;
	struct mono stop_at;  /* when we began to stop the command */
	struct mono told_at;  /* time of the first stop signal; ms 0: none yet */
	struct mono start_at; /* start of the command */
	int64_t oom_before;   /* host_evidence_oom_kills() at the start */

	struct watchdog watchdog;
	struct sampler sampler;
	struct drain drain;
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
	struct tasks tasks;           /* in place of the command, if the order has any */
	struct helper look;     /* likewise, if the order has it (look.h); pid 0: not started */
	struct outputs outputs; /* after the command is over */
	struct uploader uploader;
	struct workers workers; /* the checkpointer and the uploader */

	/* before the command starts */
	watch_fn step;     /* in progress; NULL once the command has started */
	int step_failures; /* of errors that may pass */

	/* how the agent ends */
	struct err *trouble;       /* our own failure that ended the command; else NULL */
	const char *stopped;       /* STOPPED_*, once we stop the command ourselves */
	const char *state;         /* REPORT_*, once decided */
	int exit;                  /* exit status of the agent */
	struct utc begun;          /* start of this process */
	int64_t claim_deadline_ms; /* monotonic clock */
	int64_t claim_pause_ms;    /* pause before the next look at the claim */
};

/* Writes the report with this state. In a workspace that is a directory the uploader does, and a
 * failure is its news (UPLOADER_REFUSED). */
int agent_report(struct agent *agent, const char *state, struct err **err);

/* Tells the other nodes that this one has failed with this exit status; the first to say so counts
 * for the attempt. */
void agent_tell_peers(struct agent *agent, int exit_status);

/* Sets the result and leaves the loop. */
void agent_finish(struct agent *agent, const char *state, int exit_status);
/* True if the step in progress is begun again after a pause, because it failed for a cause that may
 * pass. Takes ownership of the error then. */
bool agent_repeats(struct agent *agent, struct err **why);
/* Does the same as agent_finish(), for the agent's own failure; nothing if the step in progress is
 * begun again. Takes ownership of the error. */
void agent_fail(struct agent *agent, struct err **why, const char *class);

#endif
