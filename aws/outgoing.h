/*
 * A call as it goes over the wire: its body, made and digested once, and for each attempt
 * address, headers and a fresh signature. For aws.c alone.
 */
#ifndef STK_AWS_OUTGOING_H
#define STK_AWS_OUTGOING_H

#include "aws/endpoint.h"

struct outgoing {
	const struct aws_call *call;
	char *made; /* a body that was made here; owned */
	const void *body;
	uint64_t body_len;
	char payload[SHA256_HEX];
	char checksum[SHA256_BASE64]; /* "" if none is sent */
	/* Of the attempt. */
	struct endpoint where;
	struct sigv4_signed proof;
	struct sb token, target; /* wiped; X-Amz-Target */
	struct sigv4_pair *headers;
	size_t header_count;
};

/* Make and digest the body; a file is read. EXIT_REFUSED: it cannot be. `ret` begins zeroed;
 * outgoing_release() in any case. `call` must live as long. */
int outgoing_make(struct outgoing *ret, const struct aws_call *call, struct err **err);
void outgoing_release(struct outgoing *ret);

/* Where it goes in this region: `where` is filled in. */
int outgoing_address(struct outgoing *outgoing, const char *region, struct err **err);
/* Headers, and the signature of this moment unless `who` is NULL; address it first. All in
 * `request` but sink and limits is filled in; it points into `outgoing`. */
void outgoing_sign(struct outgoing *outgoing, struct sigv4_keys *keys,
		   const struct sigv4_identity *who, const char *region, struct utc at,
		   struct http_request *request);

#endif
