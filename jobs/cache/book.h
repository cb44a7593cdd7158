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

struct graph_book;

/* Everything known of one graph. Borrowed from the book, until the next note. */
struct book_graph {
	const char *key, *name; /* the name may be "" */
	bool hit, missed;       /* on any node, any time */
	bool stored;            /* the log announced that it would be written */
	bool unreadable;        /* an entry was there that the framework cannot use,
				 * whatever its form; it stays until removed */
	bool never_stored;      /* it will not be written in any run */
	double seconds;         /* longest compilation of it; 0: not measured */
	char *not_stored;       /* why it was not written, in the log's words; or NULL */
	char *failed;           /* what reading or writing it ran into; or NULL */
};

struct book_counts {
	int64_t named;  /* distinct graphs */
	int64_t hits;   /* found, missed by nobody */
	int64_t misses; /* compiled by somebody: in training, the JIT meter */
	int64_t stored; /* announced as written */
	int64_t failed; /* with a read or write error */
	double seconds; /* compile time of the misses, each at its longest */

	/* Compilations that went past the cache: no key was ever printed for
	 * their names. Evidence that somebody switched the cache off. */
	int64_t bypassed;
	double bypassed_seconds;
	const char *bypass_why; /* borrowed; the first reason given, or NULL */
	int64_t dropped;        /* notes beyond BOOK_GRAPHS_MAX */
};

struct graph_book *book_new(void);
void book_freep(struct graph_book **book);

/* Take a note from `node`'s log in. True if the counts may have changed. */
bool book_note(struct graph_book *book, int node, const struct graph_note *note);
/* Scan a piece of log and note everything in it. */
bool book_scan(struct graph_book *book, const struct compile_kind *kind, int node, const char *text,
	       size_t len);

void book_counts(const struct graph_book *book, struct book_counts *ret);

/* Graphs in the order in which they were first named; NULL if there is none. */
const struct book_graph *book_at(const struct graph_book *book, size_t n);
const struct book_graph *book_find(const struct graph_book *book, const char *key);

/* {"named","hits","misses","stored","failed","seconds","graphs":[{"key","name",
 * "hit","missed","seconds",…}]}; `graphs` holds at most `limit` of them, misses
 * first, longest first. */
json_t *book_json(const struct graph_book *book, size_t limit);

#endif
