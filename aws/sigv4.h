/*
 * Signing requests to AWS, version 4 ("Create a signed AWS API request", AWS General
 * Reference), as botocore does it: pure, no clock, no I/O, nothing but the digests of
 * base.
 *
 * What is signed is what is sent: the caller hands over path, query and headers exactly
 * as they will go over the wire, and adds what comes back to them. Path and query are
 * encoded already (sigv4_encode()); a path of S3 is signed as it is, those of other
 * services are normalised and encoded once more, because AWS does so.
 *
 * A signing key is good for one day, region and service; a `struct sigv4_keys` keeps the
 * last few, so that a signature costs a few digests. It is wiped when it is released.
 */
#ifndef STK_AWS_SIGV4_H
#define STK_AWS_SIGV4_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"

/* For payloads that are not signed: "UNSIGNED-PAYLOAD". */
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"
#define SIGV4_DATE     17 /* "20150830T123600Z" and a NUL */

struct sigv4_pair {
	const char *name, *value;
};

/* Keys and token as AWS gave them. Nothing here points at them once a call has returned. */
struct sigv4_identity {
	const char *access_key, *secret_key;
	const char *token; /* NULL: none */
};

struct sigv4_request {
	const char *method;
	/* As in the Host header: lower case, port included unless it is the scheme's own, an
	 * IPv6 address in brackets. */
	const char *host;
	const char *path;  /* from the first slash on, encoded; "" stands for "/" */
	const char *query; /* without the question mark, encoded, in any order; "" */
	/* What goes out beside Host, X-Amz-Date, X-Amz-Security-Token, X-Amz-Content-Sha256
	 * (S3) and Authorization; a header of these names is passed over. Those that proxies
	 * change (Connection, Expect, User-Agent …) are left out of the signature. */
	const struct sigv4_pair *headers;
	size_t header_count;
	const char *payload; /* SHA-256 of the body in hex, or SIGV4_UNSIGNED */
	const char *region, *service;
	bool is_s3; /* sign the path once encoded, and send x-amz-content-sha256 */
};

/* The keys of the last few days, regions and services, and memory to work in. It belongs
 * to one thread. */
struct sigv4_keys;

struct sigv4_keys *sigv4_keys_new(void);
void sigv4_keys_freep(struct sigv4_keys **keys); /* for AUTO(); wipes them */

/* What to send besides; begins as SIGV4_SIGNED_INIT and may serve again and again.
 * `authorization` holds no secret but is not for logs. */
struct sigv4_signed {
	char date[SIGV4_DATE];   /* X-Amz-Date */
	struct sb authorization; /* Authorization */
	/* For tests and the errors of services that quote theirs: what was signed. It holds
	 * the session token. */
	struct sb canonical;
	char signature[SHA256_HEX];
};
#define SIGV4_SIGNED_INIT                                                                          \
	((struct sigv4_signed){ .authorization = SB_INIT, .canonical = SB_INIT_SECRET })

void sigv4_signed_release(struct sigv4_signed *ret); /* for AUTO() */

/* Sign at this time. A token is sent as X-Amz-Security-Token and, for S3, the payload
 * digest as X-Amz-Content-Sha256: both are signed here although they are not among the
 * headers given. `ret` is overwritten. The years are 1970 to 9999. */
void sigv4_sign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		const struct sigv4_request *request, struct utc at, struct sigv4_signed *ret);

/* A URL that anybody may use for `seconds` (1 to 604800), without the credentials: the
 * query that stands after the question mark, its signature at the end. Headers given
 * must be sent by whoever uses it. The body of S3 is not signed. Appended to `ret`, which
 * holds the token then. `canonical` (NULL: not wanted) is overwritten with what was signed.
 * It dies with the credentials. */
void sigv4_presign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		   const struct sigv4_request *request, struct utc at, long seconds,
		   struct sb *canonical, struct sb *ret);

/* Append with every byte outside A-Z a-z 0-9 - _ . ~ (and '/', with `keep_slash`) as
 * upper-case %XX. */
void sigv4_encode(struct sb *ret, const char *bytes, size_t len, bool keep_slash);

#endif
