/*
 * Calls under way: the state of each, and the transitions between stages. Used by aws.c,
 * attempt.c and task.c alone.
 */
#ifndef STK_AWS_TASK_H
#define STK_AWS_TASK_H

#include "aws/auth/clock_skew.h"
#include "aws/auth/signed_request.h"
#include "aws/aws.h"
#include "aws/http/rate_limit.h"
#include "aws/http/response_class.h"
#include "aws/http/retry.h"
#include "jobs/base/clock.h"

#define AWS_CONNECTIONS 16 /* limit of a client, at once */
#define REGION_MAX      40

enum task_stage {
	READY,   /* to be sent when a connection is free */
	SENT,    /* an exchange is under way */
	RESTING, /* until `due` */
	ASKING,  /* another call finds out the bucket's region */
};

struct aws_task {
	struct aws *aws;
	struct aws_call call;
	aws_done_fn done;
	void *arg;
	enum task_stage stage;
	struct signed_request out;
	struct http_exchange *exchange; /* in stage SENT */
	/* ASKING: the call that asks for the region, and the refused reply meanwhile. `asker` is
	 * the task that a question belongs to. */
	struct aws_task *question, *asker;
	struct http_reply *held;
	struct response_class held_verdict;
	struct mono due;   /* RESTING */
	struct mono alive; /* start of the first attempt, or time of the last bytes received */
	struct utc dated;  /* date of the attempt */
	char region[REGION_MAX];
	char *access_key; /* used by the attempt; NULL: unsigned */
	bool has_token;
	int attempts, cures, paid; /* sent; of these, after a cure; quota paid for the last retry */
	bool is_made, delivered;
	bool moved, skewed, refreshed; /* each may be cured once */
	bool renewed;                  /* the keys differ from those that were refused */
	bool maybe_repeated;
	bool placed;                  /* has waited for its rate limit (rate_limit.h) */
	struct aws_task *prev, *next; /* in the list of its stage; ASKING: with SENT */
};

struct task_list {
	struct aws_task *first, *last;
	size_t count;
};

struct bucket_place {
	char *bucket, *region;
};

struct aws {
	struct http *http;
	struct sigv4_keys *keys;
	struct clock_skews *clock_skews;
	struct retry_quota quota;
	struct rate_limit paces[AWS_OPERATION_COUNT];
	struct bucket_place *places; /* buckets in another region than the configured one */
	size_t place_count;
	struct task_list ready, sent, resting;
	uint64_t finished; /* calls so far */
};

/* task.c */
struct aws_task *task_new(struct aws *aws, const struct aws_call *call, aws_done_fn done,
			  void *arg);
void task_free(struct aws_task *task); /* without calling back */
void task_stage(struct aws_task *task, enum task_stage stage);
/* Call back and free: for a call that could not be sent, or that ends with this verdict. */
void task_fail(struct aws_task *task, struct err *err);
void task_end(struct aws_task *task, struct http_reply *http, struct response_class *verdict);
/* Moves the reply out of an exchange; the caller releases and frees it. */
struct http_reply *task_reply_keep(struct http_reply *reply);

/* attempt.c: starts the next attempt of a call that is READY. -1: it cannot be sent. */
int attempt_task(struct aws_task *task, struct err **err);

/* True if the refusal seems to mean that the keys of the chain have expired. */
bool attempt_task_has_expired(const struct aws_task *task, const struct fault *fault);
/* Returns the region of a bucket that is not in the configured region; NULL: not known. */
const char *attempt_bucket_region(const struct aws *aws, const char *bucket);

/* brief.c: does nothing unless the process is brief (aws_brief()). */
void brief_note_away(const char *host, const char *why);
int brief_check(const char *host, struct err **err); /* -1: the host was unreachable a moment ago */

/* aws.c: sends what is due and sets the timer for the rest. */
void aws_step(struct aws *aws);

#endif
