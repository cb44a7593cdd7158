/*
 * The S3 store, as other files of this folder use it.
 */
#ifndef STK_STORE_STORE_S3_H
#define STK_STORE_STORE_S3_H

#include "jobs/store/store_backend.h"

struct aws;

/* Returns the client, made if need be, and the place of the store's objects: the bucket, and the
 * prefix of their keys ("" or ending in a slash). The store owns all three. */
int store_s3_inside(struct store *store, struct aws **ret_aws, const char **ret_bucket,
		    const char **ret_prefix, struct err **err);

#endif
