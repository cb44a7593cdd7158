/*
 * The book of one attempt: which graphs its logs name, on any node, and what
 * became of them. One of the three sources of a cache verdict, and the JIT
 * meter of a training attempt.
 *
 * A graph is counted once however many ranks and nodes print it, and however
 * often a log handler repeats a line: a graph that any rank missed is one
 * miss, also when others found it later; a hit is a graph that nobody missed.
 */
#ifndef STK_CACHE_BOOK_H
#define STK_CACHE_BOOK_H

#include "jobs/cache/kind.h"

#define BOOK_GRAPHS_MAX 100000 /* more distinct keys than this are not kept */

/* Nothing is done for a front-end that prints on more nodes than this. */
#define BOOK_NODES_MAX 16384

struct graph_book;

/* Everything known of one graph. Borrowed from the book, until the next note. */
struct book_graph {
	const char *key, *name; /* the name may be "" */
	const char *place;      /* as first told; "" if never. See book_entry(). */
	bool hit, missed;       /* on any node, any time */
	bool stored;            /* the log announced that it would be written */
	bool unreadable;        /* an entry was there that the framework cannot use,
				 * whatever its form; it stays until removed */
	bool never_stored;      /* it will not be written in any run */
	double seconds;         /* longest compilation of it; 0: not measured */
	char *not_stored;       /* why it was not written, in the log's words; or NULL */
	char *failed;           /* what reading, writing or compiling it ran into; or NULL */

	bool extracted;       /* traced and written down, to be compiled later */
	bool compile_failed;  /* the compiler failed on it, on any node, any time */
	bool reported_good;   /* the front-end's summary says that it is compiled, */
	bool reported_failed; /* or that it is not; both, if nodes differ */
	bool cached_failure;  /* an older failure was replayed */
	bool timed;           /* seconds are the front-end's own */
	bool compiling;       /* the last word on it: its compiler was called */
	double waited;        /* longest wait for somebody else who compiled it, seconds */
};

struct book_counts {
	int64_t named;  /* distinct graphs */
	int64_t hits;   /* found, missed by nobody */
	int64_t misses; /* compiled by somebody: in training, the JIT meter */
	int64_t made;   /* of the misses, those of which no message says that the compiler failed
			 * or is still at work */
	int64_t stored; /* announced as written */
	int64_t failed; /* with an error in reading, writing or compiling */
	double seconds; /* compile time of the misses, each at its longest */

	/* Compilations that went past the cache: no key was ever printed for
	 * their names. Evidence that somebody switched the cache off. */
	int64_t bypassed;
	double bypassed_seconds;
	const char *bypass_why; /* borrowed; the first reason given, or NULL */
	int64_t dropped;        /* notes beyond BOOK_GRAPHS_MAX */

	int64_t extracted;       /* traced only: in training, phase 1 has leaked into it */
	int64_t compile_failed;  /* by the compiler's messages or the front-end's summary */
	int64_t cached_failures; /* old failures replayed */
	int64_t waited;          /* others compiled them; neither hits nor misses for that */
	double waited_seconds;   /* each at its longest */
};

/* What the program in front of the command said of its work, over all nodes. Each
 * node sums up only what it compiled itself, so the sums may count a graph several
 * times, and a node that found nothing to do says no sums. */
struct book_front_end {
	int64_t nodes;             /* that said sums, or that there was nothing to do */
	int64_t blocks;            /* sums said */
	int64_t nothing;           /* times that there was nothing to do */
	int64_t graphs, good, bad; /* over all blocks */
	int64_t largest;           /* graphs of the largest block: that many must be named */
	int64_t most_bad;          /* failures of the worst block */
	int64_t workers_died;
	const char *worker_why;  /* borrowed; the first one's words, or NULL */
	const char *first_error; /* borrowed; the compiler's first words that name no graph */
	bool killed;             /* the system ended a compiler: memory was short */
	bool script_failed;      /* the script broke off while graphs were collected */
};

/* A URL that the logs say is in use as the cache. Borrowed. */
struct book_cache {
	const char *url;
	int64_t times; /* lines that say so; a single one may have been cut or merged */
};

struct graph_book *book_new(void);
void book_freep(struct graph_book **book);

/* Scan a piece of log and note everything in it. One kind a book. */
bool book_scan(struct graph_book *book, const struct compile_kind *kind, int node, const char *text,
	       size_t len);

bool book_is_made(const struct book_graph *graph); /* counted as `made` */
void book_counts(const struct graph_book *book, struct book_counts *ret);

void book_front_end(const struct graph_book *book, struct book_front_end *ret);
/* Whether an exit status is what the front-end makes of its failures on some node:
 * their number, of which the system keeps the lowest 8 bits. */
bool book_explains_exit(const struct graph_book *book, int status);
/* In the order in which they were first said; false behind the last (at most 8). */
bool book_cache_at(const struct graph_book *book, size_t n, struct book_cache *ret);

/* The key that the graph has in listings, locks and verdicts: `place/key` if its
 * place was told, or if the logs know of only one place; else its key alone. Yours
 * to free. */
char *book_entry(const struct graph_book *book, const struct book_graph *graph);

/* Graphs in the order in which they were first named; NULL if there is none. */
const struct book_graph *book_at(const struct graph_book *book, size_t n);
const struct book_graph *book_find(const struct graph_book *book, const char *key);

/* {"named","hits","misses","stored","failed","seconds","graphs":[{"key","name",
 * "hit","missed","seconds",…}]}; what did not happen is left out; `graphs` holds at most `limit` of
 * them, misses first, longest first. */
json_t *book_json(const struct graph_book *book, size_t limit);

#endif
