/*
 * Ends the command: SIGTERM to its group, after the grace SIGKILL to everything that descends from
 * it. Everything that decides to stop it calls this file: a signal, the claim, a drain, the
 * watchdog, the check-up, another node. It calls none of them.
 */
#ifndef STK_NODE_COMMAND_COMMAND_STOP_H
#define STK_NODE_COMMAND_COMMAND_STOP_H

#include <stddef.h>

struct agent;

/* Stops the command for the reason `why` (STOPPED_*); the first reason counts. If the command was
 * not started yet, it never is. */
void command_stop(struct agent *agent, const char *why);
/* The command has ended by itself: what it left behind has a moment to finish, then is ended. */
void command_stop_leftovers(struct agent *agent);
/* Signals all descendants of the command that have become our children; signal 0 only counts.
 * Returns how many, or SUBREAPER_UNKNOWN (subreaper.h). */
size_t command_stop_signal(const struct agent *agent, int signo);

#endif
