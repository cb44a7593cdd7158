/*
 * The graphs that a job's logs name, sought in the cache all at once: in a bucket a listing
 * of everything costs less than a question for each of them. For the files of this box.
 */
#ifndef STK_CACHE_WANTED_H
#define STK_CACHE_WANTED_H

#include "jobs/cache/book.h"
#include "jobs/cache/listing.h"

struct wanted {
	char *key;                   /* owned: in listings, as far as the logs tell it */
	char *path;                  /* owned; NULL: not seen, or not looked for */
	struct listing_graph listed; /* borrows these and `tag`; where `path` is there */
	char tag[STORE_TAG];
};

struct wanted_list {
	struct wanted *items; /* one a graph, in the order of the book */
	struct wanted **by_key;
	size_t count;
};

void wanted_list_release(struct wanted_list *list); /* for AUTO() */

/* What is named, and what the cache holds of it, where that costs less than to ask for each
 * graph: else nothing is looked for. What is not seen may still be there, as some logs tell
 * a key without its place: listing_find() finds it. `ret` is empty before. */
int wanted_list_see(const struct graph_book *book, struct store *store,
		    const struct compile_kind *kind, struct wanted_list *ret, struct err **err);

#endif
