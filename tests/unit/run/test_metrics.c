/* The promises of jobs/run/metrics.h: whole numbers, larger steps only. */
#include "jobs/run/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct metrics *metrics_of(const char *name, const char *regex)
{
	json_auto_t *specs = json_pack("[{s:s, s:s}]", "name", name, "regex", regex);
	struct metrics *metrics = NULL;
	struct err *err = NULL;

	assert_int_equal(metrics_new(specs, &metrics, &err), 0);
	return metrics;
}

static void feed(struct metrics *metrics, const char *line, int64_t at_ms)
{
	metrics_line(metrics, line, strlen(line), (struct mono){ at_ms });
}

static void a_pattern_that_cuts_the_exponent_still_gives_the_whole_number(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = metrics_of("loss", "'loss': ([0-9.]+)");
	json_auto_t *values = NULL;

	(void)state;
	feed(metrics, "{'loss': 6.25e-05, 'lr': 1}", 0);
	values = metrics_json(metrics);
	assert_true(js_real(values, "loss", 0) == 6.25e-05);
}

static void nan_and_infinity_are_shown_as_words(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = metrics_of("loss", "loss=(\\S+)");
	json_auto_t *values = NULL, *later = NULL;

	(void)state;
	feed(metrics, "loss=nan", 0);
	values = metrics_json(metrics);
	assert_string_equal(js_str(values, "loss"), "nan");
	feed(metrics, "loss=-Infinity", 0);
	later = metrics_json(metrics);
	assert_string_equal(js_str(later, "loss"), "-inf");
}

static void only_a_larger_step_is_progress(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = metrics_of("step", "step (\\d+)");
	struct step_progress progress;

	(void)state;
	assert_false(metrics_progress(metrics).known);
	feed(metrics, "step 10", 1000);
	feed(metrics, "step 30", 3000);
	feed(metrics, "step 20 (replayed)", 9000);
	progress = metrics_progress(metrics);
	assert_true(progress.known);
	assert_int_equal(progress.step, 30);
	assert_true(progress.rate == 10.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_that_cuts_the_exponent_still_gives_the_whole_number),
		cmocka_unit_test(nan_and_infinity_are_shown_as_words),
		cmocka_unit_test(only_a_larger_step_is_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
