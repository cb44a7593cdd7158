/* The end of waits that this process was asked for. */
#include "jobs/base/process/cancel.h"

#include "jobs/base/clock.h"
#include "tests/unit/base/unit.h"

static bool asks(void *arg)
{
	int *times = arg;

	return --*times < 0;
}

static int clear(void **state)
{
	(void)state;
	cancel_when(NULL, NULL);
	cancel_after(0);
	return 0;
}

static void a_pause_that_nothing_asks_about_lasts(void **state)
{
	int64_t begun = clock_mono_now().ms;

	(void)state;
	assert_true(cancel_pause(20));
	assert_true(clock_mono_now().ms - begun >= 20);
	assert_true(cancel_pause(0));
	assert_true(cancel_pause(-5));
	assert_false(cancel_is_due());
}

static void a_question_ends_a_pause_between_two_looks(void **state)
{
	int times = 2; /* the answer is yes from the third on */

	(void)state;
	cancel_when(asks, &times);
	assert_false(cancel_pause(INT64_C(3600) * 1000));
	assert_int_equal(times, -1);
	assert_false(cancel_pause(1));
}

static void what_is_under_way_gets_a_moment(void **state)
{
	int times = 0;

	(void)state;
	cancel_when(asks, &times);
	assert_false(cancel_pause(1));
	assert_false(cancel_is_due());
	for (int i = 0; i < 400 && !cancel_is_due(); i++)
		cancel_pause_briefly(20);
	assert_true(cancel_is_due());
	cancel_when(NULL, NULL);
	assert_false(cancel_is_due());
}

static void a_limit_ends_all_waits_at_once(void **state)
{
	int64_t begun = clock_mono_now().ms;

	(void)state;
	cancel_after(30);
	assert_false(cancel_pause(INT64_C(3600) * 1000));
	assert_true(clock_mono_now().ms - begun >= 30);
	assert_true(cancel_is_due());
	cancel_after(0);
	assert_false(cancel_is_due());
	assert_true(cancel_pause(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_pause_that_nothing_asks_about_lasts, clear),
		cmocka_unit_test_teardown(a_question_ends_a_pause_between_two_looks, clear),
		cmocka_unit_test_teardown(what_is_under_way_gets_a_moment, clear),
		cmocka_unit_test_teardown(a_limit_ends_all_waits_at_once, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
