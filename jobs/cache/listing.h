/*
 * What a cache holds, for people: entries with size and state, and which locks
 * name them. Memory stays flat, however many objects the cache has.
 */
#ifndef STK_CACHE_LISTING_H
#define STK_CACHE_LISTING_H

#include "jobs/cache/kind.h"
#include "jobs/cache/lock.h"
#include "jobs/store/store.h"

/* One graph in a cache. Borrowed, until the callback returns. */
struct listing_graph {
	const struct compile_kind *kind;
	const char *key;
	const char *path;    /* of the compiled graph, else of any object of it */
	uint64_t size;       /* of the compiled graph */
	uint64_t bytes;      /* of all its objects */
	struct utc modified; /* the newest of them */
	const char *tag;     /* of the compiled graph; "" if it is not there */
	unsigned roles;
	enum entry_state state; /* by size and markers; contents are not read */
};

/* 0 goes on, 1 stops, -1 fails. */
typedef int (*listing_fn)(void *arg, const struct listing_graph *graph, struct err **err);

/* Every graph of `kind` (NULL: of any kind), in the order of the store. */
int listing_each(struct store *store, const struct compile_kind *kind, listing_fn fn, void *arg,
		 struct err **err);

/* One graph: 1 found, 0 nothing of it. The strings of `ret` are valid until
 * `ret_hold` is released. Lists no more than the kind needs; of a kind whose graphs
 * are placed, `graph` may be without its place (`ret->key` then has it). */
int listing_find(struct store *store, const struct compile_kind *kind, const char *graph,
		 struct listing_graph *ret, struct sb *ret_hold, struct err **err);

/* `cache ls`: one object a graph, {"graph","kind","path","size","modified",
 * "state","locks":[{"graph_key","name"}]}. `fn` takes the reference. */
typedef int (*listing_row_fn)(void *arg, json_t *row, struct err **err);
int cache_list(struct store *store, listing_row_fn fn, void *arg, struct err **err);

struct cache_check {
	int64_t locks, graphs;                   /* usable locks; distinct graphs that they name */
	int64_t ok, missing, truncated, changed; /* of these; changed: also spoilt */
	int64_t behind;     /* locks to which lock_refresh has yet to be applied */
	int64_t others;     /* entries that no lock names */
	int64_t others_bad; /* of these: empty, or (deep) damaged */
	int64_t damaged_locks;
};

/* `cache verify URL`: every graph of every lock against the content, well if any
 * lock of this cache pins what is there; entries
 * that no lock names only by their size, or, with `deep`, by their form too; those
 * that others have extracted or are compiling are well, stored failures are told.
 * `fn` gets what is not well, and the well ones too with `all`:
 * {"graph","path","state","what","locks":[…]} and {"lock","state":"damaged",
 * "what"}. `only` (may be NULL) restricts it to the lock of one graph key. */
struct cache_check_options {
	const char *only;
	bool deep, all;
};
int cache_check(struct store *store, const struct cache_check_options *options, listing_row_fn fn,
		void *arg, struct cache_check *ret, struct err **err);

#endif
