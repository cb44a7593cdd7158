/*
 * `cache gc`: finds and deletes old graphs in a compile cache.
 *
 * A graph is deleted as a whole or not at all, and only if
 *
 * - no compile manifest of the cache names it, whatever content that pins;
 * - none of its objects is younger than the given age (by the store's times: a copy that kept the
 *   times of its original counts as that old);
 * - its compiler has no lock file there: with one, the graph is being compiled, or was when its
 *   compiler died;
 * - its kind knows every object of it.
 *
 * Objects that belong to no graph, compile manifests and compiler locks are never touched. A
 * manifest that cannot be read may name any graph: then nothing is deleted.
 *
 * The cache is shared. So objects and manifests are checked again right before each deletion; a run
 * that writes a graph into a manifest between that check and the deletion finds it missing and
 * compiles it again. Objects are deleted in an order in which an interrupted deletion leaves no
 * graph that looks compiled.
 */
#ifndef STK_CACHE_GC_H
#define STK_CACHE_GC_H

#include "jobs/cache/verdict/listing.h"

/* Minimum age in milliseconds, one day: younger graphs are always kept, because their run may not
 * have written its manifest yet. */
#define GC_AGE_LEAST ((int64_t)24 * 3600 * 1000)

struct gc_options {
	struct utc now;
	int64_t older_ms; /* minimum age: graphs written less than this before `now` are kept;
			   * raised to GC_AGE_LEAST */
	bool remove;      /* else nothing is changed, only reported */
};

/* Fate of a graph. */
enum gc_fate {
	GC_GOES,      /* to be deleted, or with `remove` deleted */
	GC_NAMED,     /* kept: a manifest names it */
	GC_YOUNG,     /* kept: younger than the minimum age */
	GC_COMPILING, /* kept: locked by its compiler */
	GC_UNKNOWN,   /* kept: holds an object that its kind does not know */
	GC_VANISHED,  /* deleted by another process since it was listed */
	GC_FATES
};

struct gc_sum {
	int64_t graphs[GC_FATES];
	uint64_t bytes;    /* bytes of all objects of the deleted graphs */
	int64_t locks;     /* compile manifests, which protect graphs */
	bool folders_left; /* a folder that became empty could not be removed */
};

/* Calls `fn` for each graph that is deleted, and for each that is old and in no manifest, but kept:
 * {"graph","kind","path","state","size_bytes","modified","action":"remove|removed|keep", "why"},
 * "why" only for kept ones. `ret` is filled also on failure, with the results up to then. EXIT_GATE
 * if a manifest cannot be read. Memory grows with the manifests, not with the cache. */
int cache_gc(struct store *store, const struct gc_options *options, listing_row_fn fn, void *arg,
	     struct gc_sum *ret, struct err **err);

#endif
