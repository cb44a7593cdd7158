/* The promises of jobs/base/pace.h. */
#include "jobs/base/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EPOCH INT64_C(1795000000000)

static void step(struct pace *pace, int64_t number, int64_t ms)
{
	pace_step(pace, number, (struct mono){ ms }, (struct utc){ EPOCH + ms });
}

static bool near(double value, double wanted)
{
	return fabs(value - wanted) <= wanted * 0.011;
}

static double throughput(const json_t *pace, const char *what)
{
	return js_real(json_object_get(pace, "throughput"), what, 0);
}

static double step_seconds(const json_t *pace, const char *what)
{
	return js_real(js_path(pace, "throughput.step_seconds"), what, 0);
}

static void the_first_ten_steps_are_left_out(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *none = NULL;
	json_auto_t *some = NULL;
	int64_t at = 0;

	(void)state;
	assert_null(pace_json(pace));
	for (int64_t number = 1; number <= 11; number++)
		step(pace, number, at += 10000);
	none = pace_json(pace);
	assert_null(json_object_get(none, "throughput"));
	assert_true(near(js_real(none, "rate", 0), 0.1));
	for (int64_t number = 12; number <= 41; number++)
		step(pace, number, at += 250);
	some = pace_json(pace);
	assert_true(throughput(some, "n") == 30 && throughput(some, "mean") == 4.0);
	assert_true(near(js_real(some, "rate", 0), 4.0));
	assert_true(near(step_seconds(some, "p50"), 0.25) && near(step_seconds(some, "p95"), 0.25));
}

static void constant_steps_are_as_fast_as_they_are(void **state)
{
	static const int64_t times[] = { 5, 20, 150, 3000, 900000 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(times); i++) {
		AUTO(pace_freep) struct pace *pace = pace_new();
		double seconds = (double)times[i] / 1000;
		json_auto_t *json = NULL;

		for (int64_t number = 0; number < 2000; number++)
			step(pace, number, number * times[i]);
		json = pace_json(pace);
		assert_true(near(js_real(json, "rate", 0), 1 / seconds));
		assert_true(near(throughput(json, "mean"), 1 / seconds));
		assert_true(near(step_seconds(json, "p50"), seconds));
		assert_true(near(step_seconds(json, "p90"), seconds));
		/* of a first pause of a minute and more nobody knows what it was */
		assert_int_equal(json_array_size(json_object_get(json, "stretches")),
				 times[i] < 60000 ? 1 : 2);
	}
}

/* A script that is not flushed is read by blocks, each of them in one read or in a few. */
static void bursts_have_a_mean_and_no_quantiles(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 500; number++)
		/* 50 steps of 3 s come together, the last ones a little later */
		step(pace, number, (number + 49) / 50 * 150000 + (number % 50 == 0 ? 2 : 0));
	json = pace_json(pace);
	assert_true(near(js_real(json, "rate", 0), 1 / 3.0));
	assert_true(near(throughput(json, "mean"), 1 / 3.0));
	assert_null(js_path(json, "throughput.step_seconds"));
	assert_int_equal(js_int(json, "first_step", 0), 1);
	assert_int_equal(js_int(json, "step", 0), 500);
}

static void one_moment_is_no_speed(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 5000; number++)
		step(pace, number, 1000);
	json = pace_json(pace);
	assert_null(json_object_get(json, "rate"));
	assert_null(json_object_get(json, "throughput"));
	assert_int_equal(js_int(json, "step", 0), 5000);
}

static void every_tenth_step_has_no_quantiles(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 10; number <= 2000; number += 10)
		step(pace, number, number * 40);
	json = pace_json(pace);
	assert_true(near(throughput(json, "mean"), 25));
	assert_null(js_path(json, "throughput.step_seconds"));
}

static void the_speed_is_that_of_the_newest_minutes(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;
	int64_t at = 0;

	(void)state;
	for (int64_t number = 1; number <= 1000; number++)
		step(pace, number, at += number <= 600 ? 1000 : 2000);
	json = pace_json(pace);
	assert_true(near(js_real(json, "rate", 0), 0.5));
	assert_true(near(throughput(json, "mean"), 989 / (589 + 800.0)));
}

static void a_pause_parts_two_stretches(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;
	const json_t *second;

	(void)state;
	for (int64_t number = 1; number <= 100; number++)
		step(pace, number, number * 100 + (number > 50 ? 60000 : 0));
	json = pace_json(pace);
	assert_int_equal(json_array_size(json_object_get(json, "stretches")), 2);
	second = json_array_get(json_object_get(json, "stretches"), 1);
	assert_int_equal(json_integer_value(json_array_get(second, 0)), EPOCH + 65100);
	assert_int_equal(json_integer_value(json_array_get(second, 1)), EPOCH + 70000);
	assert_int_equal(json_integer_value(json_array_get(second, 2)), 51);
	assert_int_equal(json_integer_value(json_array_get(second, 3)), 100);
	assert_int_equal(pace_at(json, 99), EPOCH + 69900);
	assert_int_equal(pace_at(json, 2), 0);
	assert_int_equal(pace_at(json, 101), 0);
	assert_int_equal(pace_at(NULL, 1), 0);
}

static void steps_that_are_seen_again_are_none(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	step(pace, 10, 0);
	step(pace, 20, 1000);
	step(pace, 5, 2000);
	step(pace, 20, 3000);
	step(pace, 30, 5000);
	json = pace_json(pace);
	assert_true(near(js_real(json, "rate", 0), 2.5));
	assert_int_equal(js_int(json, "at", 0), EPOCH + 5000);
}

static void no_pace_is_too_slow_or_too_fast_to_be_kept(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	step(pace, 0, 0);
	step(pace, 100, 10);
	step(pace, 101, INT64_C(1) << 50);
	step(pace, INT64_C(1) << 52, (INT64_C(1) << 50) + 10);
	json = pace_json(pace);
	assert_true(isfinite(js_real(json, "rate", NAN)) && isfinite(throughput(json, "mean")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_ten_steps_are_left_out),
		cmocka_unit_test(constant_steps_are_as_fast_as_they_are),
		cmocka_unit_test(bursts_have_a_mean_and_no_quantiles),
		cmocka_unit_test(one_moment_is_no_speed),
		cmocka_unit_test(every_tenth_step_has_no_quantiles),
		cmocka_unit_test(the_speed_is_that_of_the_newest_minutes),
		cmocka_unit_test(a_pause_parts_two_stretches),
		cmocka_unit_test(steps_that_are_seen_again_are_none),
		cmocka_unit_test(no_pace_is_too_slow_or_too_fast_to_be_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
