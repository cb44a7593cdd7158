/* Attempts of a call: where each is sent, how its reply is handled, which refusals have a remedy.
 */
#include "aws/request.h"

#include <stdlib.h>
#include <string.h>

#include "aws/auth/endpoint.h"
#include "aws/credentials/settings.h"
#include "aws/http/patience.h"
#include "jobs/base/hash.h"

/* ---- the region of a bucket ---- */

static struct bucket_region *find_bucket(const struct aws *aws, const char *bucket)
{
	for (size_t i = 0; bucket && i < aws->bucket_region_count; i++)
		if (strcmp(aws->bucket_regions[i].bucket, bucket) == 0)
			return &aws->bucket_regions[i];
	return NULL;
}

const char *attempt_bucket_region(const struct aws *aws, const char *bucket)
{
	const struct bucket_region *row = find_bucket(aws, bucket);

	return row ? row->region : NULL;
}

static void learn_region(struct aws *aws, const char *bucket, const char *region)
{
	struct bucket_region *row = find_bucket(aws, bucket);

	if (!row) {
		aws->bucket_regions = mem_grow(aws->bucket_regions, aws->bucket_region_count + 1,
					       sizeof *aws->bucket_regions);
		row = &aws->bucket_regions[aws->bucket_region_count++];
		*row = (struct bucket_region){ .bucket = mem_copy(bucket) };
	}
	free(row->region);
	row->region = mem_copy(region);
}

static bool is_s3(const struct aws_request *request)
{
	return operation_row(request->call.operation)->service == SERVICE_S3;
}

static bool is_head(const struct aws_request *request)
{
	return strcmp(operation_row(request->call.operation)->method, "HEAD") == 0;
}

/* True if the request seems to have been refused because the bucket is in another region. */
static bool is_elsewhere(const struct aws_request *request, const struct fault *fault)
{
	const char *code = fault->code;

	if (!is_s3(request) || !request->call.bucket)
		return false;
	return fault->status == 301 || fault->status == 307 || fault->status == 308 ||
	       strcmp(code, "AuthorizationHeaderMalformed") == 0 ||
	       strcmp(code, "IllegalLocationConstraintException") == 0 ||
	       (is_head(request) && fault->status == 400);
}

static void on_region_reply(void *arg, struct aws_reply *reply);

static void request_region(struct aws_request *request, struct http_reply *http,
			   struct response_class *response)
{
	struct aws_call call = AWS_CALL_INIT(HEAD_BUCKET);

	call.bucket = request->call.bucket;
	call.as = request->call.as;
	call.region = request->call.region;
	request->held = aws_request_keep_reply(http);
	request->held_response = *response;
	response->json = NULL;
	aws_request_set_stage(request, ASKING);
	request->question = aws_request_start(request->aws, &call, on_region_reply, request);
	request->question->asker = request;
	request->question->moved = true; /* so that it asks no further question */
}

static bool follow_region(struct aws_request *request, struct http_reply *http,
			  struct response_class *response)
{
	const struct fault *fault = &response->fault;

	if (request->moved || !is_elsewhere(request, fault) ||
	    strcmp(fault->region, request->region) == 0)
		return false;
	request->moved = true;
	if (fault->region[0]) {
		request->remedies++;
		learn_region(request->aws, request->call.bucket, fault->region);
		aws_request_set_stage(request, READY);
	} else {
		request_region(request, http, response);
	}
	return true;
}

/* ---- clock and credentials ---- */

/* The reply to a HEAD has no body, and therefore no code. */
static bool has_bare_status(const struct aws_request *request, const struct fault *fault,
			    long status)
{
	return is_head(request) && fault->status == status;
}

static bool set_clock(struct aws_request *request, const struct http_reply *http,
		      const struct fault *fault)
{
	AUTO(sb_release) struct sb date = SB_INIT_MAX(64);

	if (request->skewed || !request->access_key ||
	    (fault_kind(fault) != FAULT_CLOCK && !has_bare_status(request, fault, 403) &&
	     !has_bare_status(request, fault, 400)) ||
	    !http_header(http, "date", &date))
		return false;
	request->skewed = clock_skew_learn(request->aws->clock_skews, request->out.where.host.text,
					   date.text, request->dated, clock_utc_now());
	return request->skewed;
}

/* True if the refusal seems to mean that the keys of the chain have expired. */
static bool has_expired(const struct aws_request *request, const struct fault *fault)
{
	return !request->call.as && request->access_key &&
	       (fault_kind(fault) == FAULT_EXPIRED ||
		(request->has_token && !request->renewed && has_bare_status(request, fault, 400)));
}

static bool log_in_again(struct aws_request *request, const struct fault *fault)
{
	if (request->refreshed || !has_expired(request, fault))
		return false;
	request->refreshed = request->aws->credentials->expired(request->access_key);
	return request->refreshed;
}

/* ---- attempts ---- */

/* Handles a refusal with a known remedy, each once per call. Returns true if the call is queued
 * again; that does not count as a retry. */
static bool attempt_remedy(struct aws_request *request, struct http_reply *http,
			   struct response_class *response)
{
	if (response->unread)
		return false;
	if (follow_region(request, http, response))
		return true;
	if (!set_clock(request, http, &response->fault) && !log_in_again(request, &response->fault))
		return false;
	request->remedies++;
	aws_request_set_stage(request, READY);
	return true;
}

static void set_error(const struct aws_request *request, const struct response_class *response,
		      struct err **err)
{
	const struct aws *aws = request->aws;
	const struct response_call of = {
		.call = &request->call,
		.attempts = request->attempts,
		.host = request->out.where.host.text,
		.place = { request->region, aws->place_bucket, aws->place_prefix },
	};

	response_class_error(response, &of, err);
}

static void attempt_end(struct aws_request *request, struct http_reply *http,
			struct response_class *response)
{
	struct aws_reply reply = { .status = http->failure == HTTP_OK ? http->status : 0 };

	if (response->what == RESPONSE_DONE) {
		reply.json = TAKE(response->json);
		if (request->access_key && !request->call.as)
			request->aws->credentials->worked();
		if (request->attempts > 0)
			retry_earn(&request->aws->quota, request->paid);
	} else {
		if (!response->unread) {
			memcpy(reply.code, response->fault.code, sizeof reply.code);
			reply.throttled = fault_kind(&response->fault) == FAULT_THROTTLE;
		}
		reply.maybe_done = response->effect_unknown || request->maybe_repeated;
		set_error(request, response, &reply.err);
		if (!response->unread && has_expired(request, &response->fault) &&
		    request->aws->credentials->can_renew())
			err_code(&reply.err, EXIT_UNREACHABLE);
	}
	reply.http = aws_request_keep_reply(http);
	aws_request_deliver(request, &reply);
}

/* Handles the reply to the question for the bucket's region, whatever its status. Without a
 * region in it, the original reply is handled as before. */
static void on_region_reply(void *arg, struct aws_reply *reply)
{
	struct aws_request *request = arg;
	AUTO(sb_release) struct sb region = SB_INIT_MAX(REGION_MAX - 1);
	AUTO(response_class_release) struct response_class response = request->held_response;
	struct http_reply *held = TAKE(request->held);

	request->held_response.json = NULL;
	if (reply->http && http_header(reply->http, "x-amz-bucket-region", &region) &&
	    strcmp(region.text, request->region) != 0) {
		learn_region(request->aws, request->call.bucket, region.text);
		request->remedies++;
		aws_request_set_stage(request, READY);
	} else if (!attempt_remedy(request, held, &response)) {
		attempt_end(request, held, &response);
	}
	http_reply_release(held);
	free(held);
}

static int attempts_max(const struct aws_request *request)
{
	const char *set = aws_env("AWS_MAX_ATTEMPTS");
	int count;

	if (!set)
		set = aws_config_value(aws_profile(), "max_attempts");
	count = retry_attempts(set, is_s3(request));
	return patience_is_limited() && count > AWS_BRIEF_ATTEMPTS ? AWS_BRIEF_ATTEMPTS : count;
}

/* True if the host is unreachable, or silent. */
static bool is_unreachable(const struct response_class *response)
{
	return response->unread && (response->timeout || !response->effect_unknown);
}

/* Returns true if the call waits for a retry. */
static bool attempt_back_off(struct aws_request *request, const struct http_reply *http,
			     const struct response_class *response)
{
	int flags = operation_row(request->call.operation)->flags, paid;
	AUTO(sb_release) struct sb asked = SB_INIT_MAX(32);
	int64_t asked_ms = -1;
	uint32_t chance;
	struct mono due;

	if (patience_is_limited() && is_unreachable(response)) {
		brief_add_unreachable(request->out.where.host.text, response->why);
		return false;
	}
	if (response->what != RESPONSE_RETRY ||
	    request->attempts - request->remedies >= attempts_max(request) ||
	    (response->effect_unknown && (flags & OPERATION_ONCE)) ||
	    (request->delivered && !request->call.restart))
		return false;
	hash_random_bytes(&chance, sizeof chance);
	if (http_header(http, "x-amz-retry-after", &asked) && asked.len < 10)
		asked_ms = strtol(asked.text, NULL, 10);
	due.ms = clock_mono_now().ms +
		 retry_backoff_ms(request->attempts - request->remedies, chance, asked_ms);
	if (response->unread)
		patience_spend(due.ms - clock_mono_now().ms);
	if (patience_left() == 0)
		return false;
	if (request->call.again_ms && due.ms - request->alive.ms > request->call.again_ms)
		return false;
	paid = retry_pay(&request->aws->quota, response->timeout);
	if (!paid)
		return false;
	request->paid = paid;
	request->maybe_repeated |= response->effect_unknown;
	request->due = due;
	aws_request_set_stage(request, WAITING);
	return true;
}

/* True if the body must be complete before the caller gets any of it, such as a listing. */
static bool is_gathered(const struct aws_request *request)
{
	return (operation_row(request->call.operation)->flags & OPERATION_ERROR_200) != 0;
}

static void hand_over(struct aws_request *request, const struct http_reply *http,
		      struct response_class *response)
{
	if (!request->call.sink || !is_gathered(request) || !http->body.len ||
	    request->call.sink(request->call.sink_arg, http->body.text, http->body.len))
		return;
	response->what = RESPONSE_FINAL;
	response->unread = true;
	snprintf(response->why, sizeof response->why, "cannot process the received data");
}

static void on_reply(void *arg, struct http_reply *http)
{
	struct aws_request *request = arg;
	struct aws *aws = request->aws;
	AUTO(response_class_release) struct response_class response;

	request->transfer = NULL;
	response_class_of(&request->call, http, &response);
	if (response.what == RESPONSE_DONE)
		hand_over(request, http, &response);
	if (response.what == RESPONSE_DONE || (!attempt_remedy(request, http, &response) &&
					       !attempt_back_off(request, http, &response)))
		attempt_end(request, http, &response);
	attempt_step(aws);
}

/* Passes bytes of a successful reply to the caller. */
static bool on_bytes(void *arg, const void *bytes, size_t len)
{
	struct aws_request *request = arg;

	request->delivered = true;
	request->alive = clock_mono_now();
	return request->call.sink(request->call.sink_arg, bytes, len);
}

static void transmit(struct aws_request *request, const struct sigv4_identity *who)
{
	struct aws *aws = request->aws;
	struct http_request wire;

	request->dated =
		clock_skew_time(aws->clock_skews, request->out.where.host.text, clock_utc_now());
	request->renewed |=
		request->refreshed && who && strcmp(who->access_key, request->access_key) != 0;
	free(request->access_key);
	request->access_key = who ? mem_copy(who->access_key) : NULL;
	request->has_token = who && who->token;
	signed_request_sign(&request->out, aws->keys, who, request->region, request->dated, &wire);
	wire.sink = request->call.sink && !is_gathered(request) ? on_bytes : NULL;
	wire.sink_arg = request;
	wire.reply_max = request->call.reply_max;
	wire.silent_ms = request->call.silent_ms;
	if (request->delivered) {
		request->delivered = false;
		request->call.restart(request->call.sink_arg);
	}
	if (request->attempts++ == 0)
		request->alive = clock_mono_now();
	aws_request_set_stage(request, SENT);
	request->transfer = http_start(aws->http, &wire, on_reply, request);
}

static int choose_region(struct aws_request *request, struct err **err)
{
	const struct operation_row *operation = operation_row(request->call.operation);
	const char *region = attempt_bucket_region(request->aws, request->call.bucket);

	if (!region)
		region = request->call.region;
	if (!region)
		region = aws_region(err);
	if (!region)
		return -1;
	region = endpoint_region(operation_service_row(operation->service), region);
	snprintf(request->region, sizeof request->region, "%s", region);
	return 0;
}

/* Starts the next attempt of a call that is READY. -1: it cannot be sent. */
static int attempt_start(struct aws_request *request, struct err **err)
{
	const struct operation_row *operation = operation_row(request->call.operation);
	AUTO(credentials_release) struct credentials found = { 0 };
	struct sigv4_identity chain;
	const struct sigv4_identity *who = request->call.as;

	if (!request->is_made) {
		request->is_made = true;
		if (signed_request_make(&request->out, &request->call, err) < 0)
			return -1;
	}
	if (choose_region(request, err) < 0 ||
	    endpoint_find(&request->out.where, &request->call, request->region, err) < 0 ||
	    brief_check(request->out.where.host.text, err) < 0)
		return -1;
	if ((operation->flags & OPERATION_UNSIGNED) ||
	    !operation_service_row(operation->service)->signing[0]) {
		transmit(request, NULL);
		return 0;
	}
	if (!who) {
		if (aws_request_keys(request->aws, &found, err) < 0)
			return -1;
		chain = (struct sigv4_identity){ found.access_key, found.secret_key, found.token };
		who = &chain;
	}
	transmit(request, who);
	return 0;
}

/* Returns false if the call must first wait for its operation's rate limit. */
static bool rate_allows(struct aws_request *request, struct mono now)
{
	enum aws_operation operation = request->call.operation;
	int64_t wait = 0;

	if (!request->rate_waited)
		wait = rate_limit_place(&request->aws->rate_limits[operation],
					operation_rate(operation), now.ms);
	request->rate_waited = wait > 0;
	if (wait == 0)
		return true;
	request->due.ms = now.ms + wait;
	aws_request_set_stage(request, WAITING);
	return false;
}

void attempt_step(struct aws *aws)
{
	struct mono now = clock_mono_now();
	struct aws_request *next;

	for (struct aws_request *request = aws->waiting.first; request; request = next) {
		next = request->next;
		if (request->due.ms <= now.ms)
			aws_request_set_stage(request, READY);
	}
	while (aws->ready.first && http_pending(aws->http) < AWS_CONNECTIONS) {
		struct aws_request *request = aws->ready.first;
		struct err *err = NULL;

		if (!rate_allows(request, now))
			continue;
		if (attempt_start(request, &err) < 0)
			aws_request_fail(request, err);
	}
}
