/*
 * Watches the command from its start until no process of it is left: passes its output on, reaps
 * children, and keeps the workers alive.
 */
#ifndef STK_NODE_COMMAND_COMMAND_WATCH_H
#define STK_NODE_COMMAND_COMMAND_WATCH_H

#include "jobs/base/err.h"

struct agent;

/* Makes a pipe; the command will hold its other end as stdout and stderr. */
int command_watch_open(struct agent *agent, int *ret_write_fd, struct err **err);
void command_watch_close(struct agent *agent);
/* The command runs: watches it, starts the checkpointer and reports "running". */
void command_watch_begin(struct agent *agent);

#endif
