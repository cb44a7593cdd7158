/* Time for services that do not answer: all of them share it. */
#include "aws/http/patience.h"

#include "aws/credentials/credentials.h"
#include "aws/credentials/settings.h"
#include "tests/unit/aws/asking.h"

static void silence_spends_it_and_then_nobody_is_asked(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	REPLY first = { 0 };
	REPLY second = { 0 };

	(void)state;
	patience_set(1500);
	ASK(peer, &first, .silent_ms = 60000);
	assert_failure(&first, HTTP_TIMEOUT);
	assert_string_equal(first.why, "nothing came or went for 1.5 s");
	assert_int_equal(patience_left(), 0);
	ASK(peer, &second, .silent_ms = 60000);
	assert_failure(&second, HTTP_UNREACHABLE);
	assert_string_equal(second.why, "those asked before it did not answer");
	assert_int_equal(peer->connections, 1);
}

static void what_is_left_is_the_limit_of_the_next(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	REPLY reply = { 0 };

	(void)state;
	patience_set(60000);
	patience_spend(59000);
	ASK(peer, &reply, .silent_ms = 60000);
	assert_failure(&reply, HTTP_TIMEOUT);
	assert_string_equal(reply.why, "nothing came or went for 1 s");
}

static void a_shorter_limit_of_a_request_holds(void **state)
{
	AUTO(peer_freep) struct peer *peer = PEER({ .hang = true });
	REPLY reply = { 0 };

	(void)state;
	patience_set(60000);
	ASK(peer, &reply, .silent_ms = 1000);
	assert_failure(&reply, HTTP_TIMEOUT);
	assert_string_equal(reply.why, "nothing came or went for 1 s");
	assert_true(patience_left() > 0 && patience_left() <= 60000 - 1000);
}

static void an_answer_costs_nothing_however_long(void **state)
{
	AUTO(peer_freep)
	struct peer *peer = PEER({ .filler = 30, .at_once = 45, .gap_ms = 20 });

	(void)state;
	patience_set(30000);
	for (int i = 0; i < 3; i++) {
		REPLY reply = { 0 };

		ASK(peer, &reply, .silent_ms = 60000);
		assert_failure(&reply, HTTP_OK);
		assert_int_equal(reply.body.len, 30);
	}
	assert_int_equal(patience_left(), 30000);
}

static void assert_offline(struct err **err)
{
	assert_int_equal((*err)->code, EXIT_UNREACHABLE);
	assert_string_equal((*err)->message, PATIENCE_OFFLINE);
	err_wrap(err, "cannot read 'x'");
	assert_string_equal(patience_reason(*err), PATIENCE_OFFLINE);
	err_freep(err);
	err_set(err, EXIT_REFUSED, "'x' names no image");
	assert_string_equal(patience_reason(*err), "'x' names no image");
	err_freep(err);
}

static void offline_nothing_is_made_and_nothing_read(void **state)
{
	AUTO(http_freep) struct http *http = NULL;
	AUTO(credentials_release) struct credentials keys = { 0 };
	struct err *err = NULL;

	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "a", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "b", 1);
	patience_set(0);
	assert_int_equal(http_new(NULL, &http, &err), -1);
	assert_offline(&err);
	assert_int_equal(credentials_get(&keys, &err), -1);
	assert_offline(&err);
	assert_null(aws_region(&err));
	assert_offline(&err);
}

int main(void)
{
#define T(name) test_in_world(name)
	const struct CMUnitTest tests[] = {
		T(silence_spends_it_and_then_nobody_is_asked),
		T(what_is_left_is_the_limit_of_the_next),
		T(a_shorter_limit_of_a_request_holds),
		T(an_answer_costs_nothing_however_long),
		T(offline_nothing_is_made_and_nothing_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
