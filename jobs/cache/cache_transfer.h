/*
 * Order in which the objects of a compile cache are copied to another store, and which of them are,
 * so that a reader there never takes a graph for compiled before all of it has arrived. For `cache
 * pull`, `cache push`, and the nodes of a run.
 *
 * The content of a graph is copied first, then the object that says that it is good (the kind's
 * marker); the compile manifests in `stoker/` are copied last. Compiler locks and claims on graph
 * keys concern one cache only and are not copied. Objects of no known kind are copied in the order
 * of the listing.
 */
#ifndef STK_CACHE_CACHE_TRANSFER_H
#define STK_CACHE_CACHE_TRANSFER_H

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/store/sync.h"

/* A function for sync_options.stage; looks at the key alone, for all kinds. `arg` is ignored. */
enum sync_stage cache_stage(void *arg, const char *key);

#endif
