/* Many exchanges at once, forgotten ones, and those that go on by an event loop. */
#include "aws/http.h"

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
	struct mono begun = mono_now();

	(void)state;
	http_turn(http, 60000);
	assert_true(mono_now().ms - begun.ms < 60000);
}

static void what_is_forgotten_is_not_told(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true }, { .body = "ok" });
	AUTO(http_freep) struct http *http = client(1);
	struct counted gone = { .http = http }, kept = { .http = http };
	struct http_request request = { .method = "GET", .url = peer->url, .body_fd = -1 };
	struct http_exchange *first = http_start(http, &request, on_counted, &gone);
	struct http_exchange *second = http_start(http, &request, on_counted, &gone);

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

static void quit(void *arg)
{
	loop_quit(arg);
}

static void exchanges_go_on_by_a_loop_beside_its_other_work(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .body = "ok" }, { .filler = 300000 });
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(http_freep) struct http *http = client(4);
	struct counted counted = { .http = http,
				   .request = { .method = "GET", .url = peer->url, .body_fd = -1 },
				   .more = 20 };

	(void)state;
	assert_int_equal(loop_new(&loop, &err), 0);
	counted.loop = loop;
	assert_int_equal(http_attach(http, loop, &err), 0);
	for (int i = 0; i < 20; i++)
		http_start(http, &counted.request, on_counted, &counted);
	assert_int_equal(loop_run(loop, &err), 0);
	assert_int_equal(counted.done, 40);
	assert_int_equal(counted.failed, 0);
	/* Waited for in between, then on the loop, then without it. */
	for (int i = 0; i < 9; i++) {
		REPLY reply = { 0 };

		if (i == 6)
			assert_int_equal(http_attach(http, NULL, &err), 0);
		if (i % 3 == 0 && i < 6) {
			http_start(http, &counted.request, on_counted, &counted);
			assert_int_equal(loop_run(loop, &err), 0);
		}
		http_perform(http, &counted.request, &reply);
		assert_failure(&reply, HTTP_OK);
	}
	assert_int_equal(counted.failed, 0);
}

static void a_transfer_may_change_over_to_a_loop_and_back(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .filler = 200, .gap_ms = 3 });
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(http_freep) struct http *http = client(4);
	struct counted counted = { .http = http };
	struct http_request request = { .method = "GET", .url = peer->url, .body_fd = -1 };

	(void)state;
	assert_int_equal(loop_new(&loop, &err), 0);
	http_start(http, &request, on_counted, &counted);
	for (int i = 0; i < 6; i++) {
		http_attach(http, loop, &err);
		loop_after(loop, 30, quit, loop);
		assert_int_equal(loop_run(loop, &err), 0);
		http_turn(http, 30); /* attached, and waited for */
		http_attach(http, NULL, &err);
		http_turn(http, 30);
	}
	http_attach(http, loop, &err);
	counted.loop = loop;
	if (http_pending(http))
		assert_int_equal(loop_run(loop, &err), 0);
	assert_int_equal(counted.done, 1);
	assert_int_equal(counted.failed, 0);
	assert_int_equal(peer->request_count, 1);
}

/* As S3 does while it completes an upload. */
static void a_byte_now_and_then_is_no_silence(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .body = "    ", .gap_ms = 1300, .at_once = 44 });
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(http_freep) struct http *http = client(0);
	struct http_request request = {
		.url = peer->url, .method = "GET", .body_fd = -1, .silent_ms = 2500
	};
	struct counted counted = { .http = http };
	REPLY reply = { 0 };

	(void)state;
	assert_int_equal(loop_new(&loop, &err), 0);
	counted.loop = loop;
	http_attach(http, loop, &err);
	http_start(http, &request, on_counted, &counted);
	assert_int_equal(loop_run(loop, &err), 0);
	assert_int_equal(counted.failed, 0);
	ASK(peer, &reply, .silent_ms = 1000);
	assert_failure(&reply, HTTP_TIMEOUT);
	assert_string_equal(reply.why, "nothing came or went for 1 s");
}

static void a_timeout_comes_by_the_loop_too(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	AUTO(loop_freep) struct loop *loop = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(http_freep) struct http *http = client(0);
	struct counted counted = { .http = http };
	struct http_request request = {
		.method = "GET", .url = peer->url, .body_fd = -1, .total_ms = 200
	};

	struct mono begun = mono_now();

	(void)state;
	assert_int_equal(loop_new(&loop, &err), 0);
	counted.loop = loop;
	http_attach(http, loop, &err);
	http_start(http, &request, on_counted, &counted);
	assert_int_equal(loop_run(loop, &err), 0);
	assert_int_equal(counted.failed, 1);
	request.total_ms = 0;
	request.silent_ms = 500;
	http_start(http, &request, on_counted, &counted);
	assert_int_equal(loop_run(loop, &err), 0);
	assert_int_equal(counted.failed, 2);
	assert_true(mono_now().ms - begun.ms < PEER_SILENT_MS);
}

int main(void)
{
#define T(name) test_in_world(name)
	const struct CMUnitTest tests[] = {
		T(a_byte_now_and_then_is_no_silence),
		T(many_go_at_once_over_few_connections),
		T(a_turn_without_work_does_not_wait),
		T(what_is_forgotten_is_not_told),
		T(exchanges_go_on_by_a_loop_beside_its_other_work),
		T(a_transfer_may_change_over_to_a_loop_and_back),
		T(a_timeout_comes_by_the_loop_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
