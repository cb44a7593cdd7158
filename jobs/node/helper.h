/*
 * Helpers: children of the agent that do what may take time, so that the agent never misses a
 * heartbeat. A helper is the same program, and knows what it is given when it is started, as one
 * value; from then on each hears the other by a pipe of its own. A helper ends with its agent (the
 * uploader a moment later: uploader.h), and ignores signals to stop: the agent handles them and
 * tells its helpers. One may stand for the command instead (tasks.h). A write to a reader that is
 * gone, for instance a service, is an error of that write alone.
 */
#ifndef STK_NODE_HELPER_H
#define STK_NODE_HELPER_H

#include <stddef.h>
#include <sys/types.h>

#include "jobs/base/err.h"
#include "jobs/node/claim.h"
#include "jobs/node/setup/agent_config.h"

struct helper {
	pid_t pid;     /* 0: not running */
	int news_fd;   /* pipe from the helper; never blocks; -1: closed */
	int orders_fd; /* pipe to the helper; -1: closed */
};

/* Body of a helper: runs in the child and returns its exit status. `task`: what it was given.
 * `news_fd` takes its messages; `orders_fd` ends when the agent does. */
typedef int (*helper_fn)(const void *task, int news_fd, int orders_fd);

/* The task of a helper that works for the attempt: both as they are at the start. All that their
 * members point at stays the agent's, and unchanged. */
struct helper_task {
	struct agent_config config;
	struct claim claim;
};

/* Starts a helper with a task of `size` bytes, which is copied. SIGCHLD shows its end; the caller
 * reaps it. `name`: shown by ps, 15 bytes at most. */
int helper_start(struct helper *helper, const char *name, helper_fn fn, const void *task,
		 size_t size, struct err **err);
/* The same for a helper that stands for the command: it leads a session of its own, its stdout and
 * stderr are `out_fd`, and signals to stop take their usual effect. */
int helper_start_command(struct helper *helper, const char *name, helper_fn fn, const void *task,
			 size_t size, int out_fd, struct err **err);
/* Kills the helper at once. */
void helper_kill(const struct helper *helper);
void helper_close(struct helper *helper); /* closes our ends of the pipes */

#endif
