/*
 * A store in a bucket, as others of this box see it from within.
 */
#ifndef STK_STORE_STORE_S3_H
#define STK_STORE_STORE_S3_H

#include "jobs/store/store_backend.h"

struct aws;

/* The client, made if need be, and where in which bucket the store's objects lie: what their
 * keys begin with, "" or ending in a slash. All the store's. */
int store_s3_inside(struct store *store, struct aws **ret_aws, const char **ret_bucket,
		    const char **ret_prefix, struct err **err);

#endif
