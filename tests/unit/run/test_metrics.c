/* The promises of jobs/run/attempt/metrics.h: whole numbers, larger steps only, rows of one step.
 */
#include "jobs/run/attempt/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct metrics *metrics_of(json_t *specs)
{
	json_auto_t *owned = specs;
	struct metrics *metrics = NULL;
	struct err *err = NULL;

	assert_int_equal(metrics_new(owned, &metrics, &err), 0);
	return metrics;
}

static struct metrics *one_metric(const char *name, const char *regex)
{
	return metrics_of(json_pack("[{s:s, s:s}]", "name", name, "regex", regex));
}

static struct metrics *three_metrics(void)
{
	return metrics_of(json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "name", "loss", "regex",
				    "loss (\\S+)", "name", "step", "regex", "step (\\d+)", "name",
				    "lr", "regex", "lr (\\S+)"));
}

static void feed_of(struct metrics *metrics, int64_t *current, const char *line)
{
	metrics_line(metrics, current, line, strlen(line));
}

static void feed(struct metrics *metrics, const char *line)
{
	int64_t current = -1;

	feed_of(metrics, &current, line);
}

/* The newest row as a line. */
static void row_is(const struct metrics *metrics, const char *wanted)
{
	int64_t step;
	json_auto_t *row = metrics_row(metrics, &step);
	AUTO(auto_free) char *line = row ? js_line(row) : mem_copy("null");

	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line, wanted);
}

static void step_0_is_a_step(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = one_metric("step", "step (\\d+)");

	(void)state;
	assert_false(metrics_progress(metrics).known);
	feed(metrics, "step 0");
	assert_true(metrics_progress(metrics).known);
	assert_int_equal(metrics_progress(metrics).step, 0);
}

static void a_pattern_that_cuts_the_exponent_still_gives_the_whole_number(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = one_metric("loss", "'loss': ([0-9.]+)");
	json_auto_t *row = NULL;
	int64_t step;

	(void)state;
	feed(metrics, "{'loss': 6.25e-05, 'lr': 1}");
	row = metrics_row(metrics, &step);
	assert_true(js_real(row, "loss", 0) == 6.25e-05);
	assert_int_equal(step, -1);
}

static void nan_and_infinity_are_shown_as_words(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = one_metric("loss", "loss=(\\S+)");

	(void)state;
	feed(metrics, "loss=nan");
	row_is(metrics, "{\"loss\":\"nan\"}");
	feed(metrics, "loss=-Infinity");
	row_is(metrics, "{\"loss\":\"-inf\"}");
}

static void only_a_larger_step_is_progress(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = one_metric("step", "step (\\d+)");
	struct step_progress progress;

	(void)state;
	assert_false(metrics_progress(metrics).known);
	feed(metrics, "step 10");
	feed(metrics, "step 30");
	feed(metrics, "step 20 (replayed)");
	progress = metrics_progress(metrics);
	assert_true(progress.known);
	assert_int_equal(progress.step, 30);
	row_is(metrics, "null");
}

static void what_a_row_holds_was_read_at_one_step(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = three_metrics();
	int64_t current = -1;

	(void)state;
	feed_of(metrics, &current, "lr 3");
	row_is(metrics, "{\"lr\":3}");
	feed_of(metrics, &current, "step 1");
	feed_of(metrics, &current, "loss 9");
	row_is(metrics, "{\"loss\":9,\"step\":1}");
	feed_of(metrics, &current, "lr 4");
	row_is(metrics, "{\"loss\":9,\"step\":1,\"lr\":4}");
	/* the step may stand behind the number, and the order of the spec is none */
	feed_of(metrics, &current, "loss 8 at step 2");
	row_is(metrics, "{\"loss\":8,\"step\":2}");
	feed_of(metrics, &current, "step 3");
	feed_of(metrics, &current, "step 4");
	row_is(metrics, "{\"loss\":8,\"step\":2}");
	feed_of(metrics, &current, "lr 5");
	row_is(metrics, "{\"step\":4,\"lr\":5}");
	/* it has begun again at an earlier step */
	feed_of(metrics, &current, "step 2 loss 7");
	row_is(metrics, "{\"loss\":7,\"step\":2}");
	assert_int_equal(metrics_progress(metrics).step, 4);
}

static void nodes_that_lag_behind_change_no_row(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = three_metrics();
	int64_t first = -1, second = -1;

	(void)state;
	feed_of(metrics, &first, "step 5 loss 1");
	feed_of(metrics, &second, "step 4 loss 2");
	row_is(metrics, "{\"loss\":1,\"step\":5}");
	feed_of(metrics, &second, "step 5 lr 3");
	row_is(metrics, "{\"loss\":1,\"step\":5,\"lr\":3}");
}

static void a_row_is_kept_for_the_next_driver(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = three_metrics();
	AUTO(metrics_freep) struct metrics *next = three_metrics();
	json_auto_t *kept = NULL;
	int64_t current = -1;

	(void)state;
	feed_of(metrics, &current, "step 5 loss nan");
	feed_of(metrics, &current, "step 6");
	kept = metrics_keep(metrics);
	metrics_restore(next, kept);
	row_is(next, "{\"loss\":\"nan\",\"step\":5}");
	assert_int_equal(metrics_progress(next).step, 6);
	feed_of(next, &current, "lr 1");
	row_is(next, "{\"step\":6,\"lr\":1}");
}

static void a_pattern_that_does_not_compile_is_named(void **state)
{
	json_auto_t *specs = json_pack("[{s:s, s:s}]", "name", "loss", "regex", "loss (");
	struct metrics *metrics = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(metrics_new(specs, &metrics, &err), -1);
	assert_null(metrics);
	assert_memory_equal(err->message, "metric 'loss': ", strlen("metric 'loss': "));
}

static void a_number_that_cannot_be_a_step_is_none(void **state)
{
	AUTO(metrics_freep) struct metrics *metrics = one_metric("step", "step (\\S+)");

	(void)state;
	feed(metrics, "step -1");
	feed(metrics, "step 1e300");
	feed(metrics, "step nan");
	assert_false(metrics_progress(metrics).known);
}

static void samples_of_a_step_are_counted(void **state)
{
	AUTO(metrics_freep)
	struct metrics *metrics =
		metrics_of(json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "step", "regex",
				     "step (\\d+)", "name", "samples", "regex", "seen (\\S+)"));
	AUTO(metrics_freep)
	struct metrics *next =
		metrics_of(json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "step", "regex",
				     "step (\\d+)", "name", "samples", "regex", "seen (\\S+)"));
	json_auto_t *kept = NULL;
	int64_t current = -1;

	(void)state;
	feed_of(metrics, &current, "seen 5"); /* before the first step */
	assert_true(metrics_samples_per_step(metrics) == 0);
	feed_of(metrics, &current, "step 10 seen 1000");
	assert_true(metrics_samples_per_step(metrics) == 0);
	feed_of(metrics, &current, "step 20 seen nan");
	feed_of(metrics, &current, "step 30 seen 1640");
	assert_true(metrics_samples_per_step(metrics) == 32);
	/* The next driver knows it, too. */
	kept = metrics_keep(metrics);
	metrics_restore(next, kept);
	assert_true(metrics_samples_per_step(next) == 32);
	feed_of(next, &current, "step 40 seen 2200");
	assert_true(metrics_samples_per_step(next) == 40);
	/* A log that goes back counts anew. */
	feed_of(metrics, &current, "step 5 seen 100");
	feed_of(metrics, &current, "step 6 seen 116");
	assert_true(metrics_samples_per_step(metrics) == 16);
}

static void epochs_are_progress_where_there_is_no_step(void **state)
{
	AUTO(metrics_freep) struct metrics *steps = three_metrics();
	AUTO(metrics_freep)
	struct metrics *epochs = metrics_of(json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "loss",
						      "regex", "loss (\\S+)", "name", "epoch",
						      "regex", "Epoch (\\S+)/(\\d+)"));

	(void)state;
	assert_null(metrics_unit(steps));
	assert_string_equal(metrics_unit(epochs), "epoch");
	feed(epochs, "Epoch 2.75/60 loss 3");
	row_is(epochs, "{\"loss\":3,\"epoch\":2}");
	assert_int_equal(metrics_progress(epochs).step, 2);
	assert_int_equal(metrics_progress(epochs).of, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_0_is_a_step),
		cmocka_unit_test(a_pattern_that_cuts_the_exponent_still_gives_the_whole_number),
		cmocka_unit_test(nan_and_infinity_are_shown_as_words),
		cmocka_unit_test(only_a_larger_step_is_progress),
		cmocka_unit_test(what_a_row_holds_was_read_at_one_step),
		cmocka_unit_test(nodes_that_lag_behind_change_no_row),
		cmocka_unit_test(a_row_is_kept_for_the_next_driver),
		cmocka_unit_test(a_pattern_that_does_not_compile_is_named),
		cmocka_unit_test(a_number_that_cannot_be_a_step_is_none),
		cmocka_unit_test(samples_of_a_step_are_counted),
		cmocka_unit_test(epochs_are_progress_where_there_is_no_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
