/*
 * The pipeline of every call to AWS: build, sign, send, classify, back off.
 *
 * An operation is a row of operations.def, a service a row of services.def; this file and the
 * files behind it know nothing else of either. Each attempt is signed again, at the server's time
 * if ours is off. A client keeps each operation to the rate of rates.def. Retries follow the
 * SDKs' standard mode (three attempts, five for S3, or AWS_MAX_ATTEMPTS; their lists of codes;
 * jittered delays; one quota per client). Redirects are not followed: if an S3 bucket is in
 * another region, S3's header names the region, once, and the request is repeated there.
 *
 * An error names operation, service's code, message, HTTP status and request ids, and a remedy;
 * where a right is missing, the remedy ends in the statement of a policy that gives it (policy/).
 * EXIT_REFUSED: credentials, permission, an absent resource, a request the service rejects.
 * EXIT_UNREACHABLE: no usable reply after all attempts.
 *
 * A client belongs to one thread.
 */
#ifndef STK_AWS_AWS_H
#define STK_AWS_AWS_H

#include <stdbool.h>
#include <stdint.h>

#include "aws/auth/sigv4.h"
#include "aws/http/http.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"

struct aws;

enum aws_operation {
#define OPERATION(id, ...) AWS_##id,
#include "aws/operations.def"
#undef OPERATION
	AWS_OPERATION_COUNT
};

/* Opens a client whose calls are signed with the keys of the chain (credentials.h), unless they
 * name others. */
int aws_open(struct aws **ret, struct err **err);
/* Opens a client without the chain, for its providers: a call names its keys, or needs none. */
int aws_open_keyless(struct aws **ret, struct err **err);
void aws_freep(struct aws **aws); /* drops calls under way */
/* Says which keys of S3 the client is for: those of the bucket that begin with the prefix. Where a
 * right is missing, the error names the statement for all of them. */
void aws_set_place(struct aws *aws, const char *bucket, const char *prefix);

/* A call. All pointers must stay valid until the call is done. */
struct aws_call {
	enum aws_operation operation;
	/* S3: raw bytes, encoded here; key NULL: the bucket itself. Of other services the key is
	 * the last part of the path; NULL: the operation's path is the whole. */
	const char *bucket, *key;
	const struct sigv4_identity *as; /* NULL: the chain's credentials (credentials.h) */
	const char *region;              /* NULL: as set */
	/* Parameters, not encoded: of the query (S3, rest-json) or, for services of the query
	 * protocol, of the form. A value of NULL: the bare name. */
	const struct sigv4_pair *params;
	size_t param_count;
	const struct sigv4_pair *headers; /* names in lower case */
	size_t header_count;
	const json_t *json; /* the body, for services that speak JSON */
	/* The body for other services: in memory, or a range of a file. */
	const void *body;
	uint64_t body_len;
	int body_fd; /* -1: none. Note: 0 is a descriptor, so begin with AWS_CALL_INIT */
	uint64_t body_offset;
	/* SHA-256 of the body, if the caller has it already; else it is computed here. */
	const char *body_sha256;
	/* Receives a 2xx body as it arrives (for an operation with ERROR_200: all at once).
	 * `restart` is called first if a new attempt begins after bytes have been delivered; if
	 * NULL, a call that has delivered bytes is not retried. */
	bool (*sink)(void *arg, const void *bytes, size_t len);
	void (*restart)(void *arg);
	void *sink_arg;
	size_t reply_max; /* limit of a gathered body; 0: 8 MiB */
	/* An attempt ends if nothing was received or sent for `silent_ms`, 0: 60 s. No attempt
	 * begins later than `again_ms` after the first, or after the sink last received bytes; 0:
	 * the number of attempts is the only limit. For aws_perform() 0 means AWS_SILENT_MS and
	 * AWS_AGAIN_MS. */
	int64_t silent_ms, again_ms;
	int64_t total_ms; /* aws_perform() waits no longer; 0: AWS_CALL_MS */
};

/* The longest time that a process waits for one call: aws_perform(), and a small request of s3.h. A
 * driver does nothing else meanwhile: it renews its lease and looks at its limits between calls.
 * Services answer within a second or two, and an attempt that is silent for AWS_SILENT_MS ends
 * early enough for another one. */
#define AWS_CALL_MS   30000
#define AWS_SILENT_MS 10000
#define AWS_AGAIN_MS  15000

#define AWS_CALL_INIT(op) ((struct aws_call){ .operation = AWS_##op, .body_fd = -1 })

struct aws_reply {
	long status;             /* 0: there was none */
	char code[96];           /* the service's error code; "" on success */
	struct http_reply *http; /* headers and body */
	json_t *json;            /* parsed body of a success, for services that speak JSON */
	int attempts;
	/* An earlier attempt may have taken effect: its reply was lost. */
	bool maybe_repeated;
	/* True if an attempt of the call that failed, even the last one, may have taken effect all
	 * the same. False: certainly none did. */
	bool maybe_done;
	bool throttled;  /* refused for its rate: succeeds later */
	struct err *err; /* reason of a failure; taken by TAKE() or freed with the reply */
};

/* True if the status is 2xx and the body is not an error in disguise. */
bool aws_reply_ok(const struct aws_reply *reply);

typedef void (*aws_done_fn)(void *arg, struct aws_reply *reply); /* valid until it returns */

struct aws_request; /* a call under way */

/* Starts a call; `done` is called once, from aws_turn(), never from here. */
struct aws_request *aws_request_start(struct aws *aws, const struct aws_call *call,
				      aws_done_fn done, void *arg);
void aws_request_cancel(struct aws_request *request); /* frees it; `done` is not called */
/* Changes the call's limits (see aws_call), from its next attempt on. */
void aws_request_limit(struct aws_request *request, int64_t silent_ms, int64_t again_ms);
/* Makes progress on all calls; waits `wait_ms` at most. */
void aws_turn(struct aws *aws, int64_t wait_ms);

/* Performs one call and waits for its end, AWS_CALL_MS at most: a call that takes longer fails with
 * EXIT_UNREACHABLE, effect unknown. Returns 0 with a reply that is ok, -1 with `err`;
 * `ret` has status and code in both cases.
 *
 * Once this process is asked to stop waiting (cancel.h), this wait soon ends early, and a new one
 * at once: with EXIT_UNREACHABLE, effect unknown. So do aws_wait_turn() and the functions of s3.h
 * that wait; but not callers that use aws_turn() themselves, such as a transfer of many files at
 * once. */
int aws_perform(struct aws *aws, const struct aws_call *call, struct aws_reply *ret,
		struct err **err);
void aws_reply_release(struct aws_reply *reply); /* for AUTO() */

/* In a process of limited patience (http/patience.h) a host that did not answer is not asked again,
 * a throttled or failing request is attempted at most AWS_BRIEF_ATTEMPTS times, and credentials
 * that could not be had are not asked for again. */
#define AWS_BRIEF_ATTEMPTS 3
/* Runs one turn of the caller's own wait, a second at most. Returns -1 if waiting should stop;
 * nothing was done then. */
int aws_wait_turn(struct aws *aws, struct err **err);

/* Appends to `ret` a URL with which anybody can GET the S3 object for `seconds`. */
int aws_presign_get(struct aws *aws, const char *bucket, const char *key, long seconds,
		    struct sb *ret, struct err **err);

#endif
