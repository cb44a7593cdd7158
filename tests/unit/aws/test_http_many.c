/* Many transfers at once, forgotten ones, and slow ones. */
#include "aws/http/http.h"

#include "tests/unit/aws/asking.h"

static void many_go_at_once_over_few_connections(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = "ok" });
	AUTO(http_freep) struct http *http = client(5);
	struct counted counted = { .http = http,
				   .request = { .method = "GET", .url = peer->url, .body_fd = -1 },
				   .more = 100 };

	(void)state;
	for (int i = 0; i < 200; i++)
		http_start(http, &counted.request, on_counted, &counted);
	assert_int_equal(counted.done, 0);
	assert_int_equal(http_pending(http), 200);
	while (http_pending(http))
		http_turn(http, 1000);
	assert_int_equal(counted.done, 300);
	assert_int_equal(counted.failed, 0);
	assert_true(peer->connections <= 5);
}

static void a_turn_without_work_does_not_wait(void **state)
{
	AUTO(http_freep) struct http *http = client(0);
	struct mono begun = clock_mono_now();

	(void)state;
	http_turn(http, 60000);
	assert_true(clock_mono_now().ms - begun.ms < 60000);
}

static void what_is_forgotten_is_not_told(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true }, { .body = "ok" });
	AUTO(http_freep) struct http *http = client(1);
	struct counted gone = { .http = http }, kept = { .http = http };
	struct http_request request = { .method = "GET", .url = peer->url, .body_fd = -1 };
	struct http_transfer *first = http_start(http, &request, on_counted, &gone);
	struct http_transfer *second = http_start(http, &request, on_counted, &gone);

	(void)state;
	http_start(http, &request, on_counted, &kept);
	http_turn(http, 50);
	http_cancel(http, second); /* queued */
	http_cancel(http, first);  /* under way */
	while (http_pending(http))
		http_turn(http, 1000);
	assert_int_equal(gone.done, 0);
	assert_int_equal(kept.done, 1);
	http_start(http, &request, on_counted, &gone); /* and with the client */
}

/* The peer sends a byte now and then, as S3 does while it completes an upload. */
static void a_byte_now_and_then_is_no_silence(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = "    ", .gap_ms = 1300, .at_once = 44 });
	REPLY reply = { 0 };

	(void)state;
	ASK(peer, &reply, .silent_ms = 2500);
	assert_failure(&reply, HTTP_OK);
	http_reply_release(&reply);
	ASK(peer, &reply, .silent_ms = 1000);
	assert_failure(&reply, HTTP_TIMEOUT);
	assert_string_equal(reply.why, "nothing came or went for 1 s");
}

int main(void)
{
#define T(name) test_in_world(name)
	const struct CMUnitTest tests[] = {
		T(a_byte_now_and_then_is_no_silence),
		T(many_go_at_once_over_few_connections),
		T(a_turn_without_work_does_not_wait),
		T(what_is_forgotten_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
