/*
 * Where a call goes: host, path and query from service, region, bucket and key. Pure but
 * for the endpoints that the user has set (settings.h).
 *
 * S3: the bucket is part of the host at AWS itself, if its name can be a part of one under
 * a certificate, and part of the path at an endpoint of the user's; the profile's
 * s3.addressing_style (path, virtual) decides otherwise.
 *
 * Source: botocore 1.43 endpoint rules, partitions.json.
 */
#ifndef STK_AWS_ENDPOINT_H
#define STK_AWS_ENDPOINT_H

#include "aws/operation.h"

struct endpoint {
	struct sb url;   /* the whole, with the query */
	struct sb host;  /* as in the Host header */
	struct sb path;  /* encoded */
	struct sb query; /* encoded, without the question mark */
};
#define ENDPOINT_INIT ((struct endpoint){ SB_INIT, SB_INIT, SB_INIT, SB_INIT })

void endpoint_release(struct endpoint *ret); /* for AUTO() */

/* Overwrites `ret`. EXIT_REFUSED: an endpoint that was set is no URL, or the region none. */
int endpoint_find(struct endpoint *ret, const struct aws_call *call, const char *region,
		  struct err **err);

/* Append parameters as a query or a form. */
void endpoint_params(struct sb *ret, const struct sigv4_pair *params, size_t count);

#endif
