/*
 * The bytes of a cache's entries: their digest, and whether their form is
 * whole. Directories are read; other stores are judged by tag, and of their
 * entries only those are looked into that are no larger than CONTENT_FETCH_MAX:
 * nothing is ever cut there by its writer's death.
 */
#ifndef STK_CACHE_CONTENT_H
#define STK_CACHE_CONTENT_H

#include "jobs/cache/kind.h"
#include "jobs/store/store.h"

#define CONTENT_FETCH_MAX ((size_t)8 << 20) /* bytes */

/* What pins one object. */
struct content {
	uint64_t size;
	char digest[STORE_TAG]; /* SHA-256 in a directory, else the store's tag */
	bool tagged;
};

/* 1, 0 there is no such object, -1 error. */
int content_digest(struct store *store, const char *key, struct content *ret, struct err **err);

/* A pin that was made of the same content in another kind of store: of a directory by a tag,
 * of a bucket by SHA-256, for which the object is read. 1 the object is of this content,
 * 0 it is not, or nothing can be told, -1 error. */
int content_is_elsewhere(struct store *store, const char *key, const struct content *pin,
			 struct err **err);

/* Judge the form by the kind's inspect(). 1 judged, 0 there is no such object or
 * nothing can be told, -1 error. */
int content_inspect(struct store *store, const struct compile_kind *kind, const char *key,
		    enum entry_state *ret_state, const char **ret_why, struct err **err);

/* One entry to be judged, and what came of it. Owned by whoever made it. */
struct inspection {
	const struct compile_kind *kind;
	char *key;              /* of the object */
	enum entry_state state; /* in: by the listing; out: by its form, where that tells */
	const char *why;        /* static; NULL: nothing is wrong */
	int found;              /* as content_inspect() returns it; err is set if -1 */
	struct err *err;
};

/* The same for many entries, of a directory on all cores; `skip` says of which nothing is asked.
 * Returns when all are judged. */
typedef bool (*inspection_skip_fn)(const struct inspection *inspection);
void content_inspect_all(struct store *store, struct inspection *list, size_t count,
			 inspection_skip_fn skip);

#endif
