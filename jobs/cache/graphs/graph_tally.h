/*
 * The tally of one attempt (the "book"): the graphs that its logs name, on any node, and what
 * happened to each. It is one of the three sources of a cache verdict, and the JIT meter of a
 * training attempt.
 *
 * A graph is counted once however many ranks and nodes print it, and however often a log handler
 * repeats a line: a graph that any rank missed is one miss, even if other ranks found it later; a
 * hit is a graph that no rank missed.
 */
#ifndef STK_CACHE_GRAPHS_GRAPH_TALLY_H
#define STK_CACHE_GRAPHS_GRAPH_TALLY_H

#include "jobs/cache/kinds/compile_kind.h"

#define TALLY_GRAPHS_MAX 100000 /* more distinct keys than this are not kept */

/* Nodes beyond this number are not counted for the front-end, and their messages that span lines
 * are not read. */
#define TALLY_NODES_MAX 16384

struct graph_tally;

/* Everything known about one graph. Borrowed from the tally, until the next note. */
struct tally_graph {
	const char *key, *name; /* the name may be "" */
	const char *place;      /* as first logged; "" if unknown. See graph_tally_entry(). */
	bool hit, missed;       /* on any node, any time */
	bool stored;            /* the log announced that it would be written */
	bool unreadable; /* the entry exists but the framework cannot use it, whatever its form; it
			  * stays until removed */
	bool never_stored; /* no run will write it */
	double seconds;    /* longest compilation of it; 0: not measured */
	char *not_stored;  /* reason that it was not written, as logged; or NULL */
	char *failed;      /* error from reading, writing or compiling it; or NULL */

	bool extracted;       /* traced and written down, to be compiled later */
	bool compile_failed;  /* the compiler failed on it, on any node, any time */
	bool reported_good;   /* the front-end's summary says that it is compiled, */
	bool reported_failed; /* or that it failed; both, if nodes differ */
	bool cached_failure;  /* an older failure was replayed */
	bool timed;           /* `seconds` comes from the front-end */
	bool compiling;       /* the last message on it: its compiler was called */
	double waited;        /* longest wait for another process that compiled it, seconds */
};

struct graph_tally_counts {
	int64_t named;  /* distinct graphs */
	int64_t hits;   /* found, and missed by no rank */
	int64_t misses; /* compiled by some rank: in training, the JIT meter */
	int64_t made;   /* misses minus those whose compilation failed or, by the last message, is
			 * still going on */
	int64_t stored; /* announced as written */
	int64_t failed; /* with an error in reading, writing or compiling */
	double seconds; /* compile time of the misses, each at its longest */

	/* Compilations that bypassed the cache: no key was ever printed for their names. Evidence
	 * that the cache was switched off. */
	int64_t bypassed;
	double bypassed_seconds;
	const char *bypass_why; /* borrowed; the first reason given, or NULL */
	int64_t dropped;        /* notes beyond BOOK_GRAPHS_MAX */

	int64_t extracted; /* only traced; in training, phase 1's settings are still in force */
	int64_t compile_failed;  /* by the compiler's messages or the front-end's summary */
	int64_t cached_failures; /* old failures replayed */
	int64_t waited;        /* compiled by other processes; counts neither as hit nor as miss */
	double waited_seconds; /* sum of the longest wait of each */
};

/* Totals that the front-end of the command printed, over all nodes. Each node counts only the
 * graphs that it compiled itself, so the sums may count a graph several times, and a node with
 * nothing to do prints no sums. */
struct graph_tally_front_end {
	int64_t nodes;             /* nodes that printed sums, or that there was nothing to do */
	int64_t blocks;            /* blocks of sums printed */
	int64_t nothing;           /* messages that there was nothing to do */
	int64_t graphs, good, bad; /* over all blocks */
	int64_t largest;  /* graphs of the largest block: the logs must name at least as many */
	int64_t most_bad; /* failures of the worst block */
	int64_t workers_died;
	const char *worker_why;  /* borrowed; error of the first one, or NULL */
	const char *first_error; /* borrowed; the compiler's first error that names no graph */
	bool killed;             /* the system killed a compiler for lack of memory */
	bool script_failed;      /* the script failed while graphs were collected */
};

/* A URL that the logs say is in use as the cache. Borrowed. */
struct graph_tally_cache {
	const char *url;
	int64_t times; /* lines that say so; a single line may have been cut or merged */
};

struct graph_tally *graph_tally_new(void);
void graph_tally_freep(struct graph_tally **tally);

/* Scans a piece of log and notes everything in it. All calls for one tally must use the same kind.
 * True if the counts may have changed. */
bool graph_tally_scan(struct graph_tally *tally, const struct compile_kind *kind, int node,
		      const char *text, size_t len);

/* The state of the tally, for another process that continues where this one stopped reading; a new
 * reference. NULL if it is too large, or if it has keys that cannot be saved. */
json_t *graph_tally_keep(const struct graph_tally *tally);
/* Restores a saved tally; the caller frees it. NULL if it is of another kind or damaged. */
struct graph_tally *graph_tally_restore(const json_t *kept, const struct compile_kind *kind);

bool graph_tally_is_made(const struct tally_graph *graph); /* counted as `made` */
void graph_tally_counts(const struct graph_tally *tally, struct graph_tally_counts *ret);

void graph_tally_front_end(const struct graph_tally *tally, struct graph_tally_front_end *ret);
/* True if the front-end of some node reported a number of failures that gives this exit status: the
 * system keeps the lowest 8 bits of it. */
bool graph_tally_explains_exit(const struct graph_tally *tally, int status);
/* The n-th cache, in the order of their first mention; false behind the last (at most 8). */
bool graph_tally_cache_at(const struct graph_tally *tally, size_t n, struct graph_tally_cache *ret);

/* The graph's key in listings, manifests and verdicts: `place/key` if its place was logged, or if
 * the logs know of only one place; else its key alone. The caller frees it. */
char *graph_tally_entry(const struct graph_tally *tally, const struct tally_graph *graph);

/* Graphs in the order in which they were first named; NULL behind the last. */
const struct tally_graph *graph_tally_at(const struct graph_tally *tally, size_t n);
const struct tally_graph *graph_tally_find(const struct graph_tally *tally, const char *key);

/* {"named","hits","misses","stored","failed","seconds","graphs":[{"key","name",
 * "hit","missed","seconds",…}]}; events that did not happen are left out; `graphs` holds at most
 * `limit` of them, misses first, longest first. */
json_t *graph_tally_json(const struct graph_tally *tally, size_t limit);

#endif
