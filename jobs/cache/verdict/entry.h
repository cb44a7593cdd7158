/*
 * The objects of one graph in a cache: compilers store a graph in one object or in several, and a
 * bad graph is repaired only by deleting the right ones.
 */
#ifndef STK_CACHE_VERDICT_ENTRY_H
#define STK_CACHE_VERDICT_ENTRY_H

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/store/store.h"

/* Returns 0 to go on, 1 to stop, -1 on failure. `role` is as in struct entry_object; 0: the kind
 * does not know the object. */
typedef int (*entry_fn)(void *arg, const struct store_object *object, unsigned role,
			struct err **err);

/* Calls `fn` for every object of a graph, in key order; `graph` is its key in listings. Lists
 * nothing else of the cache. An invalid key has no objects. */
int entry_each(struct store *store, const struct compile_kind *kind, const char *graph, entry_fn fn,
	       void *arg, struct err **err);

/* Removes the remains of a bad graph, so that it will be compiled again: markers first, then the
 * compiled graph, a stored failure last, so that the graph never looks better than it is. Its
 * input, its flags and other files are kept. If the graph is locked, nothing is removed.
 * `ret_removed` gets the keys. */
int entry_discard(struct store *store, const struct compile_kind *kind, const char *graph,
		  json_t **ret_removed, struct err **err);

/* Oldest lock of a graph. */
struct entry_lock {
	char *key; /* key of the lock object; NULL: none */
	struct utc since;
};
int entry_lock_find(struct store *store, const struct compile_kind *kind, const char *graph,
		    struct entry_lock *ret, struct err **err);
void entry_lock_clear(struct entry_lock *lock); /* for AUTO() */

/* The compiler's first error message for a graph, from the log that it stored with the failure;
 * NULL if not found. The caller frees it. */
char *entry_first_error(struct store *store, const struct compile_kind *kind, const char *graph);

#endif
