/* The promises of jobs/run/pace.h. */
#include "jobs/run/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool near(double value, double wanted)
{
	return fabs(value - wanted) <= wanted * 0.011;
}

static void the_first_ten_steps_are_left_out(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *none = NULL;
	json_auto_t *some = NULL;
	int64_t at = 0;

	(void)state;
	for (int64_t step = 1; step <= 11; step++)
		pace_look(pace, step, (struct mono){ at += 10000 });
	none = pace_json(pace);
	assert_null(none);
	for (int64_t step = 12; step <= 31; step++)
		pace_look(pace, step, (struct mono){ at += 250 });
	some = pace_json(pace);
	assert_int_equal(js_int(some, "n", 0), 20);
	assert_true(js_real(some, "mean", 0) == 4.0);
	assert_true(near(js_real(some, "p50", 0), 4.0));
}

static void steps_seen_at_one_look_count_each(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	pace_look(pace, 0, (struct mono){ 0 });
	pace_look(pace, 10, (struct mono){ 5000 });
	pace_look(pace, 100, (struct mono){ 5900 });  /* 90 of 10 ms */
	pace_look(pace, 110, (struct mono){ 15900 }); /* 10 of a second */
	json = pace_json(pace);
	assert_int_equal(js_int(json, "n", 0), 100);
	assert_true(near(js_real(json, "mean", 0), 100 / 10.9));
	assert_true(near(js_real(json, "p50", 0), 100));
	assert_true(near(js_real(json, "p95", 0), 1));
}

static void what_was_there_before_anybody_looked_has_no_time(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	pace_begin(pace, 1);
	pace_look(pace, 5000, (struct mono){ 60000 });
	pace_look(pace, 5002, (struct mono){ 61000 });
	pace_look(pace, 5001, (struct mono){ 69000 });
	json = pace_json(pace);
	assert_int_equal(js_int(json, "n", 0), 2);
	assert_true(js_real(json, "mean", 0) == 2.0);
}

static void no_pace_is_too_slow_or_too_fast_to_be_kept(void **state)
{
	AUTO(pace_freep) struct pace *pace = pace_new();
	json_auto_t *json = NULL;

	(void)state;
	pace_begin(pace, 0);
	pace_look(pace, 100, (struct mono){ 0 });
	pace_look(pace, 101, (struct mono){ INT64_C(1) << 52 });
	pace_look(pace, INT64_C(1) << 52, (struct mono){ (INT64_C(1) << 52) + 1 });
	json = pace_json(pace);
	assert_true(isfinite(js_real(json, "p50", NAN)) && js_real(json, "p95", 0) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_ten_steps_are_left_out),
		cmocka_unit_test(steps_seen_at_one_look_count_each),
		cmocka_unit_test(what_was_there_before_anybody_looked_has_no_time),
		cmocka_unit_test(no_pace_is_too_slow_or_too_fast_to_be_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
