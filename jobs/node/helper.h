/*
 * Helpers: children of the agent that do for it what may take its time, so that the
 * agent never misses a heartbeat. A helper is the same program and knows what the agent
 * knew when it was started; from then on each hears the other by a pipe of its own. It
 * ends with its agent, and heeds no signal: whoever stops the agent is told by that.
 */
#ifndef STK_NODE_HELPER_H
#define STK_NODE_HELPER_H

#include <sys/types.h>

#include "jobs/base/err.h"

struct helper {
	pid_t pid;     /* 0: there is none (any more) */
	int news_fd;   /* what it has to say; never blocks; -1: closed */
	int orders_fd; /* what it is told; -1: closed */
};

/* What a helper does, in the child, until it returns its exit status. `news_fd` takes
 * what it says, `orders_fd` ends when its agent does. */
typedef int (*helper_fn)(const void *arg, int news_fd, int orders_fd);

/* Its end shows as SIGCHLD; the caller reaps it. */
int helper_start(struct helper *helper, helper_fn fn, const void *arg, struct err **err);
/* End it at once, whatever it is doing. */
void helper_kill(const struct helper *helper);
void helper_close(struct helper *helper); /* our ends of the pipes */

#endif
