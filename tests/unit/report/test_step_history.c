/* The promises of jobs/report/step_history.h. */
#include "jobs/report/step_history.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct utc second(double s)
{
	return (struct utc){ 1795000000000 + (int64_t)(s * 1000) };
}

static void near(double got, double want)
{
	assert_true(fabs(got - want) <= 0.01 * fabs(want) + 1e-9);
}

static void an_even_training_has_one_speed(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	for (int s = 0; s <= 60; s++)
		step_history_step(&course, second(s), s * 7);
	assert_true(step_history_rate(&course, &rate));
	near(rate.mean, 7);
	near(rate.low, 7);
	near(rate.high, 7);
}

static void bounds_are_the_slowest_and_the_fastest_stretch(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	for (int s = 0; s <= 60; s++) /* 10 a second, then 2 */
		step_history_step(&course, second(s), s <= 30 ? s * 10 : 300 + (s - 30) * 2);
	assert_true(step_history_rate(&course, &rate));
	near(rate.mean, 6);
	near(rate.low, 2);
	near(rate.high, 10);
}

static void what_was_long_ago_does_not_count(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	for (int s = 0; s <= 600; s++)
		step_history_step(&course, second(s), s <= 300 ? s * 100 : 30000 + (s - 300));
	assert_true(step_history_rate(&course, &rate));
	near(rate.mean, 1);
	near(rate.high, 1);
}

static void points_far_apart_count_as_well(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	for (int i = 0; i < 5; i++)
		step_history_step(&course, second(60 * i), 600 * i);
	assert_true(step_history_rate(&course, &rate));
	near(rate.mean, 10);
	near(rate.low, 10);
}

static void too_little_says_nothing(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	assert_false(step_history_rate(&course, &rate));
	step_history_step(&course, second(0), 1);
	assert_false(step_history_rate(&course, &rate));
	step_history_step(&course, second(1), 50);
	assert_false(step_history_rate(&course, &rate));
	step_history_step(&course, second(5), 50);
	assert_true(step_history_rate(&course, &rate));
	near(rate.mean, 9.8);
	step_history_restart(&course);
	assert_false(step_history_rate(&course, &rate));
}

static void a_step_that_goes_back_begins_anew(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	for (int s = 0; s <= 20; s++)
		step_history_step(&course, second(s), s * 100);
	for (int s = 21; s <= 40; s++)
		step_history_step(&course, second(s), 500 + s);
	assert_true(step_history_rate(&course, &rate));
	near(rate.high, 1);
}

static void a_pause_makes_the_lower_bound_zero(void **state)
{
	struct step_history course = { 0 };
	struct step_history_rate rate;

	(void)state;
	for (int s = 0; s <= 30; s++)
		step_history_step(&course, second(s), s < 10 ? s : 10);
	assert_true(step_history_rate(&course, &rate));
	near(rate.low, 0);
	assert_true(rate.high > 0.9);
}

static void a_line_shows_the_shape(void **state)
{
	AUTO(sb_release) struct sb blocks = SB_INIT, ascii = SB_INIT;
	struct step_history course = { 0 };

	(void)state;
	for (int i = 0; i < 8; i++)
		step_history_value(&course, i);
	assert_int_equal(step_history_sparkline(&course, 20, true, &blocks), 8);
	assert_string_equal(blocks.text, "▁▂▃▄▅▆▇█");
	assert_int_equal(step_history_sparkline(&course, 8, false, &ascii), 8);
	assert_string_equal(ascii.text, "_.:-=+*#");
}

static void a_line_is_no_longer_than_its_room_and_shows_all_of_the_course(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	struct step_history course = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		step_history_value(&course, i < 50000 ? 1 : 2);
	assert_int_equal(step_history_sparkline(&course, 10, false, &out), 10);
	assert_string_equal(out.text, "_____#####");
}

static void what_is_no_number_is_marked(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT, wild = SB_INIT;
	struct step_history course = { 0 }, extreme = { 0 };

	(void)state;
	step_history_value(&course, 1);
	step_history_value(&course, NAN);
	step_history_value(&course, 2);
	step_history_value(&course, INFINITY);
	assert_int_equal(step_history_sparkline(&course, 10, false, &out), 4);
	assert_string_equal(out.text, "_x#x");
	step_history_value(&extreme, -1.7e308);
	step_history_value(&extreme, 1.7e308);
	assert_int_equal(step_history_sparkline(&extreme, 10, false, &wild), 2);
}

static void less_than_two_values_have_no_shape(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	struct step_history course = { 0 };

	(void)state;
	step_history_value(&course, 1);
	assert_int_equal(step_history_sparkline(&course, 10, true, &out), 0);
	step_history_value(&course, 1);
	assert_int_equal(step_history_sparkline(&course, 1, true, &out), 0);
	assert_int_equal(step_history_sparkline(&course, 10, true, &out), 2);
	assert_string_equal(out.text, "▁▁");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_even_training_has_one_speed),
		cmocka_unit_test(bounds_are_the_slowest_and_the_fastest_stretch),
		cmocka_unit_test(what_was_long_ago_does_not_count),
		cmocka_unit_test(points_far_apart_count_as_well),
		cmocka_unit_test(too_little_says_nothing),
		cmocka_unit_test(a_step_that_goes_back_begins_anew),
		cmocka_unit_test(a_pause_makes_the_lower_bound_zero),
		cmocka_unit_test(a_line_shows_the_shape),
		cmocka_unit_test(a_line_is_no_longer_than_its_room_and_shows_all_of_the_course),
		cmocka_unit_test(what_is_no_number_is_marked),
		cmocka_unit_test(less_than_two_values_have_no_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
