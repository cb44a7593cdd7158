/* How often a process of the agent's own may die, by a clock that the test sets. */
#include "tests/unit/base/unit.h"

#include "jobs/node/workers.h"

#define MINUTE ((int64_t)60 * 1000)
#define HOUR   (60 * MINUTE)

static struct mono at(int64_t ms)
{
	return (struct mono){ ms };
}

static void die(struct worker *worker, int times, int64_t from_ms, int64_t every_ms)
{
	for (int i = 0; i < times; i++)
		worker_dies(worker, 9, at(from_ms + i * every_ms));
}

static void one_that_never_died_may_start(void **state)
{
	struct worker worker = { 0 };

	(void)state;
	assert_true(worker_may_start(&worker, at(1)));
}

static void deaths_that_are_spread_over_weeks_are_no_end(void **state)
{
	struct worker worker = { 0 };

	(void)state;
	for (int i = 0; i < 10000; i++) {
		worker_dies(&worker, 9, at(1 + i * 12 * MINUTE));
		assert_true(worker_may_start(&worker, at(2 + i * 12 * MINUTE)));
	}
}

static void a_few_within_a_minute_are_no_end(void **state)
{
	struct worker worker = { 0 };

	(void)state;
	die(&worker, WORKER_RESTARTS, 1, 1000);
	assert_true(worker_may_start(&worker, at(MINUTE)));
}

static void one_more_within_the_hour_is_the_end(void **state)
{
	struct worker worker = { 0 };

	(void)state;
	die(&worker, WORKER_RESTARTS + 1, MINUTE, 1000);
	assert_false(worker_may_start(&worker, at(2 * MINUTE)));
	assert_false(worker_may_start(&worker, at(MINUTE + HOUR - 1)));
	assert_true(worker_may_start(&worker, at(MINUTE + HOUR)));
	assert_int_equal(worker.status, 9);
}

static void only_the_last_hour_counts(void **state)
{
	struct worker worker = { 0 };

	(void)state;
	/* Twice the budget, half of it more than an hour ago. */
	die(&worker, WORKER_RESTARTS, 1, 1);
	die(&worker, WORKER_RESTARTS, 2 * HOUR, 1);
	assert_true(worker_may_start(&worker, at(2 * HOUR + MINUTE)));
	die(&worker, 1, 2 * HOUR + MINUTE, 1);
	assert_false(worker_may_start(&worker, at(2 * HOUR + MINUTE)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_never_died_may_start),
		cmocka_unit_test(deaths_that_are_spread_over_weeks_are_no_end),
		cmocka_unit_test(a_few_within_a_minute_are_no_end),
		cmocka_unit_test(one_more_within_the_hour_is_the_end),
		cmocka_unit_test(only_the_last_hour_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
