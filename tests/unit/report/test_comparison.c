/* Runs compared by measurement: jobs/report/measure. */
#include "jobs/report/measure/comparison.h"
#include "jobs/report/measure/sample_count.h"
#include "jobs/report/measure/step_times.h"

#include <math.h>
#include <stdlib.h>

#include "jobs/base/mem.h"
#include "jobs/flow/student.h"
#include "jobs/report/measure/quality.h"
#include "tests/unit/quoted.h"

/* ---- Student's t: the values of the printed tables ---- */

static void quantiles_are_those_of_the_tables(void **state)
{
	static const struct {
		double p, freedom, t;
	} rows[] = {
		{ 0.975, 1, 12.7062047362 },
		{ 0.975, 2, 4.3026527297 },
		{ 0.975, 10, 2.2281388520 },
		{ 0.995, 4, 4.6040948714 },
		{ 0.995, 20, 2.8453397098 },
		{ 0.9995, 30, 3.6459586350 },
		{ 0.975, 1000, 1.9623390808 },
		{ 0.025, 10, -2.2281388520 },
		{ 0.75, 1, 1.0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_true(fabs(student_quantile(rows[i].p, rows[i].freedom) - rows[i].t) < 1e-8);
}

/* ---- step times ---- */

static void tell(struct step_times *times, int64_t attempt, int64_t from, int64_t to, int64_t ms,
		 int64_t each)
{
	for (int64_t step = from; step <= to; step++)
		step_times_add(times, attempt, 0, step, ms + (step - from) * each, false);
}

static void the_first_ten_steps_of_each_attempt_are_left_out(void **state)
{
	struct step_times times = { 0 };

	(void)state;
	tell(&times, 1, 1, 10, 0, 5000);
	tell(&times, 1, 11, 30, 46000, 100); /* step 11 takes a second, the others 100 ms */
	assert_true(times.steps == 20);
	assert_true(fabs(times.seconds - (1 + 19 * 0.1)) < 1e-9); /* 45 s to 46 s */
	tell(&times, 2, 21, 35, 1000000, 200);                    /* 21 to 30 are its first ten */
	assert_true(times.steps == 25);
	assert_true(fabs(times.seconds - (2.9 + 5 * 0.2)) < 1e-9);
	assert_true(fabs(step_times_quantile(&times, 0.5) - 0.1) < 1e-12);
	assert_true(fabs(step_times_quantile(&times, 0.95) - 0.2) < 1e-12);
	step_times_release(&times);
}

static void a_late_graph_and_times_that_are_not_exact_are_left_out(void **state)
{
	struct step_times times = { 0 };

	(void)state;
	step_times_add_late(&times, 1, 15); /* compiled between steps 15 and 16 */
	tell(&times, 1, 1, 15, 0, 100);
	tell(&times, 1, 16, 20, 60000, 100);
	assert_true(times.steps == 5 + 4);
	assert_true(fabs(step_times_mean(&times) - 0.1) < 1e-9);
	step_times_add(&times, 1, 0, 21, 99000, true);  /* read from the log later */
	step_times_add(&times, 1, 0, 22, 99100, false); /* its begin is not known */
	step_times_add(&times, 1, 0, 23, 99200, false);
	assert_true(times.steps == 10);
	step_times_add(&times, 1, 1, 24, 99201, false); /* of another node */
	step_times_add(&times, 1, 0, 23, 99300, false); /* of another rank */
	step_times_add(&times, 1, 0, 24, 99000, false); /* the clock was set back */
	assert_true(times.steps == 10);
	step_times_release(&times);
}

static void steps_in_which_a_benchmark_saved_are_left_out(void **state)
{
	struct step_times times = { 0 };

	(void)state;
	step_times_add_save(&times, 1, 100, 150);   /* among the first ten */
	step_times_add_save(&times, 1, 1450, 1520); /* from 14 to 16 */
	step_times_add_save(&times, 1, 1900, 1900); /* at the moment of 19 */
	step_times_add_save(&times, 1, 5000, 6000); /* after all */
	step_times_add_save(&times, 2, 1000, 2000);
	tell(&times, 1, 1, 20, 100, 100);
	/* Measured are 11 to 20, without 15, 16, 19 and 20. */
	assert_true(times.steps == 6);
	tell(&times, 2, 1, 20, 1000, 100);
	assert_true(times.steps == 6 + 8); /* 13 to 20: the save ends at the moment of 11 */
	tell(&times, 3, 1, 20, 1000, 100);
	assert_true(times.steps == 6 + 8 + 10);
	step_times_release(&times);
}

static void of_epochs_only_the_first_is_left_out(void **state)
{
	struct step_times times = { .epochs = true };

	(void)state;
	for (int64_t epoch = 0; epoch < 4; epoch++)
		step_times_add(&times, 1, 0, epoch, epoch * 100, false);
	assert_true(times.steps == 3); /* 0 begins when it is told; its end is that of the first */
	assert_true(fabs(step_times_mean(&times) - 0.1) < 1e-9);
	step_times_release(&times);
}

static void samples_are_counted_over_all_attempts(void **state)
{
	struct sample_count count = { 0 };

	(void)state;
	assert_true(isnan(sample_count_per_step(&count)));
	sample_count_add(&count, 1, 0, -1, 5); /* before the first step */
	sample_count_add(&count, 1, 0, 10, 320);
	assert_true(isnan(sample_count_per_step(&count)));
	sample_count_add(&count, 1, 1, 11, 9999); /* of another node */
	sample_count_add(&count, 1, 0, 20, 640);
	sample_count_add(&count, 1, 0, 22, NAN);
	sample_count_add(&count, 1, 0, 30, 1000);
	assert_true(sample_count_per_step(&count) == 680.0 / 20);
	sample_count_add(&count, 2, 0, 25, 64); /* counts anew, from an older checkpoint */
	sample_count_add(&count, 2, 0, 35, 164);
	assert_true(sample_count_per_step(&count) == 780.0 / 30);
	sample_count_add(&count, 2, 0, 5, 200); /* the log goes back */
	sample_count_add(&count, 2, 0, 6, 10);  /* the count does */
	sample_count_add(&count, 2, 0, 8, 30);
	assert_true(sample_count_per_step(&count) == 800.0 / 32);
}

static void the_time_until_a_command_is_started_again_is_no_step_time(void **state)
{
	struct step_times times = { 0 };
	int64_t ms = 0;

	(void)state;
	for (size_t start = 0; start < 2; start++) {
		for (int64_t step = 1 + 10 * (int64_t)start; step <= 30 + 10 * (int64_t)start;
		     step++) {
			step_times_start(&times, 1, start, 0);
			step_times_add(&times, 1, 0, step, ms += 100, false);
		}
		ms += 600000; /* the service starts the job again, which resumes from step 10 */
	}
	for (int64_t step = 1; step <= 40; step++) { /* of another node */
		step_times_start(&times, 1, 0, 1);
		step_times_add(&times, 1, 1, step, ms += 500, false);
	}
	assert_true(times.steps == 20 + 20);
	assert_true(fabs(step_times_mean(&times) - 0.1) < 1e-9);
	assert_true(fabs(step_times_quantile(&times, 1) - 0.1) < 1e-9);
	step_times_release(&times);
}

static void a_million_steps_take_little_room(void **state)
{
	struct step_times times = { 0 };
	int64_t ms = 0;

	(void)state;
	for (int64_t step = 1; step <= 1000000; step++)
		step_times_add(&times, 1, 0, step, ms += 5 + step % 100, false);
	assert_true(times.count < 40000 && times.added == 1000000 - 10);
	assert_true(times.steps == 1000000 - 10);
	/* Each of the hundred times comes equally often. */
	assert_true(fabs(step_times_quantile(&times, 0.5) - 0.054) < 1.1e-3);
	assert_int_equal(times.count, 100);
	assert_true(fabs(step_times_quantile(&times, 0.95) - 0.099) < 1.1e-3);
	assert_true(fabs(step_times_mean(&times) - 0.0545) < 1e-5);
	step_times_release(&times);
}

static void lines_that_come_together_are_one_sample(void **state)
{
	struct step_times times = { 0 };

	(void)state;
	/* A buffer of ten lines each second. */
	for (int64_t step = 1; step <= 61; step++)
		step_times_add(&times, 1, 0, step,
			       1000 + (step - 1) / 10 * 1000 + (step - 1) % 10 / 5, false);
	assert_int_equal(times.count, 5);
	assert_true(fabs(step_times_mean(&times) - 0.1) < 0.003);
	step_times_release(&times);
}

static void without_steps_nothing_is_known(void **state)
{
	struct step_times times = { 0 };

	(void)state;
	assert_true(isnan(step_times_mean(&times)));
	assert_true(isnan(step_times_quantile(&times, 0.5)));
}

/* ---- rows ---- */

static struct measured_run run_of(size_t row, double mean)
{
	return (struct measured_run){ .run = "r",
				      .row = row,
				      .steps = 100,
				      .mean = mean,
				      .p50 = mean,
				      .p95 = mean,
				      .samples = NAN,
				      .workers = 1,
				      .wall = NAN,
				      .billable = NAN,
				      .compile = 0,
				      .cost = NAN,
				      .price = NAN,
				      .reached = NAN };
}

static void without_repeats_nothing_is_claimed(void **state)
{
	struct measured_run runs[] = { run_of(0, 1), run_of(1, 0.25) };
	struct comparison_row rows[] = { { .first = 0, .runs = 1, .same_quality = true },
					 { .first = 1, .runs = 1, .same_quality = true } };

	(void)state;
	comparison_make(runs, 2, rows, 2);
	assert_int_equal(rows[0].verdict, COMPARISON_BASELINE);
	assert_int_equal(rows[1].verdict, COMPARISON_NO_INTERVAL);
	assert_true(fabs(rows[1].x - 4) < 1e-12);
	assert_true(isnan(rows[1].low) && !rows[1].is_best);
}

static void repeats_tell_a_difference_from_noise(void **state)
{
	struct measured_run runs[] = { run_of(0, 1.00), run_of(0, 1.01), run_of(0, 0.99),
				       run_of(1, 1.01), run_of(1, 0.99), run_of(1, 1.00),
				       run_of(2, 0.50), run_of(2, 0.51), run_of(2, 0.49),
				       run_of(3, 2.00), run_of(3, 2.02), run_of(3, 1.98),
				       run_of(4, 0.25), run_of(4, 0.26), run_of(4, 0.24) };
	struct comparison_row rows[5] = { 0 };

	(void)state;
	for (size_t i = 0; i < 5; i++)
		rows[i] =
			(struct comparison_row){ .first = 3 * i, .runs = 3, .same_quality = i < 4 };
	comparison_make(runs, 15, rows, 5);
	assert_int_equal(rows[1].verdict, COMPARISON_NOISE);
	assert_int_equal(rows[2].verdict, COMPARISON_FASTER);
	assert_int_equal(rows[3].verdict, COMPARISON_SLOWER);
	assert_int_equal(rows[4].verdict, COMPARISON_FASTER);
	assert_true(rows[2].is_best && !rows[4].is_best); /* the fastest is of another quality */
	assert_true(rows[2].low < rows[2].x && rows[2].x < rows[2].high);
	/* The numbers are computed by hand: 10 degrees of freedom, four rows, squares of the
	 * logarithms. */
	{
		double squares = 0, half;

		for (size_t row = 0; row < 5; row++) {
			double sum = 0;

			for (size_t i = 0; i < 3; i++)
				sum += log(runs[3 * row + i].mean);
			for (size_t i = 0; i < 3; i++)
				squares += pow(log(runs[3 * row + i].mean) - sum / 3, 2);
		}
		half = student_quantile(1 - 0.01 / 8, 10) * sqrt(squares / 10 * 2 / 3);
		assert_true(fabs(log(rows[2].high / rows[2].x) - half) < 1e-9);
	}
}

static void a_row_that_diverged_is_not_the_best(void **state)
{
	struct measured_run runs[] = { run_of(0, 1),    run_of(0, 1.01), run_of(1, 0.5),
				       run_of(1, 0.51), run_of(2, 0.25), run_of(2, 0.26) };
	struct comparison_row rows[3] = { 0 };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		rows[i] =
			(struct comparison_row){ .first = 2 * i, .runs = 2, .same_quality = true };
	for (size_t i = 0; i < 6; i++) {
		curve_add(&runs[i].curve, 10, 1);
		curve_add(&runs[i].curve, 20, i == 5 ? NAN : 0.5);
	}
	comparison_make(runs, 6, rows, 3);
	assert_int_equal(rows[2].verdict, COMPARISON_FASTER);
	assert_true(rows[1].is_best && !rows[2].is_best);
	assert_true(rows[2].last_step == 20 && isnan(rows[2].last_value));
	for (size_t i = 0; i < 6; i++)
		curve_release(&runs[i].curve);
}

static void a_run_that_does_not_count_takes_the_samples_from_nobody(void **state)
{
	struct measured_run runs[] = { run_of(0, 1), run_of(SIZE_MAX, NAN), run_of(1, 1.5) };
	struct comparison_row rows[] = { { .first = 0, .runs = 1 }, { .first = 2, .runs = 1 } };

	(void)state;
	runs[0].samples = 16;
	runs[2].samples = 32;
	comparison_make(runs, 3, rows, 2);
	assert_true(fabs(rows[1].x - 2 / 1.5) < 1e-12);
	assert_true(fabs(rows[1].samples_rate - 32 / 1.5) < 1e-12);
}

static void the_speed_that_all_logs_tell_goes_before_the_clocks(void **state)
{
	struct measured_run runs[] = { run_of(0, 1), run_of(SIZE_MAX, NAN), run_of(1, 1.5) };
	struct comparison_row rows[] = { { .first = 0, .runs = 1 }, { .first = 2, .runs = 1 } };

	(void)state;
	runs[0].samples = runs[2].samples = 16;
	runs[0].rate = 252;
	comparison_make(runs, 3, rows, 2);
	assert_true(fabs(rows[1].x - 1 / 1.5) < 1e-12); /* one of them does not */
	runs[2].rate = 1093;
	comparison_make(runs, 3, rows, 2);
	assert_true(fabs(rows[1].x - 1093.0 / 252) < 1e-12);
	assert_true(rows[1].samples_rate == 1093 && rows[1].mean == 1.5);
}

static void the_log_tells_steps_behind_the_first_ones(void **state)
{
	struct step_times times = { 0 };

	(void)state;
	assert_false(step_times_counts(&times, 1, 20));
	step_times_add_late(&times, 1, 14);
	step_times_add(&times, 1, 0, 5, 1000, false);
	assert_false(step_times_counts(&times, 1, 5));
	assert_false(step_times_counts(&times, 1, 14));
	assert_false(step_times_counts(&times, 1, 15)); /* a graph was compiled in it */
	assert_true(step_times_counts(&times, 1, 16));
	assert_false(step_times_counts(&times, 2, 16));
	step_times_add_told(&times, 1, 16, 0.25);
	step_times_add_told(&times, 1, 17, 0.75);
	assert_true(step_times_mean(&times) == 0.5 && times.steps == 2);
	step_times_release(&times);
}

static void curves_are_compared_at_steps_that_all_have(void **state)
{
	struct measured_run runs[] = { run_of(0, 1), run_of(1, 1) };
	struct comparison_row rows[] = { { .first = 0, .runs = 1 }, { .first = 1, .runs = 1 } };

	(void)state;
	for (int64_t step = 10; step <= 50; step += 10)
		curve_add(&runs[0].curve, step, 100 - (double)step);
	for (int64_t step = 20; step <= 60; step += 20)
		curve_add(&runs[1].curve, step, step == 40 ? 50 : 81);
	curve_sort(&runs[0].curve);
	curve_sort(&runs[1].curve);
	comparison_make(runs, 2, rows, 2);
	assert_int_equal(rows[1].last_step, 40);
	assert_true(rows[1].base_value == 60 && rows[1].last_value == 50);
	assert_true(rows[1].gap == 10 && rows[1].gap_step == 40);
	curve_release(&runs[0].curve);
	curve_release(&runs[1].curve);
}

/* The statements about a run that is compared with no other are the same with two points of its
 * curve. */
static void a_curve_that_is_alone_keeps_what_is_said_of_it(void **state)
{
	static const struct curve_point orders[][6] = {
		{ { 1, 5 }, { 2, 4 }, { 3, 3 }, { 4, 2 }, { 5, 1 }, { 5, 0.5 } },
		{ { 1, NAN }, { 2, INFINITY }, { 3, 3 }, { 4, 2 }, { 5, 1 }, { 6, NAN } },
		{ { 1, NAN }, { 2, NAN }, { 3, NAN }, { 4, NAN }, { 5, NAN }, { 6, NAN } },
		{ { 9, 5 }, { 8, 4 }, { 7, 3 }, { 12, 2 }, { 6, 1 }, { 11, 0.5 } },
		{ { 5, NAN }, { 3, 4 }, { 4, 3 }, { 9, NAN }, { 2, NAN }, { 1, 0.5 } },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(orders); i++) {
		struct measured_run runs[] = { run_of(0, 1), run_of(0, 1) };
		struct comparison_row rows[] = { { .first = 0, .runs = 1 },
						 { .first = 0, .runs = 1 } };

		runs[1].curve.is_alone = true;
		for (size_t k = 0; k < STK_LENGTH(orders[i]); k++)
			for (int run = 0; run < 2; run++)
				curve_add(&runs[run].curve, orders[i][k].step, orders[i][k].value);
		for (int run = 0; run < 2; run++) {
			curve_sort(&runs[run].curve);
			comparison_make(&runs[run], 1, &rows[run], 1);
		}
		assert_true(runs[1].curve.count <= 2);
		assert_int_equal(rows[1].last_step, rows[0].last_step);
		assert_int_equal(rows[1].gap_step, rows[0].gap_step);
		assert_true(rows[1].last_value == rows[0].last_value ||
			    (isnan(rows[1].last_value) && isnan(rows[0].last_value)));
		curve_release(&runs[0].curve);
		curve_release(&runs[1].curve);
	}
}

static void a_baseline_that_does_not_count_has_no_value(void **state)
{
	struct measured_run runs[2] = { { .row = SIZE_MAX }, { .row = 1 } };
	struct comparison_row rows[2] = { { .first = 0 }, { .first = 1, .runs = 1 } };

	(void)state;
	curve_add(&runs[1].curve, 5, 0.5);
	curve_sort(&runs[1].curve);
	comparison_make(runs, 2, rows, 2);
	assert_int_equal(rows[1].last_step, -1);
	curve_release(&runs[1].curve);
}

static void the_longer_compilation_pays_from_a_step_on(void **state)
{
	struct comparison_row slow = { .compile = 10, .mean = 1 },
			      fast = { .compile = 110, .mean = 0.9 };

	(void)state;
	assert_true(fabs(comparison_break_even(&slow, &fast) - 1000) < 1e-6);
	assert_true(fabs(comparison_break_even(&fast, &slow) - 1000) < 1e-6);
	fast.mean = 1.1;
	assert_true(isinf(comparison_break_even(&slow, &fast)));
	/* The steps are slower, but of twice as many samples: 0.9 s gained in each. */
	slow.samples_rate = 8;
	fast.samples_rate = 16 / 1.1;
	assert_true(fabs(comparison_break_even(&slow, &fast) - 100 / 0.9) < 1e-6);
	assert_true(fabs(comparison_break_even(&fast, &slow) - 100 / 0.9) < 1e-6);
	slow.compile = fast.compile;
	assert_true(isnan(comparison_break_even(&slow, &fast)));
	slow.compile = 0;
	fast.mean = NAN;
	assert_true(isnan(comparison_break_even(&slow, &fast)));
}

static void settings_of_data_evaluation_and_precision_decide_about_quality(void **state)
{
	static const char *const quality[] = {
		"hyperparameters.dataset",       "env.XLA_USE_BF16",
		"hyperparameters.eval_file",     "hyperparameters.data",
		"hyperparameters.data_path",     "hyperparameters.dtype",
		"hyperparameters.validation-set"
	};
	static const char *const speed[] = { "hyperparameters.batch_size",
					     "hyperparameters.data_loader_workers",
					     "hyperparameters.eval_steps", "resources.nodes",
					     "hyperparameters.dataloader_num_workers" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(quality); i++)
		if (!quality_depends_on(quality[i], "1", "2"))
			fail_msg("%s", quality[i]);
	for (size_t i = 0; i < STK_LENGTH(speed); i++)
		if (quality_depends_on(speed[i], "1", "2"))
			fail_msg("%s", speed[i]);
	assert_false(quality_depends_on("env.NEURON_CC_FLAGS", "\"--auto-cast=none -O1\"",
					"\"--auto-cast=none -O2\""));
	assert_true(quality_depends_on("env.NEURON_CC_FLAGS", "\"--auto-cast=none -O1\"",
				       "\"--auto-cast=all -O1\""));
	assert_true(quality_depends_on("env.NEURON_CC_FLAGS", "\"\"", "\"--auto-cast=all\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_those_of_the_tables),
		cmocka_unit_test(the_first_ten_steps_of_each_attempt_are_left_out),
		cmocka_unit_test(a_late_graph_and_times_that_are_not_exact_are_left_out),
		cmocka_unit_test(steps_in_which_a_benchmark_saved_are_left_out),
		cmocka_unit_test(of_epochs_only_the_first_is_left_out),
		cmocka_unit_test(samples_are_counted_over_all_attempts),
		cmocka_unit_test(the_time_until_a_command_is_started_again_is_no_step_time),
		cmocka_unit_test(a_million_steps_take_little_room),
		cmocka_unit_test(lines_that_come_together_are_one_sample),
		cmocka_unit_test(without_steps_nothing_is_known),
		cmocka_unit_test(without_repeats_nothing_is_claimed),
		cmocka_unit_test(repeats_tell_a_difference_from_noise),
		cmocka_unit_test(a_row_that_diverged_is_not_the_best),
		cmocka_unit_test(a_run_that_does_not_count_takes_the_samples_from_nobody),
		cmocka_unit_test(the_speed_that_all_logs_tell_goes_before_the_clocks),
		cmocka_unit_test(the_log_tells_steps_behind_the_first_ones),
		cmocka_unit_test(curves_are_compared_at_steps_that_all_have),
		cmocka_unit_test(a_curve_that_is_alone_keeps_what_is_said_of_it),
		cmocka_unit_test(a_baseline_that_does_not_count_has_no_value),
		cmocka_unit_test(the_longer_compilation_pays_from_a_step_on),
		cmocka_unit_test(settings_of_data_evaluation_and_precision_decide_about_quality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
