/*
 * Endpoint of a call: host, path and query from service, region, bucket and key. Pure except for
 * the endpoints that the user has set (settings.h).
 *
 * S3: at AWS itself the bucket is part of the host, if its name fits under the certificate; at an
 * endpoint of the user's it is part of the path. The profile's s3.addressing_style (path,
 * virtual) overrides both.
 *
 * Source: botocore 1.43 endpoint rules, partitions.json.
 */
#ifndef STK_AWS_AUTH_ENDPOINT_H
#define STK_AWS_AUTH_ENDPOINT_H

#include "aws/operation.h"

struct endpoint {
	struct sb url;   /* the whole, with the query */
	struct sb host;  /* as in the Host header */
	struct sb path;  /* encoded */
	struct sb query; /* encoded, without the question mark */
};
#define ENDPOINT_INIT ((struct endpoint){ SB_INIT, SB_INIT, SB_INIT, SB_INIT })

void endpoint_release(struct endpoint *ret); /* for AUTO() */

/* Overwrites `ret`. EXIT_REFUSED if a configured endpoint is not a valid URL or the region not a
 * valid region. */
int endpoint_find(struct endpoint *ret, const struct aws_call *call, const char *region,
		  struct err **err);

/* Returns the domain of the region's partition: "amazonaws.com". */
const char *endpoint_domain(const char *region);
/* Returns the partition, as it stands in ARNs: "aws", "aws-cn". */
const char *endpoint_partition(const char *region);

/* Returns the region that requests are sent to and signed for: `region`, or the partition's own for
 * a service that has one endpoint for all regions of it. */
const char *endpoint_region(const struct service_row *service, const char *region);

/* Append parameters as a query or a form. */
void endpoint_params(struct sb *ret, const struct sigv4_pair *params, size_t count);

#endif
