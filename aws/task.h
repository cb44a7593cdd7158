/*
 * The calls of a client on their way: what is known of each, and the steps from one stage
 * to the next. For aws.c, attempt.c and task.c alone.
 */
#ifndef STK_AWS_TASK_H
#define STK_AWS_TASK_H

#include "aws/aws.h"
#include "aws/outgoing.h"
#include "aws/pace.h"
#include "aws/retry.h"
#include "aws/skew.h"
#include "aws/verdict.h"
#include "jobs/base/clock.h"

#define AWS_CONNECTIONS 16 /* of a client, at once */
#define REGION_MAX      40

enum task_stage {
	READY,   /* to be sent when there is a connection for it */
	SENT,    /* its exchange is under way */
	RESTING, /* until `due` */
	ASKING,  /* another call finds out the bucket's region */
};

struct aws_task {
	struct aws *aws;
	struct aws_call call;
	aws_done_fn done;
	void *arg;
	enum task_stage stage;
	struct outgoing out;
	struct http_exchange *exchange; /* SENT */
	/* ASKING: the call that finds out, and what was refused meanwhile. A question knows
	 * whose it is. */
	struct aws_task *question, *asker;
	struct http_reply *held;
	struct verdict held_verdict;
	struct mono due;   /* RESTING */
	struct mono alive; /* when the first attempt began, or bytes last came of it */
	struct utc dated;  /* of the attempt */
	char region[REGION_MAX];
	char *access_key; /* of the attempt; NULL: unsigned */
	bool has_token;
	int attempts, cures, paid; /* sent so far; of these, after a cure; for the last retry */
	bool is_made, delivered;
	bool moved, skewed, refreshed; /* each may be cured once */
	bool renewed;                  /* its keys are others than those that were refused */
	bool maybe_repeated;
	bool placed;                  /* its next attempt has had its wait (pace.h) */
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
	struct skews *skews;
	struct retry_quota quota;
	struct pace paces[AWS_OPERATION_COUNT];
	struct bucket_place *places; /* buckets whose region is another than the one set */
	size_t place_count;
	struct task_list ready, sent, resting;
	uint64_t finished; /* calls so far */
	struct loop *loop;
	struct watch *timer;
};

/* task.c */
struct aws_task *task_new(struct aws *aws, const struct aws_call *call, aws_done_fn done,
			  void *arg);
void task_free(struct aws_task *task); /* without a word to anybody */
void task_stage(struct aws_task *task, enum task_stage stage);
/* Tell the caller, and free: of a call that could not be sent, or that has this verdict. */
void task_fail(struct aws_task *task, struct err *err);
void task_end(struct aws_task *task, struct http_reply *http, struct verdict *verdict);
/* Move what an exchange has brought out of it; yours to release and free. */
struct http_reply *reply_keep(struct http_reply *reply);

/* attempt.c: the next attempt of a call that is READY. -1: it cannot be sent. */
int task_attempt(struct aws_task *task, struct err **err);

/* Was it refused because the keys of the chain have run out, as far as one can see? */
bool task_has_expired(const struct aws_task *task, const struct fault *fault);
/* The region of a bucket that is elsewhere than the settings say; NULL: not known. */
const char *bucket_region(const struct aws *aws, const char *bucket);

/* aws.c: send what is due, set the timer for the rest. */
void aws_step(struct aws *aws);

#endif
