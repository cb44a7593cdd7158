/*
 * Locks of single graphs that an attempt of this run left behind: a compiler that is
 * killed does not let go of what it holds, and who comes later passes such a graph
 * over, or waits for ever.
 *
 * A lock tells nothing of who made it, and a cache is shared. It is taken for the
 * attempt's own, and removed, only where all of this holds:
 *
 * - nothing of the attempt runs any more, on any node (whoever calls knows that);
 * - the last word of its logs on this graph is that it called the compiler on it, which
 *   the framework does only while it holds the lock: that the graph was extracted
 *   proves nothing, another job may have taken the lock after that;
 * - its logs never say that it waited for another process to compile this graph;
 * - the lock was made while the attempt's command ran, and the graph is not done;
 * - the cache is a directory. How locks are taken in an object store is not documented.
 *
 * A lock exists once: nobody can have taken this one as long as it is there, so what is
 * removed is what was judged. Where any of it is not known the lock stays, and the
 * verdict's hint names all that are left.
 */
#ifndef STK_CACHE_OWN_LOCKS_H
#define STK_CACHE_OWN_LOCKS_H

#include "jobs/cache/book.h"
#include "jobs/store/store.h"

struct own_locks {
	const struct compile_kind *kind;
	struct store *store;           /* the cache */
	const struct graph_book *book; /* the attempt's logs, read to their end */
	/* From when until when its command ran, UTC in ms by its machine's clock: to its last
	 * sign of life where it was killed. 0: not known, and then nothing is removed. */
	int64_t began_ms, ended_ms;
};

/* Remove them. `ret_removed` gets [{"graph","path","state":"locked","keys":[…]}], one row
 * a graph; [] for none. */
int own_locks_clear(const struct own_locks *request, json_t **ret_removed, struct err **err);

#endif
