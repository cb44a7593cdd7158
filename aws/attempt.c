/* Attempts of a call: where each is sent, how its reply is handled, which failures are cured. */
#include "aws/task.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials.h"
#include "aws/credentials/settings.h"
#include "jobs/base/hash.h"

/* ---- the region of a bucket ---- */

const char *attempt_bucket_region(const struct aws *aws, const char *bucket)
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
	aws->places[aws->place_count++] =
		(struct bucket_place){ mem_copy(bucket), mem_copy(region) };
}

static bool is_s3(const struct aws_task *task)
{
	return operation_row(task->call.operation)->service == SERVICE_S3;
}

static bool is_head(const struct aws_task *task)
{
	return strcmp(operation_row(task->call.operation)->method, "HEAD") == 0;
}

/* True if the request seems to have been refused because the bucket is in another region. */
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

static void on_answer(void *arg, struct aws_reply *reply);

static void ask_region(struct aws_task *task, struct http_reply *http,
		       struct response_class *verdict)
{
	struct aws_call call = AWS_CALL_INIT(HEAD_BUCKET);

	call.bucket = task->call.bucket;
	call.as = task->call.as;
	call.region = task->call.region;
	task->held = task_reply_keep(http);
	task->held_verdict = *verdict;
	verdict->json = NULL;
	task_stage(task, ASKING);
	task->question = task_new(task->aws, &call, on_answer, task);
	task->question->asker = task;
	task->question->moved = true; /* so that it asks no further question */
}

static bool go_where_it_is(struct aws_task *task, struct http_reply *http,
			   struct response_class *verdict)
{
	const struct fault *fault = &verdict->fault;

	if (task->moved || !is_elsewhere(task, fault) || strcmp(fault->region, task->region) == 0)
		return false;
	task->moved = true;
	if (fault->region[0]) {
		task->cures++;
		learn_region(task->aws, task->call.bucket, fault->region);
		task_stage(task, READY);
	} else {
		ask_region(task, http, verdict);
	}
	return true;
}

/* ---- clock and credentials ---- */

/* The reply to a HEAD has no body, and therefore no code. */
static bool says_nothing(const struct aws_task *task, const struct fault *fault, long status)
{
	return is_head(task) && fault->status == status;
}

static bool set_clock(struct aws_task *task, const struct http_reply *http,
		      const struct fault *fault)
{
	AUTO(sb_release) struct sb date = SB_INIT_MAX(64);

	if (task->skewed || !task->access_key ||
	    (fault_kind(fault) != FAULT_CLOCK && !says_nothing(task, fault, 403) &&
	     !says_nothing(task, fault, 400)) ||
	    !http_header(http, "date", &date))
		return false;
	task->skewed = clock_skew_learn(task->aws->clock_skews, task->out.where.host.text,
					date.text, task->dated, clock_utc_now());
	return task->skewed;
}

bool attempt_task_has_expired(const struct aws_task *task, const struct fault *fault)
{
	return !task->call.as && task->access_key &&
	       (fault_kind(fault) == FAULT_EXPIRED ||
		(task->has_token && !task->renewed && says_nothing(task, fault, 400)));
}

static bool log_in_again(struct aws_task *task, const struct fault *fault)
{
	if (task->refreshed || !attempt_task_has_expired(task, fault))
		return false;
	task->refreshed = credentials_expired(task->access_key);
	return task->refreshed;
}

/* ---- attempts ---- */

/* Handles a refusal with a known remedy, each once per call. Returns true if the call is queued
 * again; that does not count as a retry. */
static bool cure(struct aws_task *task, struct http_reply *http, struct response_class *verdict)
{
	if (verdict->unread)
		return false;
	if (go_where_it_is(task, http, verdict))
		return true;
	if (!set_clock(task, http, &verdict->fault) && !log_in_again(task, &verdict->fault))
		return false;
	task->cures++;
	task_stage(task, READY);
	return true;
}

/* Handles the reply to the question for the bucket's region, whatever its status. Without a
 * region in it, the original reply is judged as before. */
static void on_answer(void *arg, struct aws_reply *reply)
{
	struct aws_task *task = arg;
	AUTO(sb_release) struct sb region = SB_INIT_MAX(REGION_MAX - 1);
	AUTO(response_class_release) struct response_class verdict = task->held_verdict;
	struct http_reply *held = TAKE(task->held);

	task->held_verdict.json = NULL;
	if (reply->http && http_header(reply->http, "x-amz-bucket-region", &region) &&
	    strcmp(region.text, task->region) != 0) {
		learn_region(task->aws, task->call.bucket, region.text);
		task->cures++;
		task_stage(task, READY);
	} else if (!cure(task, held, &verdict)) {
		task_end(task, held, &verdict);
	}
	http_reply_release(held);
	free(held);
}

static int attempts_max(const struct aws_task *task)
{
	const char *set = aws_env("AWS_MAX_ATTEMPTS");
	int count;

	if (!set)
		set = aws_config_value(aws_profile(), "max_attempts");
	count = retry_attempts(set, is_s3(task));
	return aws_is_brief() && count > AWS_BRIEF_ATTEMPTS ? AWS_BRIEF_ATTEMPTS : count;
}

/* True if the host is unreachable, or silent. */
static bool is_away(const struct response_class *verdict)
{
	return verdict->unread && (verdict->timeout || !verdict->effect_unknown);
}

/* Returns true if the call waits for a retry. */
static bool rest(struct aws_task *task, const struct http_reply *http,
		 const struct response_class *verdict)
{
	int flags = operation_row(task->call.operation)->flags, paid;
	AUTO(sb_release) struct sb asked = SB_INIT_MAX(32);
	int64_t asked_ms = -1;
	uint32_t chance;
	struct mono due;

	if (aws_is_brief() && is_away(verdict)) {
		brief_note_away(task->out.where.host.text, verdict->why);
		return false;
	}
	if (verdict->what != VERDICT_AGAIN || task->attempts - task->cures >= attempts_max(task) ||
	    (verdict->effect_unknown && (flags & OPERATION_ONCE)) ||
	    (task->delivered && !task->call.restart))
		return false;
	hash_random_bytes(&chance, sizeof chance);
	if (http_header(http, "x-amz-retry-after", &asked) && asked.len < 10)
		asked_ms = strtol(asked.text, NULL, 10);
	due.ms = clock_mono_now().ms +
		 retry_backoff_ms(task->attempts - task->cures, chance, asked_ms);
	if (task->call.again_ms && due.ms - task->alive.ms > task->call.again_ms)
		return false;
	paid = retry_pay(&task->aws->quota, verdict->timeout);
	if (!paid)
		return false;
	task->paid = paid;
	task->maybe_repeated |= verdict->effect_unknown;
	task->due = due;
	task_stage(task, RESTING);
	return true;
}

/* True if the body must be complete before the caller gets any of it, such as a listing. */
static bool is_gathered(const struct aws_task *task)
{
	return (operation_row(task->call.operation)->flags & OPERATION_ERROR_200) != 0;
}

static void hand_over(struct aws_task *task, const struct http_reply *http,
		      struct response_class *verdict)
{
	if (!task->call.sink || !is_gathered(task) || !http->body.len ||
	    task->call.sink(task->call.sink_arg, http->body.text, http->body.len))
		return;
	verdict->what = VERDICT_END;
	verdict->unread = true;
	snprintf(verdict->why, sizeof verdict->why, "what came cannot be taken");
}

static void on_reply(void *arg, struct http_reply *http)
{
	struct aws_task *task = arg;
	struct aws *aws = task->aws;
	AUTO(response_class_release) struct response_class verdict;

	task->exchange = NULL;
	response_class_of(&task->call, http, &verdict);
	if (verdict.what == VERDICT_DONE)
		hand_over(task, http, &verdict);
	if (verdict.what == VERDICT_DONE ||
	    (!cure(task, http, &verdict) && !rest(task, http, &verdict)))
		task_end(task, http, &verdict);
	aws_step(aws);
}

/* Passes bytes of a successful reply to the caller. */
static bool on_bytes(void *arg, const void *bytes, size_t len)
{
	struct aws_task *task = arg;

	task->delivered = true;
	task->alive = clock_mono_now();
	return task->call.sink(task->call.sink_arg, bytes, len);
}

static void transmit(struct aws_task *task, const struct sigv4_identity *who)
{
	struct aws *aws = task->aws;
	struct http_request request;

	task->dated = clock_skew_time(aws->clock_skews, task->out.where.host.text, clock_utc_now());
	task->renewed |= task->refreshed && who && strcmp(who->access_key, task->access_key) != 0;
	free(task->access_key);
	task->access_key = who ? mem_copy(who->access_key) : NULL;
	task->has_token = who && who->token;
	signed_request_sign(&task->out, aws->keys, who, task->region, task->dated, &request);
	request.sink = task->call.sink && !is_gathered(task) ? on_bytes : NULL;
	request.sink_arg = task;
	request.reply_max = task->call.reply_max;
	request.silent_ms = task->call.silent_ms;
	if (aws_is_brief()) {
		request.connect_ms = AWS_BRIEF_CONNECT_MS;
		request.silent_ms = AWS_BRIEF_MS;
	}
	if (task->delivered) {
		task->delivered = false;
		task->call.restart(task->call.sink_arg);
	}
	if (task->attempts++ == 0)
		task->alive = clock_mono_now();
	task_stage(task, SENT);
	task->exchange = http_start(aws->http, &request, on_reply, task);
}

static int choose_region(struct aws_task *task, struct err **err)
{
	const char *region = attempt_bucket_region(task->aws, task->call.bucket);

	if (!region)
		region = task->call.region;
	if (!region)
		region = aws_region(err);
	if (!region)
		return -1;
	snprintf(task->region, sizeof task->region, "%s", region);
	return 0;
}

int attempt_task(struct aws_task *task, struct err **err)
{
	const struct operation_row *operation = operation_row(task->call.operation);
	AUTO(credentials_release) struct credentials found = { 0 };
	struct sigv4_identity chain;
	const struct sigv4_identity *who = task->call.as;

	if (!task->is_made) {
		task->is_made = true;
		if (signed_request_make(&task->out, &task->call, err) < 0)
			return -1;
	}
	if (choose_region(task, err) < 0 ||
	    signed_request_address(&task->out, task->region, err) < 0 ||
	    brief_check(task->out.where.host.text, err) < 0)
		return -1;
	if ((operation->flags & OPERATION_UNSIGNED) ||
	    !operation_service_row(operation->service)->signing[0]) {
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
