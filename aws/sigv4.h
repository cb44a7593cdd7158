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

/* Keys and token as AWS gave them; nobody here keeps a copy of them. */
struct sigv4_identity {
	const char *access_key, *secret_key;
	const char *token; /* NULL: none */
};

struct sigv4_request {
	const char *method;
	const char *host;  /* as in the Host header, port included unless it is the scheme's own */
	const char *path;  /* from the first slash on, encoded; "" stands for "/" */
	const char *query; /* without the question mark, encoded, in any order; "" */
	/* What goes out beside Host, X-Amz-Date, X-Amz-Security-Token and Authorization.
	 * Headers that proxies change (Connection, Expect, User-Agent …) are left out of
	 * the signature. */
	const struct sigv4_pair *headers;
	size_t header_count;
	const char *payload; /* SHA-256 of the body in hex, or SIGV4_UNSIGNED */
	const char *region, *service;
	bool is_s3; /* sign the path once encoded, and send x-amz-content-sha256 */
};

struct sigv4_keys;

struct sigv4_keys *sigv4_keys_new(void);
void sigv4_keys_freep(struct sigv4_keys **keys); /* for AUTO(); wipes them */

/* What to send besides. `authorization` holds no secret but is not for logs. */
struct sigv4_signed {
	char date[SIGV4_DATE];   /* X-Amz-Date */
	struct sb authorization; /* Authorization */
	/* For tests and error reports: what was signed. */
	struct sb canonical;
	char signature[SHA256_HEX];
};

void sigv4_signed_release(struct sigv4_signed *ret); /* for AUTO() */

/* Sign at this time. A token is sent as X-Amz-Security-Token and, for S3, the payload
 * digest as X-Amz-Content-Sha256: both are signed here although they are not among the
 * headers given. `ret` is overwritten (begin with { 0 } and sb's as SB_INIT). */
void sigv4_sign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		const struct sigv4_request *request, struct utc at, struct sigv4_signed *ret);

/* A URL that anybody may use for `seconds` (1 to 604800), without the credentials: the
 * query that stands after the question mark, its signature at the end. Headers given
 * must be sent by whoever uses it. Appended to `ret`. It dies with the credentials. */
void sigv4_presign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		   const struct sigv4_request *request, struct utc at, long seconds,
		   struct sb *ret);

/* Append with every byte outside A-Z a-z 0-9 - _ . ~ (and '/', with `keep_slash`) as
 * upper-case %XX. */
void sigv4_encode(struct sb *ret, const char *bytes, size_t len, bool keep_slash);

#endif
