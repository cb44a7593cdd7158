/* The request pipeline: queue, attempts, waits between them; see aws.h. */
#include "aws/aws.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "aws/credentials.h"
#include "aws/outgoing.h"
#include "aws/retry.h"
#include "aws/settings.h"
#include "aws/skew.h"
#include "aws/verdict.h"
#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/base/text.h"

#define CONNECTIONS 16
#define REGION_MAX  40

enum stage {
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
	enum stage stage;
	struct outgoing out;
	struct http_exchange *exchange; /* SENT */
	/* ASKING: the call that finds out, and what was refused meanwhile. A question knows
	 * whose it is. */
	struct aws_task *question, *asker;
	struct http_reply *held;
	struct verdict held_verdict;
	struct mono due;  /* RESTING */
	struct utc dated; /* of the attempt */
	char region[REGION_MAX];
	char *access_key; /* of the attempt; NULL: unsigned */
	bool has_token;
	int attempts, paid;
	bool is_made, delivered;
	bool moved, skewed, refreshed; /* each may be cured once */
	bool maybe_repeated;
	struct aws_task *prev, *next; /* in the list of its stage; ASKING: with SENT */
};

struct list {
	struct aws_task *first, *last;
	size_t count;
};

struct place {
	char *bucket, *region;
};

struct aws {
	struct http *http;
	struct sigv4_keys *keys;
	struct skews *skews;
	struct retry_quota quota;
	struct place *places; /* buckets whose region is another than the one set */
	size_t place_count;
	struct list ready, sent, resting;
	uint64_t finished; /* calls so far */
	struct loop *loop;
	struct watch *timer;
};

static void step(struct aws *aws);

static struct list *list_of(struct aws_task *task)
{
	struct aws *aws = task->aws;

	return task->stage == READY     ? &aws->ready
	       : task->stage == RESTING ? &aws->resting
					: &aws->sent;
}

static void list_take(struct aws_task *task)
{
	struct list *list = list_of(task);

	*(task->prev ? &task->prev->next : &list->first) = task->next;
	*(task->next ? &task->next->prev : &list->last) = task->prev;
	list->count--;
}

static void list_add(struct aws_task *task)
{
	struct list *list = list_of(task);

	task->next = NULL;
	task->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = task;
	list->last = task;
	list->count++;
}

static void set_stage(struct aws_task *task, enum stage stage)
{
	list_take(task);
	task->stage = stage;
	list_add(task);
}

int aws_open(struct aws **ret, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = mem_zero(1, sizeof *aws);
	struct http_settings settings = { aws_ca_bundle(), CONNECTIONS };

	if (aws_settings_check(err) < 0 || http_new(&settings, &aws->http, err) < 0)
		return -1;
	aws->keys = sigv4_keys_new();
	aws->skews = skews_new();
	aws->quota = RETRY_QUOTA_INIT;
	*ret = TAKE(aws);
	return 0;
}

static void release_held(struct aws_task *task)
{
	if (task->held) {
		http_reply_release(task->held);
		free(TAKE(task->held));
	}
	verdict_release(&task->held_verdict);
}

static void free_task(struct aws_task *task)
{
	list_take(task);
	if (task->question)
		free_task(task->question);
	if (task->asker)
		task->asker->question = NULL;
	release_held(task);
	if (task->exchange)
		http_cancel(task->aws->http, task->exchange);
	if (task->is_made)
		outgoing_release(&task->out);
	free(task->access_key);
	free(task);
}

void aws_freep(struct aws **aws)
{
	struct aws *a = *aws;

	if (!a)
		return;
	while (a->ready.first)
		free_task(a->ready.first);
	while (a->resting.first)
		free_task(a->resting.first);
	while (a->sent.first)
		free_task(a->sent.first);
	if (a->loop)
		loop_remove(a->loop, a->timer);
	http_freep(&a->http);
	sigv4_keys_freep(&a->keys);
	skews_freep(&a->skews);
	for (size_t i = 0; i < a->place_count; i++) {
		free(a->places[i].bucket);
		free(a->places[i].region);
	}
	free(a->places);
	free(a);
	*aws = NULL;
}

struct http *aws_http(struct aws *aws)
{
	return aws->http;
}

size_t aws_pending(const struct aws *aws)
{
	return aws->ready.count + aws->sent.count + aws->resting.count;
}

/* ---- the end of a call ---- */

bool aws_reply_ok(const struct aws_reply *reply)
{
	return !reply->err;
}

void aws_reply_release(struct aws_reply *reply)
{
	if (reply->http) {
		http_reply_release(reply->http);
		free(reply->http);
	}
	json_decref(reply->json);
	err_free(reply->err);
	*reply = (struct aws_reply){ 0 };
}

/* Hand the reply over and forget the call. */
static void deliver(struct aws_task *task, struct aws_reply *reply)
{
	aws_done_fn done = task->done;
	void *arg = task->arg;

	reply->attempts = task->attempts;
	reply->maybe_repeated = task->maybe_repeated;
	task->aws->finished++;
	free_task(task);
	done(arg, reply);
	aws_reply_release(reply);
}

static void fail(struct aws_task *task, struct err *err)
{
	struct aws_reply reply = { .err = err };

	deliver(task, &reply);
}

/* Take over what the exchange has brought. */
static struct http_reply *keep_reply(struct http_reply *reply)
{
	struct http_reply *kept = mem_alloc(sizeof *kept);

	*kept = *reply;
	reply->body = reply->headers = SB_INIT;
	return kept;
}

static void end(struct aws_task *task, struct http_reply *http, struct verdict *verdict)
{
	struct aws_reply reply = { .status = http->failure == HTTP_OK ? http->status : 0 };
	AUTO(sb_release) struct sb id = SB_INIT_MAX(sizeof reply.request_id - 1);

	if (verdict->what == VERDICT_DONE) {
		reply.json = TAKE(verdict->json);
		if (task->attempts > 0)
			retry_earn(&task->aws->quota, task->paid);
		if (http_header(http, "x-amz-request-id", &id) ||
		    http_header(http, "x-amzn-requestid", &id))
			snprintf(reply.request_id, sizeof reply.request_id, "%s", id.text);
	} else {
		if (!verdict->unread) {
			memcpy(reply.code, verdict->fault.code, sizeof reply.code);
			memcpy(reply.request_id, verdict->fault.request_id,
			       sizeof reply.request_id);
		}
		verdict_error(verdict, &task->call, task->out.where.host.text, task->attempts,
			      &reply.err);
	}
	reply.http = keep_reply(http);
	deliver(task, &reply);
}

/* ---- the region of a bucket ---- */

static const char *known_region(const struct aws *aws, const char *bucket)
{
	for (size_t i = 0; bucket && i < aws->place_count; i++)
		if (strcmp(aws->places[i].bucket, bucket) == 0)
			return aws->places[i].region;
	return NULL;
}

static void learn_region(struct aws *aws, const char *bucket, const char *region)
{
	for (size_t i = 0; i < aws->place_count; i++)
		if (strcmp(aws->places[i].bucket, bucket) == 0) {
			free(aws->places[i].region);
			aws->places[i].region = mem_copy(region);
			return;
		}
	aws->places = mem_grow(aws->places, aws->place_count + 1, sizeof *aws->places);
	aws->places[aws->place_count++] = (struct place){ mem_copy(bucket), mem_copy(region) };
}

static bool is_s3(const struct aws_task *task)
{
	return operation_row(task->call.operation)->service == SERVICE_S3;
}

static bool is_head(const struct aws_task *task)
{
	return strcmp(operation_row(task->call.operation)->method, "HEAD") == 0;
}

/* It was refused because the bucket is somewhere else, as far as one can see. */
static bool is_elsewhere(const struct aws_task *task, const struct fault *fault)
{
	const char *code = fault->code;

	if (!is_s3(task) || !task->call.bucket)
		return false;
	return fault->status == 301 || fault->status == 307 || fault->status == 308 ||
	       strcmp(code, "AuthorizationHeaderMalformed") == 0 ||
	       strcmp(code, "IllegalLocationConstraintException") == 0 ||
	       (is_head(task) && fault->status == 400);
}

/* The answer to "where is the bucket?", whatever its status. */
static void on_answer(void *arg, struct aws_reply *reply)
{
	struct aws_task *task = arg;
	AUTO(sb_release) struct sb region = SB_INIT_MAX(REGION_MAX - 1);
	struct http_reply *held;

	if (reply->http && http_header(reply->http, "x-amz-bucket-region", &region) &&
	    strcmp(region.text, task->region) != 0) {
		learn_region(task->aws, task->call.bucket, region.text);
		release_held(task);
		set_stage(task, READY);
		return;
	}
	held = TAKE(task->held);
	end(task, held, &task->held_verdict);
	http_reply_release(held);
	free(held);
}

static struct aws_task *task_new(struct aws *aws, const struct aws_call *call, aws_done_fn done,
				 void *arg)
{
	struct aws_task *task = mem_zero(1, sizeof *task);

	task->aws = aws;
	task->call = *call;
	task->done = done;
	task->arg = arg;
	task->stage = READY;
	list_add(task);
	return task;
}

static void ask_region(struct aws_task *task, struct http_reply *http, struct verdict *verdict)
{
	struct aws_call call = AWS_CALL_INIT(HEAD_BUCKET);

	call.bucket = task->call.bucket;
	call.as = task->call.as;
	call.region = task->call.region;
	task->held = keep_reply(http);
	task->held_verdict = *verdict;
	verdict->json = NULL;
	set_stage(task, ASKING);
	task->question = task_new(task->aws, &call, on_answer, task);
	task->question->asker = task;
	task->question->moved = true; /* it asks nobody in turn */
}

/* ---- attempts ---- */

/* How many ms until something can be begun; -1: never, as things are. */
static int64_t next_due(const struct aws *aws)
{
	int64_t now = mono_now().ms, due = -1;

	if (aws->ready.first && http_pending(aws->http) < CONNECTIONS)
		return 0;
	for (const struct aws_task *task = aws->resting.first; task; task = task->next) {
		int64_t left = task->due.ms > now ? task->due.ms - now : 0;

		if (due < 0 || left < due)
			due = left;
	}
	return due;
}

static void on_timer(void *arg)
{
	struct aws *aws = arg;

	aws->timer = NULL;
	step(aws);
}

/* Refused, but what is wrong can be set right: true if it is on its way again. */
static bool cure(struct aws_task *task, struct http_reply *http, struct verdict *verdict)
{
	const struct fault *fault = &verdict->fault;
	enum fault_kind kind = fault_kind(fault);
	bool says_nothing = is_head(task) && (fault->status == 400 || fault->status == 403);
	AUTO(sb_release) struct sb date = SB_INIT_MAX(64);

	if (verdict->unread)
		return false;
	if (!task->moved && is_elsewhere(task, fault)) {
		if (fault->region[0] && strcmp(fault->region, task->region) != 0) {
			task->moved = true;
			learn_region(task->aws, task->call.bucket, fault->region);
			set_stage(task, READY);
			return true;
		}
		if (!fault->region[0]) {
			task->moved = true;
			ask_region(task, http, verdict);
			return true;
		}
	}
	if (!task->skewed && task->access_key && (kind == FAULT_CLOCK || says_nothing) &&
	    http_header(http, "date", &date) &&
	    skew_learn(task->aws->skews, task->out.where.host.text, date.text, task->dated,
		       utc_now())) {
		task->skewed = true;
		set_stage(task, READY);
		return true;
	}
	if (!task->refreshed && !task->call.as && task->access_key &&
	    (kind == FAULT_EXPIRED || (says_nothing && fault->status == 400 && task->has_token)) &&
	    credentials_expired(task->access_key)) {
		task->refreshed = true;
		set_stage(task, READY);
		return true;
	}
	return false;
}

static int attempts_max(const struct aws_task *task)
{
	const char *set = aws_env("AWS_MAX_ATTEMPTS");

	if (!set)
		set = aws_config_value(aws_profile(), "max_attempts");
	return retry_attempts(set, is_s3(task));
}

/* True if it will be tried again after a while. */
static bool rest(struct aws_task *task, const struct http_reply *http,
		 const struct verdict *verdict)
{
	int flags = operation_row(task->call.operation)->flags, paid;
	AUTO(sb_release) struct sb asked = SB_INIT_MAX(32);
	int64_t asked_ms = -1;
	uint32_t chance;

	if (verdict->what != VERDICT_AGAIN || task->attempts >= attempts_max(task) ||
	    (verdict->effect_unknown && (flags & OPERATION_ONCE)) ||
	    (task->delivered && !task->call.restart))
		return false;
	paid = retry_pay(&task->aws->quota, verdict->timeout);
	if (!paid)
		return false;
	task->paid = paid;
	task->maybe_repeated |= verdict->effect_unknown;
	random_bytes(&chance, sizeof chance);
	if (http_header(http, "x-amz-retry-after", &asked) && asked.len < 10)
		asked_ms = strtol(asked.text, NULL, 10);
	task->due.ms = mono_now().ms + retry_backoff_ms(task->attempts, chance, asked_ms);
	set_stage(task, RESTING);
	return true;
}

static void on_reply(void *arg, struct http_reply *http)
{
	struct aws_task *task = arg;
	struct aws *aws = task->aws;
	AUTO(verdict_release) struct verdict verdict;

	task->exchange = NULL;
	verdict_of(&task->call, http, &verdict);
	if (verdict.what == VERDICT_DONE ||
	    (!cure(task, http, &verdict) && !rest(task, http, &verdict)))
		end(task, http, &verdict);
	step(aws);
}

/* Bytes of a success on their way to the caller. */
static bool on_bytes(void *arg, const void *bytes, size_t len)
{
	struct aws_task *task = arg;

	task->delivered = true;
	return task->call.sink(task->call.sink_arg, bytes, len);
}

static void transmit(struct aws_task *task, const struct sigv4_identity *who)
{
	struct aws *aws = task->aws;
	struct http_request request;

	task->dated = skew_time(aws->skews, task->out.where.host.text, utc_now());
	free(task->access_key);
	task->access_key = who ? mem_copy(who->access_key) : NULL;
	task->has_token = who && who->token;
	outgoing_sign(&task->out, aws->keys, who, task->region, task->dated, &request);
	request.sink = task->call.sink ? on_bytes : NULL;
	request.sink_arg = task;
	request.reply_max = task->call.reply_max;
	if (task->delivered) {
		task->delivered = false;
		task->call.restart(task->call.sink_arg);
	}
	task->attempts++;
	set_stage(task, SENT);
	task->exchange = http_start(aws->http, &request, on_reply, task);
}

static int choose_region(struct aws_task *task, struct err **err)
{
	const char *region = known_region(task->aws, task->call.bucket);

	if (!region)
		region = task->call.region;
	if (!region)
		region = aws_region(err);
	if (!region)
		return -1;
	snprintf(task->region, sizeof task->region, "%s", region);
	return 0;
}

static int begin_attempt(struct aws_task *task, struct err **err)
{
	const struct operation_row *operation = operation_row(task->call.operation);
	AUTO(credentials_release) struct credentials found = { 0 };
	struct sigv4_identity chain;
	const struct sigv4_identity *who = task->call.as;

	if (!task->is_made) {
		task->is_made = true;
		if (outgoing_make(&task->out, &task->call, err) < 0)
			return -1;
	}
	if (choose_region(task, err) < 0 || outgoing_address(&task->out, task->region, err) < 0)
		return -1;
	if ((operation->flags & OPERATION_UNSIGNED) ||
	    !service_row(operation->service)->signing[0]) {
		transmit(task, NULL);
		return 0;
	}
	if (!who) {
		if (credentials_get(&found, err) < 0)
			return -1;
		chain = (struct sigv4_identity){ found.access_key, found.secret_key, found.token };
		who = &chain;
	}
	transmit(task, who);
	return 0;
}

/* Send what is due and has a connection to go by, and set the timer for the rest. */
static void step(struct aws *aws)
{
	struct mono now = mono_now();
	struct aws_task *next;
	int64_t due;

	for (struct aws_task *task = aws->resting.first; task; task = next) {
		next = task->next;
		if (task->due.ms <= now.ms)
			set_stage(task, READY);
	}
	while (aws->ready.first && http_pending(aws->http) < CONNECTIONS) {
		struct aws_task *task = aws->ready.first;
		struct err *err = NULL;

		if (begin_attempt(task, &err) < 0)
			fail(task, err);
	}
	if (!aws->loop)
		return;
	loop_remove(aws->loop, aws->timer);
	due = next_due(aws);
	aws->timer = due < 0 ? NULL : loop_after(aws->loop, due, on_timer, aws);
}

/* ---- for the callers ---- */

struct aws_task *aws_start(struct aws *aws, const struct aws_call *call, aws_done_fn done,
			   void *arg)
{
	struct aws_task *task = task_new(aws, call, done, arg);

	if (aws->loop && !aws->timer)
		aws->timer = loop_after(aws->loop, 0, on_timer, aws);
	return task;
}

void aws_cancel(struct aws *aws, struct aws_task *task)
{
	free_task(task);
	if (aws->loop && !aws->timer)
		aws->timer = loop_after(aws->loop, 0, on_timer, aws);
}

void aws_turn(struct aws *aws, int64_t wait_ms)
{
	int64_t end_ms = mono_now().ms + (wait_ms > 0 ? wait_ms : 0);
	uint64_t finished = aws->finished;

	for (;;) {
		int64_t left, due;

		step(aws);
		left = end_ms - mono_now().ms;
		due = next_due(aws);
		if (due >= 0 && due < left)
			left = due;
		if (aws->finished != finished || !aws_pending(aws))
			return;
		if (http_pending(aws->http))
			http_turn(aws->http, left > 0 ? left : 0);
		else if (left > 0)
			poll(NULL, 0, (int)left);
		if (aws->finished != finished || mono_now().ms >= end_ms)
			return;
	}
}

int aws_attach(struct aws *aws, struct loop *loop, struct err **err)
{
	if (aws->loop)
		loop_remove(aws->loop, aws->timer);
	aws->timer = NULL;
	if (http_attach(aws->http, loop, err) < 0)
		return -1;
	aws->loop = loop;
	if (loop)
		aws->timer = loop_after(loop, 0, on_timer, aws);
	return 0;
}

struct waited {
	struct aws_reply *ret;
	bool done;
};

static void on_waited(void *arg, struct aws_reply *reply)
{
	struct waited *waited = arg;

	*waited->ret = *reply;
	*reply = (struct aws_reply){ 0 };
	waited->done = true;
}

int aws_perform(struct aws *aws, const struct aws_call *call, struct aws_reply *ret,
		struct err **err)
{
	struct waited waited = { ret, false };

	aws_start(aws, call, on_waited, &waited);
	while (!waited.done)
		aws_turn(aws, 1000);
	if (aws_reply_ok(ret))
		return 0;
	*err = TAKE(ret->err);
	return -1;
}

int aws_presign_get(struct aws *aws, const char *bucket, const char *key, long seconds,
		    struct sb *ret, struct err **err)
{
	AUTO(credentials_release) struct credentials found = { 0 };
	AUTO(endpoint_release) struct endpoint where = ENDPOINT_INIT;
	struct aws_call call = AWS_CALL_INIT(GET_OBJECT);
	const char *region = known_region(aws, bucket);
	struct sigv4_request what = { .method = "GET", .service = "s3", .is_s3 = true };
	struct sigv4_identity who;

	call.bucket = bucket;
	call.key = key;
	if (!region)
		region = aws_region(err);
	if (!region || endpoint_find(&where, &call, region, err) < 0 ||
	    credentials_get(&found, err) < 0)
		return -1;
	who = (struct sigv4_identity){ found.access_key, found.secret_key, found.token };
	what.host = where.host.text;
	what.path = where.path.text;
	what.query = "";
	what.payload = SIGV4_UNSIGNED;
	what.region = region;
	sb_addf(ret, "%s?", where.url.text);
	sigv4_presign(aws->keys, &who, &what, skew_time(aws->skews, where.host.text, utc_now()),
		      seconds, NULL, ret);
	return 0;
}
