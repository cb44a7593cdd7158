/* The request pipeline: clients, turns, and calls that wait. See aws.h. */
#include "aws/aws.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "aws/request.h"
#include "jobs/base/process/cancel.h"

int aws_open_keyless(struct aws **ret, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = mem_zero(1, sizeof *aws);
	struct http_settings settings = { aws_ca_bundle(), AWS_CONNECTIONS };

	if (http_new(&settings, &aws->http, err) < 0 || aws_settings_check(err) < 0)
		return -1;
	aws->keys = sigv4_keys_new();
	aws->clock_skews = clock_skews_new();
	aws->quota = RETRY_QUOTA_INIT;
	*ret = TAKE(aws);
	return 0;
}

void aws_freep(struct aws **aws)
{
	struct aws *a = *aws;

	if (!a)
		return;
	while (a->ready.first)
		aws_request_cancel(a->ready.first);
	while (a->waiting.first)
		aws_request_cancel(a->waiting.first);
	while (a->sent.first)
		aws_request_cancel(a->sent.first);
	http_freep(&a->http);
	sigv4_keys_freep(&a->keys);
	clock_skews_freep(&a->clock_skews);
	for (size_t i = 0; i < a->bucket_region_count; i++) {
		free(a->bucket_regions[i].bucket);
		free(a->bucket_regions[i].region);
	}
	free(a->bucket_regions);
	free(a->place_bucket);
	free(a->place_prefix);
	free(a);
	*aws = NULL;
}

void aws_set_place(struct aws *aws, const char *bucket, const char *prefix)
{
	free(aws->place_bucket);
	free(aws->place_prefix);
	aws->place_bucket = mem_copy(bucket);
	aws->place_prefix = mem_copy(prefix);
}

static size_t pending(const struct aws *aws)
{
	return aws->ready.count + aws->sent.count + aws->waiting.count;
}

/* Returns the ms until something can be started; -1 if nothing can at present. */
static int64_t next_due(const struct aws *aws)
{
	int64_t now = clock_mono_now().ms, due = -1;

	if (aws->ready.first && http_pending(aws->http) < AWS_CONNECTIONS)
		return 0;
	for (const struct aws_request *request = aws->waiting.first; request;
	     request = request->next) {
		int64_t left = request->due.ms > now ? request->due.ms - now : 0;

		if (due < 0 || left < due)
			due = left;
	}
	return due;
}

/* ---- public functions ---- */

void aws_request_limit(struct aws_request *request, int64_t silent_ms, int64_t again_ms)
{
	request->call.silent_ms = silent_ms;
	request->call.again_ms = again_ms;
}

void aws_turn(struct aws *aws, int64_t wait_ms)
{
	int64_t end_ms = clock_mono_now().ms + (wait_ms > 0 ? wait_ms : 0);
	uint64_t finished = aws->finished;

	for (;;) {
		int64_t left, due;

		attempt_step(aws);
		left = end_ms - clock_mono_now().ms;
		due = next_due(aws);
		if (due >= 0 && due < left)
			left = due;
		if (aws->finished != finished || !pending(aws))
			return;
		if (http_pending(aws->http))
			http_turn(aws->http, left > 0 ? left : 0);
		else if (left > 0)
			cancel_pause_briefly(left);
		if (aws->finished != finished || clock_mono_now().ms >= end_ms)
			return;
	}
}

int aws_wait_turn(struct aws *aws, struct err **err)
{
	if (cancel_is_due())
		return err_set(err, EXIT_UNREACHABLE,
			       "gave up waiting for an answer: the time for it is over");
	aws_turn(aws, CANCEL_LOOK_MS);
	return 0;
}

struct aws_waited {
	struct aws_reply *ret;
	bool done;
};

static void on_waited(void *arg, struct aws_reply *reply)
{
	struct aws_waited *waited = arg;

	*waited->ret = *reply;
	*reply = (struct aws_reply){ 0 };
	waited->done = true;
}

/* A turn of the wait for a call that has its time until `end`. */
static int perform_turn(struct aws *aws, struct mono end, int64_t total_ms, struct err **err)
{
	if (clock_mono_now().ms >= end.ms)
		return err_set(err, EXIT_UNREACHABLE, "there was no answer within %lld s",
			       (long long)(total_ms / 1000));
	return aws_wait_turn(aws, err);
}

int aws_perform(struct aws *aws, const struct aws_call *call, struct aws_reply *ret,
		struct err **err)
{
	struct aws_waited waited = { ret, false };
	struct aws_call limited = *call;
	int64_t total_ms = call->total_ms ? call->total_ms : AWS_CALL_MS;
	struct mono end = { clock_mono_now().ms + total_ms };
	struct aws_request *request;

	limited.silent_ms = call->silent_ms ? call->silent_ms : AWS_SILENT_MS;
	limited.again_ms = call->again_ms ? call->again_ms : AWS_AGAIN_MS;
	request = aws_request_start(aws, &limited, on_waited, &waited);
	while (!waited.done)
		if (perform_turn(aws, end, total_ms, err) < 0) {
			bool sent = request->attempts > 0;

			aws_request_cancel(request);
			*ret = (struct aws_reply){ .maybe_done = sent };
			return -1;
		}
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
	const char *region = attempt_bucket_region(aws, bucket);
	struct sigv4_request what = { .method = "GET", .service = "s3", .is_s3 = true };
	struct sigv4_identity who;

	call.bucket = bucket;
	call.key = key;
	if (!region)
		region = aws_region(err);
	if (!region || endpoint_find(&where, &call, region, err) < 0 ||
	    aws_request_keys(aws, &found, err) < 0)
		return -1;
	who = (struct sigv4_identity){ found.access_key, found.secret_key, found.token };
	what.host = where.host.text;
	what.path = where.path.text;
	what.query = "";
	what.payload = SIGV4_UNSIGNED;
	what.region = region;
	sb_addf(ret, "%s?", where.url.text);
	sigv4_presign(aws->keys, &who, &what,
		      clock_skew_time(aws->clock_skews, where.host.text, clock_utc_now()), seconds,
		      NULL, ret);
	return 0;
}
