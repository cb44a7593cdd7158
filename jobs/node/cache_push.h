/*
 * Brings what the compiler adds to this node's folder (fetch.h) to the compile cache, as
 * long as the command runs and once more when it is over. An entry goes when it has not
 * changed between two looks and its form is whole; a cut one stays behind. Content goes
 * before the markers that vouch for it. What the cache has already stays as it is: a
 * compiler does not replace what is there either.
 */
#ifndef STK_NODE_CACHE_PUSH_H
#define STK_NODE_CACHE_PUSH_H

#include <stdbool.h>

#include "jobs/base/json.h"
#include "jobs/node/task.h"

struct cache_push;

/* Opens both stores. Only for a task that has such a folder. */
int cache_push_open(const struct task *task, struct cache_push **ret, struct err **err);
void cache_push_freep(struct cache_push **push); /* for AUTO() */

/* Look once; `at_end`: nobody writes any more. `fn` (may be NULL) is called for each entry
 * that is on its way. -1: not everything could be brought; look again. */
typedef void (*cache_push_fn)(void *arg);
int cache_push_look(struct cache_push *push, bool at_end, cache_push_fn fn, void *arg,
		    struct err **err);
/* The same; a new reference to what the keeper has to say of it (keeper.h), NULL: nothing. */
json_t *cache_push_news(struct cache_push *push, bool at_end, cache_push_fn fn, void *arg);

#endif
