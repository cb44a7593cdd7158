/*
 * Compiler locks of single graphs that an attempt of this run left behind: a compiler that is
 * killed does not release its locks, and a later one skips such a graph, or waits for ever.
 *
 * A lock does not say which process made it, and a cache is shared. A lock is taken for the
 * attempt's own, and removed, only if all of this holds:
 *
 * - nothing of the attempt runs any more, on any node (the caller must ensure that);
 * - the last message on this graph in its logs is that the compiler was called, which the
 *   framework does only while it holds the lock (a message that the graph was extracted proves
 *   nothing: another job may have taken the lock after that);
 * - its logs never say that it waited for another process to compile this graph;
 * - the lock was made while the attempt's command ran, and the graph is not done;
 * - the cache is a directory. How locks are taken in an object store is not documented.
 *
 * A lock exists once: no other process can take it while it exists, so the lock removed is the lock
 * judged. If any of the conditions is unknown, the lock is kept, and the verdict's hint names all
 * that are left.
 */
#ifndef STK_CACHE_MANIFEST_ORPHANED_OWN_LOCKS_H
#define STK_CACHE_MANIFEST_ORPHANED_OWN_LOCKS_H

#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/store/store.h"

struct orphaned_own_locks {
	const struct compile_kind *kind;
	struct store *store;             /* the cache */
	const struct graph_tally *tally; /* the attempt's logs, read to their end */
	/* Start and end of the attempt's command, UTC in ms by its machine's clock; the end is the
	 * last sign of life if the command was killed. 0: unknown, and then no lock is removed. */
	int64_t began_ms, ended_ms;
};

/* Removes the locks. `ret_removed` gets [{"graph","path","state":"locked","keys":[…]}], one row per
 * graph; [] for none. */
int orphaned_own_locks_clear(const struct orphaned_own_locks *request, json_t **ret_removed,
			     struct err **err);

#endif
