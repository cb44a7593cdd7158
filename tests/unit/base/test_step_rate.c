/* The promises of jobs/base/step_rate.h. */
#include "jobs/base/step_rate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "jobs/base/text/js.h"

#define EPOCH INT64_C(1795000000000)

static void step(struct step_rate_meter *meter, int64_t number, int64_t ms)
{
	step_rate_meter_step(meter, number, ms, (struct utc){ EPOCH + ms });
}

static bool near(double value, double wanted)
{
	return fabs(value - wanted) <= wanted * 0.011;
}

static double throughput(const json_t *measured, const char *what)
{
	return js_real(json_object_get(measured, "throughput"), what, 0);
}

static double step_seconds(const json_t *measured, const char *what)
{
	return js_real(js_path(measured, "throughput.step_seconds"), what, 0);
}

static void the_first_ten_steps_are_left_out(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *none = NULL;
	json_auto_t *some = NULL;
	int64_t at = 0;

	(void)state;
	assert_null(step_rate_meter_json(meter));
	for (int64_t number = 1; number <= 11; number++)
		step(meter, number, at += 10000);
	none = step_rate_meter_json(meter);
	assert_null(json_object_get(none, "throughput"));
	assert_true(near(js_real(none, "rate", 0), 0.1));
	for (int64_t number = 12; number <= 41; number++)
		step(meter, number, at += 250);
	some = step_rate_meter_json(meter);
	assert_true(throughput(some, "n") == 30 && throughput(some, "mean") == 4.0);
	assert_true(near(js_real(some, "rate", 0), 4.0));
	assert_true(near(step_seconds(some, "p50"), 0.25) && near(step_seconds(some, "p95"), 0.25));
}

static void constant_steps_are_as_fast_as_they_are(void **state)
{
	static const int64_t times[] = { 5, 20, 150, 3000, 900000 };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(times); i++) {
		AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
		double seconds = (double)times[i] / 1000;
		json_auto_t *json = NULL;

		for (int64_t number = 0; number < 2000; number++)
			step(meter, number, number * times[i]);
		json = step_rate_meter_json(meter);
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
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 500; number++)
		/* 50 steps of 3 s come together, the last ones a little later */
		step(meter, number, (number + 49) / 50 * 150000 + (number % 50 == 0 ? 2 : 0));
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 1 / 3.0));
	assert_true(near(throughput(json, "mean"), 1 / 3.0));
	assert_null(js_path(json, "throughput.step_seconds"));
	assert_int_equal(js_int(json, "first_step", 0), 1);
	assert_int_equal(js_int(json, "step", 0), 500);
}

static void one_moment_is_no_speed(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 5000; number++)
		step(meter, number, 1000);
	json = step_rate_meter_json(meter);
	assert_null(json_object_get(json, "rate"));
	assert_null(json_object_get(json, "throughput"));
	assert_int_equal(js_int(json, "step", 0), 5000);
}

static void every_tenth_step_has_no_quantiles(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 10; number <= 2000; number += 10)
		step(meter, number, number * 40);
	json = step_rate_meter_json(meter);
	assert_true(near(throughput(json, "mean"), 25));
	assert_null(js_path(json, "throughput.step_seconds"));
}

static void the_speed_is_that_of_the_newest_minutes(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;
	int64_t at = 0;

	(void)state;
	for (int64_t number = 1; number <= 1000; number++)
		step(meter, number, at += number <= 600 ? 1000 : 2000);
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 0.5));
	assert_true(near(throughput(json, "mean"), 989 / (589 + 800.0)));
}

static void a_pause_parts_two_stretches(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;
	const json_t *second;

	(void)state;
	for (int64_t number = 1; number <= 100; number++)
		step(meter, number, number * 100 + (number > 50 ? 60000 : 0));
	json = step_rate_meter_json(meter);
	assert_int_equal(json_array_size(json_object_get(json, "stretches")), 2);
	second = json_array_get(json_object_get(json, "stretches"), 1);
	assert_int_equal(json_integer_value(json_array_get(second, 0)), EPOCH + 65100);
	assert_int_equal(json_integer_value(json_array_get(second, 1)), EPOCH + 70000);
	assert_int_equal(json_integer_value(json_array_get(second, 2)), 51);
	assert_int_equal(json_integer_value(json_array_get(second, 3)), 100);
	assert_int_equal(step_rate_arrived_ms(json, 99), EPOCH + 69900);
	assert_int_equal(step_rate_arrived_ms(json, 2), 0);
	assert_int_equal(step_rate_arrived_ms(json, 101), 0);
	assert_int_equal(step_rate_arrived_ms(NULL, 1), 0);
}

static void steps_that_are_seen_again_are_none(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	step(meter, 10, 0);
	step(meter, 20, 1000);
	step(meter, 5, 2000);
	step(meter, 20, 3000);
	step(meter, 30, 5000);
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 2.5));
	assert_int_equal(js_int(json, "at", 0), EPOCH + 5000);
}

static void no_speed_is_too_low_or_too_high_to_be_kept(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	step(meter, 0, 0);
	step(meter, 100, 10);
	step(meter, 101, INT64_C(1) << 50);
	step(meter, INT64_C(1) << 52, (INT64_C(1) << 50) + 10);
	json = step_rate_meter_json(meter);
	assert_true(isfinite(js_real(json, "rate", NAN)) && isfinite(throughput(json, "mean")));
}

/* ---- steps that are left out -------------------------------------------------------- */

/* A launcher starts the command anew, from the checkpoint of step 80. */
static void steps_made_again_are_a_pause(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 100; number++)
		step(meter, number, number * 1000);
	for (int64_t number = 81; number <= 200; number++)
		step(meter, number, 130000 + (number - 80) * 1000);
	json = step_rate_meter_json(meter);
	/* 189 new steps in 239 s: 30 s of restart and 20 s of steps that were known */
	assert_true(throughput(json, "n") == 189);
	assert_true(near(throughput(json, "mean"), 189 / 239.0));
	assert_true(near(step_seconds(json, "p50"), 1) && near(step_seconds(json, "p90"), 1));
	assert_int_equal(json_array_size(json_object_get(json, "stretches")), 2);
}

static void the_speed_forgets_a_restart_after_its_window(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 100; number++)
		step(meter, number, number * 1000);
	for (int64_t number = 81; number <= 500; number++)
		step(meter, number, 130000 + (number - 80) * 1000);
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 1));
}

/* A resumed attempt begins at the step of its checkpoint; its first steps are those after it. */
static void a_resumed_attempt_has_first_steps_of_its_own(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 5001; number <= 5011; number++)
		step(meter, number, (number - 5000) * 9000);
	for (int64_t number = 5012; number <= 5061; number++)
		step(meter, number, 99000 + (number - 5011) * 200);
	json = step_rate_meter_json(meter);
	assert_int_equal(js_int(json, "first_step", 0), 5001);
	assert_true(throughput(json, "n") == 50 && near(throughput(json, "mean"), 5));
	assert_true(near(js_real(json, "rate", 0), 5));
}

static void a_clock_that_is_set_back_changes_no_speed(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 200; number++)
		step(meter, number,
		     10000000 + number * 500 - (number > 100 ? 3600000 : 0) -
			     (number > 150 ? 60000 : 0));
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 2));
	assert_true(near(throughput(json, "mean"), 2));
	assert_true(near(step_seconds(json, "p50"), 0.5));
}

/* The stamps of two nodes' logs are out of order by a little. */
static void times_out_of_order_do_not_add_up(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 400; number++)
		step(meter, number, 1000000 + number * 500 - (number % 2 == 0 ? 900 : 0));
	json = step_rate_meter_json(meter);
	assert_true(near(throughput(json, "mean"), 2));
}

/* `ms` stands still while the machine sleeps, and the date does not. */
static void sleep_is_no_step_time_and_parts_two_stretches(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 100; number++)
		step_rate_meter_step(
			meter, number, number * 1000,
			(struct utc){ EPOCH + number * 1000 + (number > 60 ? 7200000 : 0) });
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 1) && near(throughput(json, "mean"), 1));
	assert_int_equal(json_array_size(json_object_get(json, "stretches")), 2);
}

/* A date that jumps is no pause of the steps beyond the one stretch that it parts. */
static void a_date_that_jumps_changes_no_speed(void **state)
{
	AUTO(step_rate_meter_freep) struct step_rate_meter *meter = step_rate_meter_new();
	json_auto_t *json = NULL;

	(void)state;
	for (int64_t number = 1; number <= 100; number++)
		step_rate_meter_step(
			meter, number, number * 1000,
			(struct utc){ EPOCH + number * 1000 - (number > 60 ? 7200000 : 0) });
	json = step_rate_meter_json(meter);
	assert_true(near(js_real(json, "rate", 0), 1) && near(throughput(json, "mean"), 1));
	assert_int_equal(js_int(json, "at", 0), EPOCH + 100000 - 7200000);
}

/* ---- the range, and one speed ------------------------------------------------------- */

static const struct step_rate ten = { 10, 1000 };

/* Checks the range of the window with a told speed of ten steps a second. */
static void has_range(const struct step_rate_window *window, double slowest, double fastest)
{
	struct step_rate slow, fast;

	step_rate_window_bounds(window, ten, &slow, &fast);
	assert_true(fabs(step_rate_per_second(slow) - slowest) <= 0.01 * slowest + 1e-9);
	assert_true(near(step_rate_per_second(fast), fastest));
}

static void the_range_is_that_of_the_slowest_and_the_fastest_part(void **state)
{
	struct step_rate_window window = { 0 };

	(void)state;
	has_range(&window, 10, 10);
	for (int64_t s = 0; s <= 120; s++) /* 20 steps a second, then 4 */
		step_rate_window_add(&window, s <= 60 ? s * 20 : 1200 + (s - 60) * 4, s * 1000);
	has_range(&window, 4, 20);
}

static void an_even_training_has_no_range(void **state)
{
	struct step_rate_window window = { 0 };

	(void)state;
	for (int64_t s = 0; s <= 3; s++)
		step_rate_window_add(&window, s * 10, s * 1000);
	has_range(&window, 10, 10);
	for (int64_t s = 4; s <= 2000; s++)
		step_rate_window_add(&window, s * 10, s * 1000);
	has_range(&window, 10, 10);
}

static void the_range_forgets_as_the_speed_does(void **state)
{
	struct step_rate_window window = { 0 };

	(void)state;
	for (int64_t s = 0; s <= 900; s++)
		step_rate_window_add(&window, s <= 450 ? s * 100 : 45000 + (s - 450) * 9, s * 1000);
	has_range(&window, 9, 10);
}

static void rare_points_have_a_range_as_well(void **state)
{
	struct step_rate_window window = { 0 };

	(void)state;
	for (int64_t i = 0; i < 5; i++)
		step_rate_window_add(&window, 600 * i, 60000 * i);
	has_range(&window, 10, 10);
}

static void a_pause_makes_the_slowest_part_nothing(void **state)
{
	struct step_rate_window window = { 0 };
	struct step_rate slow, fast;

	(void)state;
	for (int64_t s = 0; s <= 60; s++)
		step_rate_window_add(&window, s <= 30 ? s * 10 : 300, s * 1000);
	step_rate_window_add(&window, 301, 61000);
	step_rate_window_bounds(&window, ten, &slow, &fast);
	assert_true(step_rate_per_second(slow) < 0.04 && near(step_rate_per_second(fast), 10));
}

static void one_speed_and_its_times(void **state)
{
	const struct step_rate none = { 0 }, still = { 0, 5000 };

	(void)state;
	assert_true(step_rate_per_second(step_rate_of(30, 15000)) == 2);
	assert_true(step_rate_ms(step_rate_of(30, 15000), 7) == 3500);
	assert_true(step_rate_ms(step_rate_reported(0.25), 3) == 12000);
	assert_false(step_rate_is_known(step_rate_of(10, 0)));
	assert_false(step_rate_is_known(step_rate_of(-1, 1000)));
	assert_false(step_rate_is_known(step_rate_reported(0)) ||
		     step_rate_is_known(step_rate_reported(NAN)));
	assert_true(step_rate_ms(none, 5) == 0 && step_rate_per_second(none) == 0);
	assert_true(isinf(step_rate_ms(still, 5)) && step_rate_per_second(still) == 0);
	assert_true(step_rate_is_faster(ten, none) && step_rate_is_faster(ten, still));
	assert_false(step_rate_is_faster(none, still) || step_rate_is_faster(ten, ten));
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
		cmocka_unit_test(no_speed_is_too_low_or_too_high_to_be_kept),
		cmocka_unit_test(steps_made_again_are_a_pause),
		cmocka_unit_test(the_speed_forgets_a_restart_after_its_window),
		cmocka_unit_test(a_resumed_attempt_has_first_steps_of_its_own),
		cmocka_unit_test(a_clock_that_is_set_back_changes_no_speed),
		cmocka_unit_test(times_out_of_order_do_not_add_up),
		cmocka_unit_test(sleep_is_no_step_time_and_parts_two_stretches),
		cmocka_unit_test(a_date_that_jumps_changes_no_speed),
		cmocka_unit_test(the_range_is_that_of_the_slowest_and_the_fastest_part),
		cmocka_unit_test(an_even_training_has_no_range),
		cmocka_unit_test(the_range_forgets_as_the_speed_does),
		cmocka_unit_test(rare_points_have_a_range_as_well),
		cmocka_unit_test(a_pause_makes_the_slowest_part_nothing),
		cmocka_unit_test(one_speed_and_its_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
