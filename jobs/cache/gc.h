/*
 * `cache gc`: what may go from a compile cache, and taking it away.
 *
 * A graph goes as a whole or not at all, and only if
 *
 * - no compile lock of the cache names it, whatever that lock pins;
 * - none of its objects is younger than the age asked for (by the store's times:
 *   a copy that kept the times of its original looks as old as that);
 * - no lock file of its compiler lies there: it is being compiled, or was when
 *   its compiler died;
 * - its kind knows every object of it.
 *
 * Objects that belong to no graph are never touched, and locks of either sort
 * neither. A lock that cannot be read may name anything: then nothing goes.
 *
 * The cache is shared. So objects and locks are looked at again right before each
 * deletion; who names a graph in a lock between that look and the deletion finds it
 * missing and compiles it again. Objects are taken away in an order in which an
 * interrupted deletion leaves no graph that looks compiled.
 */
#ifndef STK_CACHE_GC_H
#define STK_CACHE_GC_H

#include "jobs/cache/listing.h"

/* What is younger than a day, in milliseconds, stays whatever is asked for: it can be
 * of a run that has yet to name its graphs in a lock. */
#define GC_AGE_LEAST ((int64_t)24 * 3600 * 1000)

struct gc_options {
	struct utc now;
	int64_t older_ms; /* what was written less than this before `now` stays; less than
			   * GC_AGE_LEAST counts as that */
	bool remove;      /* else nothing is changed, only told */
};

/* What becomes of a graph. */
enum gc_fate {
	GC_GOES,      /* goes, or with `remove` has gone */
	GC_NAMED,     /* stays: a lock names it */
	GC_YOUNG,     /* stays: it is younger than asked for */
	GC_COMPILING, /* stays: its compiler has locked it */
	GC_UNKNOWN,   /* stays: an object in it is none that its kind knows */
	GC_VANISHED,  /* somebody else has taken it away since it was listed */
	GC_FATES
};

struct gc_sum {
	int64_t graphs[GC_FATES];
	uint64_t bytes;    /* of those that go, all objects */
	int64_t locks;     /* that protect */
	bool folders_left; /* a folder that became empty could not be removed */
};

/* `fn` gets what goes, and what is old and in no lock, but stays:
 * {"graph","kind","path","state","size","modified","action":"remove|removed|keep",
 * "why"}, "why" only of what stays. `ret` is filled also on failure, with what was
 * done until then. EXIT_GATE if a lock cannot be read. Memory grows with the locks,
 * not with the cache. */
int cache_gc(struct store *store, const struct gc_options *options, listing_row_fn fn, void *arg,
	     struct gc_sum *ret, struct err **err);

#endif
