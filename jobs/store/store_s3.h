/*
 * The S3 store, as the files of this folder share it.
 */
#ifndef STK_STORE_STORE_S3_H
#define STK_STORE_STORE_S3_H

#include "jobs/store/store_backend.h"

struct aws;

struct store_s3 {
	struct store base; /* must be first: a store_s3 is used as a store */
	char *bucket;
	char *prefix; /* "" or ending in a slash */
	struct aws *aws;
};

/* Makes the client unless there is one. */
int store_s3_client(struct store_s3 *store, struct err **err);

/* Like store_sha256_all(). */
void store_s3_digests(struct store *store, struct store_digest *digests, size_t count);

#endif
