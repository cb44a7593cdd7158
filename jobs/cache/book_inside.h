/*
 * Between book.c (tables, sums), book_note.c (what a message changes) and
 * book_json.c: what a book is made of. Nobody else needs it.
 */
#ifndef STK_CACHE_BOOK_INSIDE_H
#define STK_CACHE_BOOK_INSIDE_H

#include "jobs/cache/book.h"

#define NAMES_MAX  100000 /* distinct names a node; more are not attributed */
#define CACHES_MAX 8      /* distinct URLs of caches in use */

/* What one node's log said last of one name. */
struct named {
	size_t miss; /* index of the last missed graph plus 1; 0: none */
	bool keyed;  /* a key was printed for it */
	bool measured, hit_since;
	char *read_error; /* for the miss that will follow; or NULL */
	bool read_error_bad_form;
	int64_t started_ms; /* time stamp of the compilation going on; 0: none */
};

struct cache_in_use {
	char *url;
	int64_t times;
};

struct graph_book {
	struct book_graph *graphs;
	size_t count, room;
	json_t *by_key; /* key → index: Jansson's table is hashed with a secret */
	struct named *names;
	size_t name_count, name_room;
	json_t *by_name;  /* "node name" → index */
	json_t *bypassed; /* name → seconds */
	char *bypass_why;
	int64_t dropped;

	char *only_place; /* that any message told; NULL: none */
	bool more_places;

	struct book_front_end front_end; /* its strings are ours */
	char *worker_why, *first_error;
	json_t *front_end_nodes; /* a set */
	bool exits[256];         /* numbers of failures said, modulo 256 */
	struct cache_in_use caches[CACHES_MAX];
	size_t cache_count;

	const struct line_reader *lines; /* what the memories below are of */
	void **memories;                 /* by node; NULL: it has none yet */
	size_t memory_count;
};

/* Index plus 1 in one of the tables, 0 if it is not there. */
size_t book_look_up(const json_t *table, const char *key, size_t len);
void book_enter(json_t *table, const char *key, size_t len, size_t index_plus_1);

/* The graph that a note names by its key, made if need be, with what the note says
 * of its name and place. NULL if the book is full. */
struct book_graph *book_graph_of(struct graph_book *book, const struct graph_note *note);

#endif
