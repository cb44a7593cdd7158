/*
 * A call as sent: the body, made and digested once, and for each attempt the address, headers and
 * a new signature. Used by aws.c alone.
 */
#ifndef STK_AWS_AUTH_SIGNED_REQUEST_H
#define STK_AWS_AUTH_SIGNED_REQUEST_H

#include "aws/auth/endpoint.h"

struct signed_request {
	const struct aws_call *call;
	char *made; /* a body that signed_request_make() built; owned */
	const void *body;
	uint64_t body_len;
	char payload[SHA256_HEX];
	char checksum[SHA256_BASE64]; /* "" if none is sent */
	/* Set for each attempt. */
	struct endpoint where;
	struct sigv4_signed signature;
	struct sb token, target; /* wiped; X-Amz-Target */
	struct sigv4_pair *headers;
	size_t header_count;
};

/* Makes and digests the body; a file is read. EXIT_REFUSED if that fails. `ret` begins zeroed;
 * call signed_request_release() in any case. `call` must outlive `ret`. */
int signed_request_make(struct signed_request *ret, const struct aws_call *call, struct err **err);
void signed_request_release(struct signed_request *ret);

/* Builds the headers and, unless the identity is NULL, a signature for the time `at`; call
 * endpoint_find() for `where` first. Fills in all of `request` except sink and limits; `request`
 * points into `signing`. */
void signed_request_sign(struct signed_request *signing, struct sigv4_keys *keys,
			 const struct sigv4_identity *who, const char *region, struct utc at,
			 struct http_request *request);

#endif
