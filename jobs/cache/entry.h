/*
 * The objects of one graph in a cache: compilers keep a graph in one object or in
 * several, and a bad graph is only mended where the right ones of them go.
 */
#ifndef STK_CACHE_ENTRY_H
#define STK_CACHE_ENTRY_H

#include "jobs/cache/kind.h"
#include "jobs/store/store.h"

/* 0 goes on, 1 stops, -1 fails. `role` as in struct entry_object; 0: the kind does not
 * know what lies there. */
typedef int (*entry_fn)(void *arg, const struct store_object *object, unsigned role,
			struct err **err);

/* Every object of a graph, in key order; `graph` is its key in listings. Lists nothing
 * else of the cache. What is no key of a graph has none. */
int entry_each(struct store *store, const struct compile_kind *kind, const char *graph, entry_fn fn,
	       void *arg, struct err **err);

/* Remove what a graph that is not as it should be left behind, so that it will be
 * compiled again: markers first, then what is compiled, a stored failure last, so
 * that it never looks better than it is. Its input, its flags and other files stay.
 * While somebody holds its lock, nothing is touched. `ret_removed` gets the keys. */
int entry_discard(struct store *store, const struct compile_kind *kind, const char *graph,
		  json_t **ret_removed, struct err **err);

/* Who holds a graph: its oldest lock. */
struct entry_lock {
	char *key; /* of the lock object; NULL: there is none */
	struct utc since;
};
int entry_lock_find(struct store *store, const struct compile_kind *kind, const char *graph,
		    struct entry_lock *ret, struct err **err);
void entry_lock_clear(struct entry_lock *lock); /* for AUTO() */

/* The compiler's own first words on why a graph failed, from the log that it stored
 * with the failure; NULL if there is none or it says nothing. Yours to free. */
char *entry_first_error(struct store *store, const struct compile_kind *kind, const char *graph);

#endif
