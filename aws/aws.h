/*
 * Every call to AWS goes through here: build, sign, send, classify, back off.
 *
 * An operation is a row of operations.def, a service one of services.def; this file and
 * what stands behind it know nothing else of either. Each attempt is signed anew, at the
 * server's idea of the time where ours is off. A client keeps each operation to the rate of
 * rates.def. Retries follow the SDKs' standard mode
 * (three attempts, five for S3, or AWS_MAX_ATTEMPTS; their lists of codes; jittered delays; one
 * quota a client). Redirects are not followed: an S3 bucket of another region is learnt from its
 * own header, once, and asked there.
 *
 * An error names operation, service's code, message, HTTP status and request ids, and
 * what to do about it. EXIT_REFUSED: credentials, permission, a thing that is not there,
 * a request the service rejects. EXIT_UNREACHABLE: no usable reply after all attempts.
 *
 * A client belongs to one thread.
 */
#ifndef STK_AWS_AWS_H
#define STK_AWS_AWS_H

#include <stdbool.h>
#include <stdint.h>

#include "aws/http.h"
#include "aws/sigv4.h"
#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/base/sb.h"

struct aws;

enum aws_operation {
#define OPERATION(id, ...) AWS_##id,
#include "aws/operations.def"
#undef OPERATION
	AWS_OPERATION_COUNT
};

int aws_open(struct aws **ret, struct err **err);
void aws_freep(struct aws **aws); /* what is under way is dropped */

/* What is asked. All of it must live until the call is done. */
struct aws_call {
	enum aws_operation operation;
	/* S3: bytes as they are, encoded here; key NULL: the bucket itself. */
	const char *bucket, *key;
	/* rest-json: what fills {} in the operation's path. */
	const char *label;
	const struct sigv4_identity *as; /* NULL: those of the chain (credentials.h) */
	const char *region;              /* NULL: as set */
	/* Parameters, not encoded: of the query (S3, rest-json) or, for services of the query
	 * protocol, of the form. A value of NULL: the bare name. */
	const struct sigv4_pair *params;
	size_t param_count;
	const struct sigv4_pair *headers; /* names in lower case */
	size_t header_count;
	const json_t *json; /* the body, for services that speak JSON */
	/* The body for others: in memory, or a stretch of a file. */
	const void *body;
	uint64_t body_len;
	int body_fd; /* -1: none. Note: 0 is a descriptor, so begin with AWS_CALL_INIT */
	uint64_t body_offset;
	/* SHA-256 of the body, if the caller has it already; else it is computed here. */
	const char *body_sha256;
	/* A 2xx body as it comes (of an operation with ERROR_200: the whole at once). `restart` is
	 * called first when an attempt begins anew after bytes have come; without it a call that
	 * has delivered bytes is not retried. */
	bool (*sink)(void *arg, const void *bytes, size_t len);
	void (*restart)(void *arg);
	void *sink_arg;
	size_t reply_max; /* of a gathered body; 0: 8 MiB */
	/* An attempt ends when nothing came or went for `silent_ms`, 0: 60 s. None begins later
	 * than `again_ms` after the first, or after bytes last came to the sink; 0: the number of
	 * attempts is the only limit. */
	int64_t silent_ms, again_ms;
};
#define AWS_CALL_INIT(op) ((struct aws_call){ .operation = AWS_##op, .body_fd = -1 })

struct aws_reply {
	long status;   /* 0: there was none */
	char code[96]; /* the service's code of an error; "" of a success */
	char request_id[96];
	struct http_reply *http; /* headers and body */
	json_t *json;            /* of a success, for services that speak JSON */
	int attempts;
	/* An attempt before this reply may have had its effect: its reply was lost. */
	bool maybe_repeated;
	struct err *err; /* why, if it failed; taken by TAKE() or freed with the reply */
};

/* True: status 2xx and a body that is no error in disguise. */
bool aws_reply_ok(const struct aws_reply *reply);

typedef void (*aws_done_fn)(void *arg, struct aws_reply *reply); /* reply: until it returns */

struct aws_task; /* a call under way */

/* Begin; `done` is called once, from aws_turn() or the loop, never from here. */
struct aws_task *aws_start(struct aws *aws, const struct aws_call *call, aws_done_fn done,
			   void *arg);
void aws_cancel(struct aws *aws, struct aws_task *task);
/* Other limits than the call came with (see aws_call), from its next attempt on. */
void aws_limit(struct aws_task *task, int64_t silent_ms, int64_t again_ms);
size_t aws_pending(const struct aws *aws);
/* Go on with all calls, for `wait_ms` at most. */
void aws_turn(struct aws *aws, int64_t wait_ms);
int aws_attach(struct aws *aws, struct loop *loop, struct err **err);

/* The whole of one call, waiting: 0 with a reply that is ok, -1 with `err`; `ret` tells
 * status and code in both cases. */
int aws_perform(struct aws *aws, const struct aws_call *call, struct aws_reply *ret,
		struct err **err);
void aws_reply_release(struct aws_reply *reply); /* for AUTO() */

/* Waits that end before their time, with EXIT_UNREACHABLE and the effect unknown: those of
 * this process in aws_perform(), in aws_wait_turn() and in the functions of s3.h that wait.
 * Not http_perform(), which has limits of its own, and nothing that its caller turns, with
 * aws_turn() or on a loop, as one does who carries many files at once. `fn` (NULL: nobody) is
 * asked several times a second whether the process is called away, by a signal that is pending,
 * say. Soon after it says so whoever waits is sent away, and at once whoever begins to, until it
 * says no or is set anew. */
void aws_interrupt(bool (*fn)(void *arg), void *arg);
/* All waits together may last for `ms` from now on; 0: as usual again. */
void aws_hurry(int64_t ms);
/* Is it time? Asks `fn`. */
bool aws_gives_up(void);
/* One turn of a wait of one's own, a second at most; -1: it is time, nothing was done. */
#define AWS_LOOK_MS 200
int aws_wait_turn(struct aws *aws, struct err **err);

/* A URL of an S3 object that anybody can GET for `seconds`. Appended to `ret`. */
int aws_presign_get(struct aws *aws, const char *bucket, const char *key, long seconds,
		    struct sb *ret, struct err **err);

#endif
