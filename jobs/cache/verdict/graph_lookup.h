/*
 * Finds the graphs that a job's logs name in the cache, all at once: in a bucket, one full listing
 * costs less than a request for each graph. For jobs/cache only.
 */
#ifndef STK_CACHE_VERDICT_GRAPH_LOOKUP_H
#define STK_CACHE_VERDICT_GRAPH_LOOKUP_H

#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/verdict/listing.h"

struct graph_lookup {
	char *key;                   /* owned; key in listings, as far as the logs tell it */
	char *path;                  /* owned; NULL: not found, or not searched for */
	struct listing_graph listed; /* set if `path` is; borrows `key`, `path` and `tag` */
	char tag[STORE_TAG];
};

struct graph_lookup_list {
	struct graph_lookup *items; /* a lookup per graph, in the order of the tally */
	struct graph_lookup **by_key;
	size_t count;
};

void graph_lookup_list_release(struct graph_lookup_list *list); /* for AUTO() */

/* Lists the named graphs and finds them in the cache, if that costs less than to ask for each
 * graph; otherwise only lists them. A graph that is not found may still exist, because some logs
 * give a key without its place: listing_find() finds it. `ret` must be empty. */
int graph_lookup_list_see(const struct graph_tally *tally, struct store *store,
			  const struct compile_kind *kind, struct graph_lookup_list *ret,
			  struct err **err);

#endif
