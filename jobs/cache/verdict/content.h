/*
 * Content of a cache's entries: their digest, and whether they are well-formed. In directories the
 * files are read. Other stores are judged by tag, and only entries up to CONTENT_FETCH_MAX are read
 * for their form: an entry there is never cut off by the death of its writer.
 */
#ifndef STK_CACHE_VERDICT_CONTENT_H
#define STK_CACHE_VERDICT_CONTENT_H

#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/store/store.h"

#define CONTENT_FETCH_MAX ((size_t)8 << 20) /* bytes */

/* Pin of one object. */
struct content {
	uint64_t size;
	char digest[STORE_TAG]; /* SHA-256 in a directory, else the store's tag */
	bool tagged;
};

/* Returns 1 if found, 0 if absent, -1 with an error. */
int content_digest(struct store *store, const char *key, struct content *ret, struct err **err);

/* Compares an object with a pin made in another kind of store: in a directory with a tag, in a
 * bucket with a SHA-256, for which the object is read. Returns 1 if the object has this content, 0
 * if not or if it cannot be told, -1 with an error. */
int content_is_elsewhere(struct store *store, const char *key, const struct content *pin,
			 struct err **err);

/* Judges the form by the kind's inspect(). Returns 1 if judged, 0 if absent or not judged, -1 with
 * an error. */
int content_inspect(struct store *store, const struct compile_kind *kind, const char *key,
		    enum entry_state *ret_state, const char **ret_why, struct err **err);

/* An entry to be judged, and the result. Owned by the caller. */
struct inspection {
	const struct compile_kind *kind;
	char *key;              /* key of the object */
	enum entry_state state; /* in: by the listing; out: by the form, if judged */
	const char *why;        /* reason, static; NULL: well-formed */
	int found;              /* as content_inspect() returns it; err is set if -1 */
	struct err *err;
};

/* Judges many entries, in a directory on all cores; entries for which `skip` returns true are left
 * out. Returns when all are judged. */
typedef bool (*inspection_skip_fn)(const struct inspection *inspection);
void content_inspect_all(struct store *store, struct inspection *list, size_t count,
			 inspection_skip_fn skip);

#endif
