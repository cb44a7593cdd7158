/*
 * Uploads what the compiler adds to this node's folder (fetch.h) to the compile cache, while the
 * command runs and once more when it is over. An entry is uploaded when it has not changed
 * between two looks and its form is whole; a cut entry stays behind. Content goes before the
 * markers that vouch for it. Entries that the cache has already are not replaced: a compiler does
 * not replace them either.
 */
#ifndef STK_NODE_CHECKPOINTS_CACHE_PUSH_H
#define STK_NODE_CHECKPOINTS_CACHE_PUSH_H

#include <stdbool.h>

#include "jobs/base/text/js.h"
#include "jobs/node/setup/agent_config.h"

struct cache_push;

/* Opens both stores. Only if the order has such a folder. */
int cache_push_open(const struct agent_config *config, struct cache_push **ret, struct err **err);
void cache_push_freep(struct cache_push **push); /* for AUTO() */

/* Looks once; `at_end`: no process writes any more. `fn` (may be NULL) is called before each entry
 * is uploaded. Returns -1 if not everything could be uploaded; call again. */
typedef void (*cache_push_fn)(void *arg);
int cache_push_scan(struct cache_push *push, bool at_end, cache_push_fn fn, void *arg,
		    struct err **err);
/* Does the same as cache_push_scan(), but returns a new reference to the checkpointer's news of it
 * (checkpointer.h); NULL if it has none. */
json_t *cache_push_news(struct cache_push *push, bool at_end, cache_push_fn fn, void *arg);

#endif
