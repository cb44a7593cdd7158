/*
 * Content of a cache, for people: entries with size and state, and the compile manifests that name
 * them. Memory use does not depend on the number of objects in the cache.
 */
#ifndef STK_CACHE_VERDICT_LISTING_H
#define STK_CACHE_VERDICT_LISTING_H

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/store/store.h"

/* A graph in a cache. Borrowed, until the callback returns. */
struct listing_graph {
	const struct compile_kind *kind;
	const char *key;
	const char *path;    /* path of the compiled graph, else of any of its objects */
	uint64_t size;       /* size of the compiled graph */
	uint64_t bytes;      /* size of all its objects */
	struct utc modified; /* time of the newest object */
	const char *tag;     /* tag of the compiled graph; "" if absent */
	unsigned roles;
	enum entry_state state; /* by size and markers; contents are not read */
};

/* Returns 0 to go on, 1 to stop, -1 on failure. */
typedef int (*listing_fn)(void *arg, const struct listing_graph *graph, struct err **err);

/* Calls `fn` for every graph of `kind` (NULL: of any kind), in the order of the store. */
int listing_each(struct store *store, const struct compile_kind *kind, listing_fn fn, void *arg,
		 struct err **err);

/* Finds one graph: returns 1 if found, 0 if absent, -1 with an error. The strings of `ret` are
 * valid until `ret_hold` is released. Lists no more than the kind needs; for a kind with places,
 * `graph` may lack its place (`ret->key` then has it). */
int listing_find(struct store *store, const struct compile_kind *kind, const char *graph,
		 struct listing_graph *ret, struct sb *ret_hold, struct err **err);

/* `cache ls`: one object per graph, {"graph","kind","path","size_bytes","modified",
 * "state","locks":[{"graph_key","name"}]}; "locks" are compile manifests. `fn` takes over the
 * reference. */
typedef int (*listing_row_fn)(void *arg, json_t *row, struct err **err);
int cache_list(struct store *store, listing_row_fn fn, void *arg, struct err **err);

struct cache_check {
	int64_t locks, graphs; /* usable manifests; distinct graphs that they name */
	int64_t ok, missing, truncated, changed; /* by result; changed: also spoilt */
	int64_t behind;                          /* manifests that need compile_manifest_refresh */
	int64_t others;                          /* entries that no manifest names */
	int64_t others_bad; /* empty or damaged ones among `others`; by form only with `deep` */
	int64_t damaged_locks;
};

/* `cache verify URL`: checks every graph of every manifest against the content; a graph is good if
 * any manifest of this cache pins its present bytes. Entries that no manifest names are checked
 * only by their size or, with `deep`, by their form too; entries that other jobs have extracted or
 * are compiling are good, stored failures are reported. Calls `fn` for each bad entry, and with
 * `all` for good ones too: {"graph","path","state","what","locks":[…]} and
 * {"lock","state":"damaged", "what"}. `only` (may be NULL) restricts it to the manifest of one
 * graph key. */
struct cache_check_options {
	const char *only;
	bool deep, all;
};
int cache_check(struct store *store, const struct cache_check_options *options, listing_row_fn fn,
		void *arg, struct cache_check *ret, struct err **err);

#endif
