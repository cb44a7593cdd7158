/*
 * Children of this process. With PR_SET_CHILD_SUBREAPER every orphan of the command becomes our
 * child, however it daemonised itself, so signalling all children again and again until none is
 * left reaches all of the command's processes.
 */
#ifndef STK_NODE_SUBREAPER_H
#define STK_NODE_SUBREAPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The processes could not be listed: nothing is known of them. */
#define SUBREAPER_UNKNOWN SIZE_MAX

/* Signals every child that is not a zombie, except `spared` (0: none), which are the agent's and
 * not the command's. Returns how many were signalled, or SUBREAPER_UNKNOWN. No child's pid can be
 * reused meanwhile: only we can reap it. Signal 0 only counts. */
size_t subreaper_signal(int signo, const pid_t *spared, size_t spared_count);

/* Signals the topmost processes of the command's tree that have a handler for this signal, and none
 * that would just die of it: a launcher or a shell passes nothing on, and a process with a handler
 * deals with its own children. Returns how many were signalled. */
size_t subreaper_notify(pid_t command, int signo);

#endif
