/*
 * Layout of the tally, shared by graph_tally.c (tables, sums), graph_tally_note.c (effects of
 * messages), graph_tally_json.c and graph_tally_keep.c only.
 */
#ifndef STK_CACHE_GRAPHS_GRAPH_TALLY_INTERNAL_H
#define STK_CACHE_GRAPHS_GRAPH_TALLY_INTERNAL_H

#include "jobs/cache/graphs/graph_tally.h"

#define NAMES_MAX  100000 /* distinct names, per node; more are not attributed */
#define CACHES_MAX 8      /* distinct URLs of caches in use */

/* State of one name in one node's log. */
struct named {
	size_t miss; /* index of the last missed graph plus 1; 0: none */
	bool keyed;  /* a key was printed for this name */
	bool measured, hit_since;
	char *read_error; /* read error, for the miss that will follow; or NULL */
	bool read_error_bad_form;
	int64_t started_ms; /* time stamp at the start of the current compilation; 0: none */
};

struct cache_in_use {
	char *url;
	int64_t times;
};

struct graph_tally {
	struct tally_graph *graphs;
	size_t count;
	json_t *by_key; /* key → index: Jansson's table is hashed with a secret */
	struct named *names;
	size_t name_count;
	json_t *by_name;  /* "node name" → index */
	json_t *bypassed; /* name → seconds */
	char *bypass_why;
	int64_t dropped;

	char *only_place; /* first place in any message; NULL: none */
	bool more_places;

	struct graph_tally_front_end front_end; /* without its strings, which are the two below */
	char *worker_why, *first_error;
	json_t *front_end_nodes; /* a set */
	bool exits[256];         /* numbers of failures reported, modulo 256 */
	struct cache_in_use caches[CACHES_MAX];
	size_t cache_count;

	const struct line_reader *lines; /* reader that owns the memories below */
	void **memories;                 /* by node; NULL: none yet */
	size_t memory_count;
};

/* Index plus 1 in one of the tables, 0 if not found. */
size_t graph_tally_index_find(const json_t *table, const char *key, size_t len);
void graph_tally_enter(json_t *table, const char *key, size_t len, size_t index_plus_1);

/* The graph that a note names by its key, added if need be, and updated with the note's name and
 * place. NULL if the tally is full. */
struct tally_graph *graph_tally_graph_of(struct graph_tally *tally, const struct graph_note *note);

#endif
