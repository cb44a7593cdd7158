/*
 * Signing requests to AWS, version 4 ("Create a signed AWS API request", AWS General Reference),
 * as botocore does it. Pure: no clock, no I/O, only the digests of base.
 *
 * The signature covers exactly what is sent: the caller passes path, query and headers as they
 * will go over the wire, and adds the results to them. Path and query are encoded already
 * (sigv4_encode()). A path of S3 is signed as it is; paths of other services are normalised and
 * encoded a second time, because AWS does so.
 *
 * A signing key is valid for one day, region and service; a `struct sigv4_keys` keeps the last
 * few, so that a signature costs a few digests. Keys are wiped on release.
 *
 * aws/auth: what makes a request one that AWS accepts. Endpoints by service and region, canonical
 * form, signature, and the clock of the host that checks it. No transfer begins here.
 */
#ifndef STK_AWS_AUTH_SIGV4_H
#define STK_AWS_AUTH_SIGV4_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"

/* The digest of payloads that are not signed: "UNSIGNED-PAYLOAD". */
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"
#define SIGV4_DATE     17 /* "20150830T123600Z" and a NUL */

struct sigv4_pair {
	const char *name, *value;
};

/* Keys and token as AWS gave them. No function here keeps a pointer to them. */
struct sigv4_identity {
	const char *access_key, *secret_key;
	const char *token; /* NULL: none */
};

struct sigv4_request {
	const char *method;
	/* The name as in the Host header: lower case, port included unless it is the scheme's own,
	 * an IPv6 address in brackets. */
	const char *host;
	const char *path;  /* from the first slash on, encoded; "" stands for "/" */
	const char *query; /* without the question mark, encoded, in any order; "" */
	/* Headers to send beside Host, X-Amz-Date, X-Amz-Security-Token, X-Amz-Content-Sha256 (S3)
	 * and Authorization; a header with one of these names is ignored. Headers that proxies
	 * change (Connection, Expect, User-Agent …) are left out of the signature. */
	const struct sigv4_pair *headers;
	size_t header_count;
	const char *payload; /* SHA-256 of the body in hex, or SIGV4_UNSIGNED */
	const char *region, *service;
	bool is_s3; /* sign the path once encoded, and send x-amz-content-sha256 */
};

/* Cache of the signing keys of the last few days, regions and services, and working memory.
 * Belongs to one thread. */
struct sigv4_keys;

struct sigv4_keys *sigv4_keys_new(void);
void sigv4_keys_freep(struct sigv4_keys **keys); /* for AUTO(); wipes them */

/* Headers to send in addition; begins as SIGV4_SIGNED_INIT and can be reused. `authorization`
 * holds no secret, but must not be logged. */
struct sigv4_signed {
	char date[SIGV4_DATE];   /* X-Amz-Date */
	struct sb authorization; /* Authorization */
	/* The signed canonical request, for tests and for errors of services that quote theirs.
	 * Holds the session token. */
	struct sb canonical;
	char signature[SHA256_HEX];
};
#define SIGV4_SIGNED_INIT                                                                          \
	((struct sigv4_signed){ .authorization = SB_INIT, .canonical = SB_INIT_SECRET })

void sigv4_signed_release(struct sigv4_signed *ret); /* for AUTO() */

/* Signs at this time. A token is sent as X-Amz-Security-Token and, for S3, the payload digest as
 * X-Amz-Content-Sha256: both are signed here although they are not among the caller's headers.
 * Overwrites `ret`. The years are 1970 to 9999. */
void sigv4_sign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		const struct sigv4_request *request, struct utc at, struct sigv4_signed *ret);

/* Appends to `ret` the query (the part after the question mark, signature last) of a URL that
 * anybody may use for `seconds` (1 to 604800) without the credentials. A client that uses the URL
 * must send the headers given. The body of S3 is not signed. `ret` then holds the token.
 * `canonical` (NULL: not wanted) is overwritten with the signed canonical request. The URL
 * expires with the credentials. */
void sigv4_presign(struct sigv4_keys *keys, const struct sigv4_identity *who,
		   const struct sigv4_request *request, struct utc at, long seconds,
		   struct sb *canonical, struct sb *ret);

/* Appends `bytes` with every byte outside A-Z a-z 0-9 - _ . ~ (and '/', with `keep_slash`) as
 * upper-case %XX. */
void sigv4_encode(struct sb *ret, const char *bytes, size_t len, bool keep_slash);

#endif
