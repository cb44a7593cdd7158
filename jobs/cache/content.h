/*
 * The bytes of a cache's entries: their digest, and whether their form is
 * whole. Directories are read; other stores are judged by tag.
 */
#ifndef STK_CACHE_CONTENT_H
#define STK_CACHE_CONTENT_H

#include "jobs/cache/kind.h"
#include "jobs/store/store.h"

/* What pins one object. */
struct content {
	uint64_t size;
	char digest[STORE_TAG]; /* SHA-256 in a directory, else the store's tag */
	bool tagged;
};

/* 1, 0 there is no such object, -1 error. */
int content_digest(struct store *store, const char *key, struct content *ret, struct err **err);

/* Judge the form by the kind's inspect(). 1 judged, 0 there is no such object or
 * nothing can be told, -1 error. */
int content_inspect(struct store *store, const struct compile_kind *kind, const char *key,
		    enum entry_state *ret_state, const char **ret_why, struct err **err);

#endif
