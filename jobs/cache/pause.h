/*
 * What a caller must not leave undone for long, while the graphs of a large cache in a
 * bucket are looked at one after the other: to renew a lease, say.
 */
#ifndef STK_CACHE_PAUSE_H
#define STK_CACHE_PAUSE_H

#include "jobs/base/err.h"

struct cache_pause {
	int (*fn)(void *arg, struct err **err); /* -1 ends the work; NULL: there is nothing */
	void *arg;
};

static inline int pause_call(const struct cache_pause *pause, struct err **err)
{
	return pause->fn ? pause->fn(pause->arg, err) : 0;
}

#endif
