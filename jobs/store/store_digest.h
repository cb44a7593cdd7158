/* Digests of many objects of a store, several at once: see store_copy.h for that of one. */
#ifndef STK_STORE_STORE_DIGEST_H
#define STK_STORE_STORE_DIGEST_H

#include "jobs/base/hash.h"
#include "jobs/store/store.h"

struct store_digest {
	const char *key;         /* borrowed */
	bool looked;             /* false: a failure of another object came first */
	int there;               /* 1; 0: it is absent; -1: `err` */
	uint64_t size;           /* bytes that were read */
	char sha256[SHA256_HEX]; /* of 1 */
	struct err *err;         /* owned by the caller then */
};

/* Reads objects from start to end; the caller sets the keys and zeroes the rest. Objects are begun
 * in order, in a bucket none after a failure: what comes before that one was looked at. */
void store_sha256_all(struct store *store, struct store_digest *digests, size_t count);

#endif
