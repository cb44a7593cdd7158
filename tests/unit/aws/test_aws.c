/* What the pipeline does that no fault of a service shows: cancelling and turns. */
#include "aws/aws.h"

#include "jobs/base/clock.h"
#include "tests/unit/aws/peer.h"
#include "tests/unit/aws/world.h"

static struct aws *client(const struct peer *peer)
{
	AUTO(err_freep) struct err *err = NULL;
	struct aws *aws = NULL;

	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("AWS_ENDPOINT_URL", peer->url, 1);
	aws_settings_forget();
	aws_open(&aws, &err);
	assert_no_error(err);
	return aws;
}

static struct aws_call get(void)
{
	struct aws_call call = AWS_CALL_INIT(GET_OBJECT);

	call.bucket = "bucket";
	call.key = "key";
	return call;
}

struct told {
	int times, ok;
	struct aws *again; /* start another one from within */
};

static void tell(void *arg, struct aws_reply *reply)
{
	struct told *told = arg;

	told->times++;
	told->ok += aws_reply_ok(reply);
	if (told->again) {
		struct aws_call call = get();
		struct aws *aws = TAKE(told->again);

		aws_request_start(aws, &call, tell, told);
	}
}

static void a_call_is_done_or_tells_why_not(void **state)
{
	AUTO(peer_freep)
	struct peer *peer =
		PEER({ .body = "content" },
		     { .status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>" });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct aws_call call = get();
	AUTO(aws_reply_release) struct aws_reply good = { 0 }, bad = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(aws_perform(aws, &call, &good, &err), 0);
	assert_true(aws_reply_ok(&good));
	assert_string_equal(good.http->body.text, "content");
	assert_int_equal(good.attempts, 1);
	assert_int_equal(aws_perform(aws, &call, &bad, &err), -1);
	assert_error(err, EXIT_REFUSED, "NoSuchKey");
	assert_int_equal(bad.status, 404);
	assert_string_equal(bad.code, "NoSuchKey");
}

static void nothing_is_told_from_within_the_start(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = "x" });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct told told = { .again = aws };
	struct aws_call call = get();

	(void)state;
	unsetenv("AWS_REGION"); /* even what fails without a request */
	aws_settings_forget();
	aws_request_start(aws, &call, tell, &told);
	assert_int_equal(told.times, 0);
	while (told.times < 2)
		aws_turn(aws, 1000);
	assert_int_equal(told.times, 2);
	assert_int_equal(told.ok, 0);
	assert_int_equal(peer->request_count, 0);
}

static void what_is_cancelled_is_not_told_wherever_it_is(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .hang = true }, { .status = 503, .body = "" }, { .body = "x" });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct told gone = { 0 }, kept = { 0 };
	struct aws_call call = get();
	struct aws_request *sent, *resting, *queued;

	(void)state;
	sent = aws_request_start(aws, &call, tell, &gone);
	aws_turn(aws, 100);
	resting = aws_request_start(aws, &call, tell, &gone);
	aws_turn(aws, 0); /* sent */
	while (peer->request_count < 2)
		aws_turn(aws, 5);
	aws_turn(aws, 5); /* its 503 has come, or soon will */
	queued = aws_request_start(aws, &call, tell, &gone);
	aws_request_cancel(queued);
	aws_request_cancel(sent);
	aws_request_cancel(resting);
	aws_request_start(aws, &call, tell, &kept);
	while (kept.times < 1)
		aws_turn(aws, 1000);
	assert_int_equal(kept.ok, 1);
	assert_int_equal(gone.times, 0);
	aws_request_start(aws, &call, tell, &gone); /* and with the client */
	aws_turn(aws, 0);
}

static void a_turn_waits_no_longer_than_it_may(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct told told = { 0 };
	struct aws_call call = get();
	struct mono begun = clock_mono_now();

	(void)state;
	aws_turn(aws, 60000); /* nothing to wait for */
	aws_request_start(aws, &call, tell, &told);
	aws_turn(aws, 50);
	aws_turn(aws, 0);
	assert_true(clock_mono_now().ms - begun.ms < 60000);
	assert_int_equal(told.times, 0);
}

static bool count_bytes(void *arg, const void *bytes, size_t len)
{
	(void)bytes;
	*(size_t *)arg += len;
	return *(size_t *)arg < 100;
}

static void a_list_reaches_its_sink_only_if_it_is_whole(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = "<R><A/>" }, { .body = "<R><A/></R>" });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct aws_call call = AWS_CALL_INIT(LIST_OBJECTS);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	size_t count = 0;

	(void)state;
	call.bucket = "bucket";
	call.sink = count_bytes;
	call.sink_arg = &count;
	assert_int_equal(aws_perform(aws, &call, &reply, &err), 0);
	assert_int_equal(count, 11);
	assert_int_equal(reply.attempts, 2);
}

static void a_sink_that_has_enough_ends_the_call_for_good(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .filler = 200 });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct aws_call call = get();
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	size_t count = 0;

	(void)state;
	call.sink = count_bytes;
	call.sink_arg = &count;
	assert_int_equal(aws_perform(aws, &call, &reply, &err), -1);
	assert_error(err, EXIT_REFUSED, "cannot process the received data");
	assert_int_equal(peer->request_count, 1);
}

static bool add_bytes(void *arg, const void *bytes, size_t len)
{
	(void)bytes;
	*(size_t *)arg += len;
	return true;
}

static void begin_anew(void *arg)
{
	*(size_t *)arg = 0;
}

/* Cut off after two seconds, but moving until then. */
static void a_slow_body_is_asked_for_again_after_its_time(void **state)
{
	AUTO(peer_freep)
	struct peer *peer =
		PEER({ .filler = 200, .at_once = 60, .cut = 110, .gap_ms = 40 }, { .filler = 200 });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct aws_call call = get();
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct mono begun = clock_mono_now();
	size_t count = 0;

	(void)state;
	call.again_ms = 1500;
	call.sink = add_bytes;
	call.restart = begin_anew;
	call.sink_arg = &count;
	assert_int_equal(aws_perform(aws, &call, &reply, &err), 0);
	assert_int_equal(count, 200);
	assert_int_equal(reply.attempts, 2);
	assert_true(clock_mono_now().ms - begun.ms > call.again_ms);
}

static void who_says_nothing_is_not_asked_again_after_its_time(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct aws_call call = get();
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	call.silent_ms = 500;
	call.again_ms = 400;
	assert_int_equal(aws_perform(aws, &call, &reply, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_int_equal(reply.attempts, 1);
}

/* A driver does nothing else while it waits, however many attempts would follow. */
static void a_call_is_waited_for_no_longer_than_its_time(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct aws_call call = get();
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	call.total_ms = 1000;
	assert_int_equal(aws_perform(aws, &call, &reply, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_contains(err->message, "no answer within 1 s");
	assert_true(reply.maybe_done);
	assert_int_equal(peer->request_count, 1);
}

/* A caller may learn only after the start how long the call is waited for. */
static void a_call_that_has_begun_gets_other_limits(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	AUTO(aws_freep) struct aws *aws = client(peer);
	struct told told = { 0 };
	struct aws_call call = get();
	struct mono begun = clock_mono_now();

	(void)state;
	aws_request_limit(aws_request_start(aws, &call, tell, &told), 500, 400);
	while (told.times < 1)
		aws_turn(aws, 1000);
	assert_int_equal(told.times, 1);
	assert_int_equal(peer->request_count, 1);
	assert_true(clock_mono_now().ms - begun.ms < PEER_SILENT_MS);
}

static void an_object_can_be_shared_by_a_url(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ 0 });
	AUTO(aws_freep) struct aws *aws = client(peer);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb url = SB_INIT;

	assert_int_equal(aws_presign_get(aws, "bucket", "a b", 60, &url, &err), 0);
	(void)state;
	assert_contains(url.text, "/bucket/a%20b?X-Amz-Algorithm=AWS4-HMAC-SHA256&");
	assert_contains(url.text, "&X-Amz-Expires=60&");
	assert_contains(url.text, "&X-Amz-Signature=");
}

int main(void)
{
#define T(name) test_in_world(name)
	const struct CMUnitTest tests[] = {
		T(a_call_is_done_or_tells_why_not),
		T(nothing_is_told_from_within_the_start),
		T(what_is_cancelled_is_not_told_wherever_it_is),
		T(a_turn_waits_no_longer_than_it_may),
		T(a_list_reaches_its_sink_only_if_it_is_whole),
		T(a_sink_that_has_enough_ends_the_call_for_good),
		T(a_slow_body_is_asked_for_again_after_its_time),
		T(who_says_nothing_is_not_asked_again_after_its_time),
		T(a_call_is_waited_for_no_longer_than_its_time),
		T(a_call_that_has_begun_gets_other_limits),
		T(an_object_can_be_shared_by_a_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
