/*
 * Callback for work that a caller must not delay for long, such as renewing a lease, while the
 * graphs of a large cache in a bucket are checked one after the other.
 */
#ifndef STK_CACHE_KINDS_PAUSE_H
#define STK_CACHE_KINDS_PAUSE_H

#include "jobs/base/err.h"

struct cache_pause {
	int (*fn)(void *arg, struct err **err); /* -1 ends the check; NULL: none */
	void *arg;
};

static inline int pause_call(const struct cache_pause *pause, struct err **err)
{
	return pause->fn ? pause->fn(pause->arg, err) : 0;
}

#endif
