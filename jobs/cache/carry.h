/*
 * What of a compile cache is carried to another place, and in which order, so that a reader
 * there never takes a graph for compiled before all of it has arrived: `cache pull`,
 * `cache push`, and what nodes do for a run.
 *
 * Of a graph its content goes first and then what says that it is good (the kind's marker);
 * the compile locks in `stoker/` go last. Locks of a compiler, and claims on graph keys, are
 * about that very cache and stay where they are. What is of no known kind is carried as it comes.
 */
#ifndef STK_CACHE_CARRY_H
#define STK_CACHE_CARRY_H

#include "jobs/cache/kind.h"
#include "jobs/store/sync.h"

/* As sync_options.stage; looks at the key alone, whatever kind it is of. `arg`: ignored. */
enum sync_stage cache_stage(void *arg, const char *key);

#endif
