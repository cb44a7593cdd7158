/*
 * Calls under way: the state of each, and the transitions between stages. Used
 * within the pipeline alone: aws.c calls attempt.c, both call request.c, cancel.c and brief.c.
 */
#ifndef STK_AWS_REQUEST_H
#define STK_AWS_REQUEST_H

#include "aws/auth/clock_skew.h"
#include "aws/auth/signed_request.h"
#include "aws/aws.h"
#include "aws/credentials/credentials.h"
#include "aws/http/rate_limit.h"
#include "aws/http/response_class.h"
#include "aws/http/retry.h"
#include "jobs/base/clock.h"

#define AWS_CONNECTIONS 16 /* limit of a client, at once */
#define REGION_MAX      40

enum aws_request_stage {
	READY,   /* to be sent when a connection is free */
	SENT,    /* a transfer is under way */
	WAITING, /* until `due`: backoff, or the rate limit */
	ASKING,  /* another call finds out the bucket's region */
};

struct aws_request {
	struct aws *aws;
	struct aws_call call;
	aws_done_fn done;
	void *arg;
	enum aws_request_stage stage;
	struct signed_request out;
	struct http_transfer *transfer; /* in stage SENT */
	/* ASKING: the call that asks for the region, and the refused reply meanwhile. `asker` is
	 * the request that a question belongs to. */
	struct aws_request *question, *asker;
	struct http_reply *held;
	struct response_class held_response;
	struct mono due;   /* WAITING */
	struct mono alive; /* start of the first attempt, or time of the last bytes received */
	struct utc dated;  /* date of the attempt */
	char region[REGION_MAX];
	char *access_key; /* used by the attempt; NULL: unsigned */
	bool has_token;
	int attempts, remedies,
		paid; /* sent; of these, after a remedy; quota paid for the last retry */
	bool is_made, delivered;
	bool moved, skewed, refreshed; /* each remedy is tried once */
	bool renewed;                  /* the keys differ from those that were refused */
	bool maybe_repeated;
	bool rate_waited;                /* has waited for its rate limit (rate_limit.h) */
	struct aws_request *prev, *next; /* in the list of its stage; ASKING: with SENT */
};

struct aws_request_list {
	struct aws_request *first, *last;
	size_t count;
};

struct bucket_region {
	char *bucket, *region;
};

struct aws {
	struct http *http;
	const struct credentials_source
		*credentials; /* NULL: each call names its own, or needs none */
	struct sigv4_keys *keys;
	struct clock_skews *clock_skews;
	struct retry_quota quota;
	struct rate_limit rate_limits[AWS_OPERATION_COUNT];
	struct bucket_region
		*bucket_regions; /* buckets in another region than the configured one */
	size_t bucket_region_count;
	struct aws_request_list ready, sent, waiting;
	char *place_bucket, *place_prefix; /* see aws_set_place(); NULL: not set */
	uint64_t finished;                 /* calls so far */
};

/* --- request.c --- */

void aws_request_set_stage(struct aws_request *request, enum aws_request_stage stage);
/* Call back and free: with a reply, which is released, or for a call that could not be sent. */
void aws_request_deliver(struct aws_request *request, struct aws_reply *reply);
void aws_request_fail(struct aws_request *request, struct err *err);
/* Moves the reply out of a transfer; the caller releases and frees it. */
struct http_reply *aws_request_keep_reply(struct http_reply *reply);
/* Gets the keys of the client's calls. */
int aws_request_keys(struct aws *aws, struct credentials *ret, struct err **err);

/* --- attempt.c --- */

/* Sends the calls that are due and have a connection. */
void attempt_step(struct aws *aws);
/* Returns the region of a bucket that is not in the configured region; NULL: not known. */
const char *attempt_bucket_region(const struct aws *aws, const char *bucket);

/* --- brief.c: does nothing unless patience is limited (http/patience.h) --- */

void brief_add_unreachable(const char *host, const char *why);
int brief_check(const char *host, struct err **err); /* -1: the host was unreachable a moment ago */

#endif
