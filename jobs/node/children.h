/*
 * The processes that this one is the parent of. With PR_SET_CHILD_SUBREAPER
 * every orphan of the command comes to us, however it daemonised itself, so
 * whoever signals all children again and again until none is left has got all.
 */
#ifndef STK_NODE_CHILDREN_H
#define STK_NODE_CHILDREN_H

#include <stddef.h>
#include <sys/types.h>

/* Send to every child that is not a zombie, except `spared` (0: none), which are ours and
 * not the command's; how many those were. No child's pid can be reused meanwhile:
 * only we can reap it. Signal 0 only counts. */
size_t children_signal(int signo, const pid_t *spared, size_t spared_count);

/* Send to the topmost processes of the command's tree that have a handler for this
 * signal, and to none that would just die of it: a launcher or a shell passes
 * nothing on, and what a handler's owner started is its own affair. How many. */
size_t children_notify(pid_t command, int signo);

#endif
