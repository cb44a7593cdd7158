/*
 * The processes that this one is the parent of. With PR_SET_CHILD_SUBREAPER
 * every orphan of the command comes to us, however it daemonised itself, so
 * whoever signals all children again and again until none is left has got all.
 */
#ifndef STK_NODE_CHILDREN_H
#define STK_NODE_CHILDREN_H

#include <stddef.h>

/* Send to every child that is not a zombie; how many those were. No child's pid
 * can be reused meanwhile: only we can reap it. */
size_t children_signal(int signo);

#endif
