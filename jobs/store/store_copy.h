/*
 * Copies of single objects from one store to another, and the SHA-256 of an object: for what must
 * be proved byte for byte, like a promoted model. (Whole folders are kept in step by sync.h.)
 *
 * Between two buckets S3 copies, and no byte comes here. All other ways read the object once.
 */
#ifndef STK_STORE_STORE_COPY_H
#define STK_STORE_STORE_COPY_H

#include "jobs/base/hash.h"
#include "jobs/store/store.h"

/* Called now and then with the number of bytes that were moved since the last call; if it returns
 * false, the call ends with EXIT_UNREACHABLE. */
typedef bool (*store_moved_fn)(void *arg, uint64_t bytes);

/* Makes `key` of `to` a copy of `object` of `from`: its key, size and tag, as listed. If `key` has
 * the SHA-256 `want` already (NULL: not known), nothing is copied; any other content there is
 * replaced. Returns 1 with the SHA-256 of the copy, "" if it did not become known on the way; 0 if
 * the object is gone or has changed; -1 with an error. `fn` may be NULL. Durable on return. */
int store_copy(struct store *from, const struct store_object *object, struct store *to,
	       const char *key, const char *want, store_moved_fn fn, void *arg,
	       char ret_sha256[SHA256_HEX], struct err **err);

/* Reads an object from start to end. Returns 1 with its SHA-256 and size (may be NULL), 0 if it is
 * absent, -1 with an error. */
int store_sha256(struct store *store, const char *key, store_moved_fn fn, void *arg,
		 char ret[SHA256_HEX], uint64_t *ret_size, struct err **err);

#endif
