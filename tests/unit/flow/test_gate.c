/* The gate: what passes at its borders, what never passes, and how often noise does. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/flow/gate.h"

static struct gate_entry drop_of(double limit, bool relative, bool lower_is_better)
{
	return (struct gate_entry){ .form = GATE_MAX_DROP,
				    .metric = "m",
				    .lower_is_better = lower_is_better,
				    .relative = relative,
				    .limit = limit,
				    .confidence = 0.95 };
}

/* A gate of one entry. */
static void begin(struct gate *gate, struct gate_entry entry, int repeats)
{
	struct gate_policy policy = { .count = 1, .repeats = repeats };

	policy.entries[0] = entry;
	gate_init(gate, &policy);
	gate_set_baseline(gate, true);
}

static struct gate_result judge(const struct gate *gate)
{
	struct gate_verdict verdict;

	gate_judge(gate, &verdict);
	assert_int_equal(verdict.count, 1);
	assert_true(verdict.passed == verdict.results[0].passed);
	return verdict.results[0];
}

static struct gate_result judge_pair(struct gate_entry entry, double candidate, double baseline)
{
	struct gate gate;

	begin(&gate, entry, 1);
	gate_measure(&gate, GATE_CANDIDATE, 1, "m", candidate);
	gate_measure(&gate, GATE_BASELINE, 1, "m", baseline);
	return judge(&gate);
}

static bool pair_passes(struct gate_entry entry, double candidate, double baseline)
{
	return judge_pair(entry, candidate, baseline).passed;
}

/* --- borders --- */

static const double magnitudes[] = { 0.9583, 1, 2.5, 3.1e-9, 7.7e12, -0.25, -4096 };

static void a_drop_of_up_to_the_limit_passes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof magnitudes / sizeof *magnitudes; i++)
		for (int lower = 0; lower < 2; lower++) {
			const double from = magnitudes[i], worse = lower ? 1 : -1;
			const double unit = worse * fabs(from);
			struct gate_entry entry = drop_of(0.001, true, lower);

			assert_true(pair_passes(entry, from, from));
			assert_true(pair_passes(entry, from - unit, from)); /* far better */
			assert_true(pair_passes(entry, from + unit * 0.000999, from));
			assert_true(pair_passes(entry, from + unit * 0.001, from));
			assert_false(pair_passes(entry, from + unit * 0.001001, from));
			entry = drop_of(fabs(from) * 0.001, false, lower);
			assert_true(pair_passes(entry, from + unit * 0.000999, from));
			assert_true(pair_passes(entry, from + unit * 0.001, from));
			assert_false(pair_passes(entry, from + unit * 0.001001, from));
		}
}

static void decimal_fractions_meet_their_limit(void **state)
{
	struct gate_result result = judge_pair(drop_of(0.001, true, false), 0.9573417, 0.9583);

	(void)state;
	assert_true(result.passed);
	assert_int_equal(result.reason, GATE_PASSED);
	assert_true(fabs(result.bound - 0.9573417) < 1e-15);
	assert_true(fabs(result.drop - 0.0009583) < 1e-15);
	assert_true(fabs(result.limit - 0.0009583) < 1e-15);
	/* The 11th digit counts, the 13th does not. */
	assert_false(pair_passes(drop_of(0.001, true, false), 0.95734169999, 0.9583));
	assert_true(pair_passes(drop_of(0.001, true, false), 0.9573416999999, 0.9583));
	assert_true(pair_passes(drop_of(0, true, false), 0.1 + 0.2, 0.3));
	assert_true(pair_passes(drop_of(0, true, true), 0.1 + 0.2, 0.3));
	assert_true(pair_passes(drop_of(0, false, true), 0.1 + 0.2, 0.3));
	assert_true(
		fabs(gate_bound(&(struct gate_entry){ .relative = true, .limit = 0.001 }, 0.9583) -
		     0.95734) < 5e-6);
}

static bool gap_passes(double limit, bool relative, double candidate, double baseline)
{
	struct gate_entry entry = { .form = GATE_MAX_GAP,
				    .metric = "m",
				    .run = "other",
				    .relative = relative,
				    .limit = limit };
	struct gate_parity_reader reader;
	struct gate_parity parity;
	struct gate gate;

	gate_parity_begin(&reader, &entry);
	gate_parity_add(&reader, PHASE_TRAIN, GATE_CANDIDATE, 100, candidate);
	gate_parity_add(&reader, PHASE_TRAIN, GATE_BASELINE, 100, baseline);
	gate_parity_end(&reader, &parity);
	begin(&gate, entry, 1);
	gate_set_parity(&gate, 0, &parity);
	return judge(&gate).passed;
}

static void a_gap_must_be_less_than_the_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof magnitudes / sizeof *magnitudes; i++)
		for (int side = -1; side <= 1; side += 2) {
			const double from = magnitudes[i], unit = side * fabs(from);

			assert_true(gap_passes(0.001, true, from, from));
			assert_true(gap_passes(0.001, true, from + unit * 0.000999, from));
			assert_false(gap_passes(0.001, true, from + unit * 0.001, from));
			assert_false(gap_passes(0.001, true, from + unit * 0.001001, from));
			assert_true(gap_passes(fabs(from) * 0.001, false, from + unit * 0.000999,
					       from));
			assert_false(
				gap_passes(fabs(from) * 0.001, false, from + unit * 0.001, from));
			assert_false(gap_passes(fabs(from) * 0.001, false, from + unit * 0.001001,
						from));
		}
	assert_false(gap_passes(0.001, true, 0.9573417, 0.9583));
	assert_false(gap_passes(0.001, true, 0.95734170000001, 0.9583));
	assert_true(gap_passes(0.001, true, 0.95734171, 0.9583));
}

static struct gate_result judge_number(enum gate_form form, double limit, double candidate)
{
	struct gate gate;

	begin(&gate, (struct gate_entry){ .form = form, .metric = "m", .limit = limit }, 1);
	gate_set_baseline(&gate, false);
	gate_measure(&gate, GATE_CANDIDATE, 1, "m", candidate);
	return judge(&gate);
}

static void a_number_of_its_own_is_met_by_itself(void **state)
{
	(void)state;
	assert_true(judge_number(GATE_AT_LEAST, 0.9, 0.9).passed);
	assert_true(judge_number(GATE_AT_LEAST, 0.3, 0.1 + 0.2).passed);
	assert_true(judge_number(GATE_AT_MOST, 0.3, 0.1 + 0.2).passed);
	assert_true(judge_number(GATE_AT_LEAST, 0.9, 0.90001).passed);
	assert_false(judge_number(GATE_AT_LEAST, 0.9, 0.89999999999).passed);
	assert_true(judge_number(GATE_AT_MOST, 2.5, 2.5).passed);
	assert_true(judge_number(GATE_AT_MOST, 2.5, -7).passed);
	assert_false(judge_number(GATE_AT_MOST, 2.5, 2.50000000001).passed);
	assert_true(judge_number(GATE_AT_LEAST, 0, 0).passed);
	assert_false(judge_number(GATE_AT_LEAST, 0, -DBL_MIN).passed);
}

/* --- never --- */

static const double no_numbers[] = { (double)NAN, (double)INFINITY, (double)-INFINITY };

static void what_is_no_number_never_passes(void **state)
{
	(void)state;
	for (int role = 0; role < GATE_ROLE_COUNT; role++)
		for (int repeats = 1; repeats <= 3; repeats++)
			for (int at = 1; at <= repeats; at++)
				for (size_t i = 0; i < 3; i++) {
					struct gate gate;

					begin(&gate, drop_of(1000, false, at % 2), repeats);
					for (int n = 1; n <= repeats; n++) {
						bool here = n == at;

						gate_measure(&gate, GATE_CANDIDATE, n, "m",
							     here && role == 0 ? no_numbers[i] : 1);
						gate_measure(&gate, GATE_BASELINE, n, "m",
							     here && role == 1 ? no_numbers[i] : 1);
					}
					assert_int_equal(judge(&gate).reason, GATE_NOT_FINITE);
					assert_false(judge(&gate).passed);
				}
	for (size_t i = 0; i < 3; i++) {
		assert_false(judge_number(GATE_AT_LEAST, -DBL_MAX, no_numbers[i]).passed);
		assert_false(judge_number(GATE_AT_MOST, DBL_MAX, no_numbers[i]).passed);
		assert_false(gap_passes(DBL_MAX, false, no_numbers[i], 1));
		assert_false(gap_passes(DBL_MAX, false, 1, no_numbers[i]));
		assert_false(gap_passes(DBL_MAX, false, no_numbers[i], no_numbers[i]));
	}
	/* Numbers whose sum, or difference, is none. */
	assert_false(pair_passes(drop_of(1, true, false), -DBL_MAX, DBL_MAX));
	assert_false(pair_passes(drop_of(1, true, true), DBL_MAX, -DBL_MAX));
	assert_false(gap_passes(1, true, DBL_MAX, -DBL_MAX));
}

static void what_is_missing_never_passes(void **state)
{
	(void)state;
	for (int role = 0; role < GATE_ROLE_COUNT; role++)
		for (int repeats = 1; repeats <= 3; repeats++)
			for (int at = 1; at <= repeats; at++) {
				struct gate gate;

				begin(&gate, drop_of(1000, false, false), repeats);
				for (int n = 1; n <= repeats; n++) {
					if (n != at || role != GATE_CANDIDATE)
						gate_measure(&gate, GATE_CANDIDATE, n, "m", 1);
					if (n != at || role != GATE_BASELINE)
						gate_measure(&gate, GATE_BASELINE, n, "m", 1);
					gate_measure(&gate, GATE_CANDIDATE, n, "other", 1);
				}
				/* Repeats that the plan does not have take no place of others. */
				gate_measure(&gate, (enum gate_role)role, repeats + 1, "m", 1);
				gate_measure(&gate, (enum gate_role)role, 0, "m", 1);
				gate_measure(&gate, (enum gate_role)role, INT64_MIN, "m", 1);
				assert_int_equal(judge(&gate).reason, GATE_MISSING);
				assert_int_equal(judge(&gate).missing, 1);
				assert_false(judge(&gate).passed);
			}
}

static void a_share_of_nothing_never_passes(void **state)
{
	(void)state;
	assert_int_equal(judge_pair(drop_of(0.001, true, false), 0, 0).reason, GATE_BASELINE_ZERO);
	assert_int_equal(judge_pair(drop_of(0.001, true, false), 5, 0).reason, GATE_BASELINE_ZERO);
	assert_int_equal(judge_pair(drop_of(1, true, true), -5, -0.0).reason, GATE_BASELINE_ZERO);
	assert_true(isnan(gate_bound(&(struct gate_entry){ .relative = true, .limit = 1 }, 0)));
	assert_true(pair_passes(drop_of(0.001, false, false), 0, 0));
	assert_false(gap_passes(1, true, 0, 0));
	assert_true(gap_passes(0.001, false, 0, 0));
}

static void without_a_baseline_the_candidate_needs_numbers(void **state)
{
	struct gate gate;

	(void)state;
	begin(&gate, drop_of(0.001, true, false), 2);
	gate_set_baseline(&gate, false);
	gate_measure(&gate, GATE_CANDIDATE, 1, "m", 0.5);
	assert_int_equal(judge(&gate).reason, GATE_MISSING);
	gate_measure(&gate, GATE_CANDIDATE, 2, "m", 0.7);
	assert_int_equal(judge(&gate).reason, GATE_NO_BASELINE);
	assert_true(judge(&gate).passed);
	assert_true(fabs(judge(&gate).candidate - 0.6) < 1e-15);
	assert_true(isnan(judge(&gate).baseline));
	begin(&gate, drop_of(0.001, true, false), 1);
	gate_set_baseline(&gate, false);
	gate_measure(&gate, GATE_CANDIDATE, 1, "m", (double)NAN);
	assert_false(judge(&gate).passed);
}

static void all_entries_are_judged_and_all_must_pass(void **state)
{
	struct gate_policy policy = { .count = 3, .repeats = 1 };
	struct gate_verdict verdict;
	struct gate gate;

	(void)state;
	gate_init(&gate, &policy);
	policy.entries[0] = (struct gate_entry){ .form = GATE_AT_LEAST, .metric = "a", .limit = 2 };
	policy.entries[1] = (struct gate_entry){ .form = GATE_AT_MOST, .metric = "b", .limit = 2 };
	policy.entries[2] = (struct gate_entry){ .form = GATE_AT_MOST, .metric = "a", .limit = 2 };
	gate_init(&gate, &policy);
	gate_measure(&gate, GATE_CANDIDATE, 1, "a", 1);
	gate_measure(&gate, GATE_CANDIDATE, 1, "b", 3);
	gate_judge(&gate, &verdict);
	assert_false(verdict.passed);
	assert_int_equal(verdict.count, 3);
	assert_int_equal(verdict.results[0].reason, GATE_BEYOND);
	assert_int_equal(verdict.results[1].reason, GATE_BEYOND);
	assert_true(verdict.results[2].passed);
	assert_true(verdict.results[2].candidate == 1 && verdict.results[1].candidate == 3);
	policy.count = 0;
	gate_init(&gate, &policy);
	gate_judge(&gate, &verdict);
	assert_false(verdict.passed);
}

/* --- noise --- */

static uint64_t drawn = 20261129;

static double draw(void)
{
	drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(drawn >> 11) + 0.5) / 9007199254740992.0;
}

static double draw_normal(void)
{
	return sqrt(-2 * log(draw())) * cos(6.283185307179586 * draw());
}

#define PAIRS 10000

/* Returns the share of PAIRS models that pass whose true drop is `times` the limit, with a noise in
 * a pair that is as large as the limit. Both values of a pair share a noise that is ten times that:
 * only pairs tell anything. */
static double share_that_passes(double times, int repeats, double confidence, bool lower)
{
	struct gate_entry entry = drop_of(0.001, true, lower);
	const double level = 0.9583, limit = 0.001 * level;
	int passed = 0;

	entry.confidence = confidence;
	for (int i = 0; i < PAIRS; i++) {
		struct gate gate;

		begin(&gate, entry, repeats);
		for (int n = 1; n <= repeats; n++) {
			double baseline = level + 10 * limit * draw_normal();
			double drop = limit * (times + draw_normal());

			gate_measure(&gate, GATE_BASELINE, n, "m", baseline);
			gate_measure(&gate, GATE_CANDIDATE, n, "m",
				     lower ? baseline + drop : baseline - drop);
		}
		passed += judge(&gate).passed;
	}
	return (double)passed / PAIRS;
}

static void a_model_at_the_limit_passes_as_seldom_as_the_confidence_says(void **state)
{
	(void)state;
	assert_true(share_that_passes(1, 20, 0.95, false) <= 0.057);
	assert_true(share_that_passes(1, 20, 0.95, true) <= 0.057);
	assert_true(share_that_passes(1, 2, 0.95, false) <= 0.057);
	assert_true(share_that_passes(1, 5, 0.95, true) <= 0.057);
	assert_true(share_that_passes(1, 20, 0.99, false) <= 0.013);
	assert_true(share_that_passes(1, 3, 0.99, true) <= 0.013);
	/* The share is not 0: then the interval would be too wide. */
	assert_true(share_that_passes(1, 20, 0.95, false) >= 0.043);
	assert_true(share_that_passes(1, 20, 0.99, true) >= 0.007);
}

static void a_worse_model_hardly_passes_and_an_equal_one_does(void **state)
{
	(void)state;
	assert_true(share_that_passes(1.5, 20, 0.95, false) <= 0.001);
	assert_true(share_that_passes(1.5, 20, 0.95, true) <= 0.001);
	assert_true(share_that_passes(0, 20, 0.95, false) >= 0.9);
	assert_true(share_that_passes(0, 20, 0.95, true) >= 0.9);
}

/* The numbers are computed by hand: drops 1, 2, 3, 4 of a baseline of 100 have the mean 2.5 and the
 * deviation 1.290994; the quantile of Student's t for 95 % and three degrees is 2.353363 (a
 * table's). */
static void the_upper_end_is_students(void **state)
{
	struct gate gate;

	(void)state;
	begin(&gate, drop_of(10, false, false), 4);
	for (int n = 1; n <= 4; n++) {
		gate_measure(&gate, GATE_CANDIDATE, n, "m", 100 - n);
		gate_measure(&gate, GATE_BASELINE, n, "m", 100);
	}
	assert_true(fabs(judge(&gate).drop - 2.5) < 1e-12);
	assert_true(fabs(judge(&gate).upper - (2.5 + 2.353363 * 1.290994 / 2)) < 1e-5);
	assert_true(judge(&gate).passed);
	gate.policy.entries[0].limit = 4.0191;
	assert_true(judge(&gate).passed);
	gate.policy.entries[0].limit = 4.0190;
	assert_false(judge(&gate).passed);
}

/* --- any values, in any order --- */

static double draw_any(void)
{
	static const double special[] = { 0,       -0.0,        1,      -1,     DBL_MAX, -DBL_MAX,
					  DBL_MIN, DBL_EPSILON, 5e-324, 0.9583, 1e-12 };
	double share = draw();
	uint64_t bits = drawn;
	double value;

	if (share < 0.5)
		return special[(size_t)(draw() * 11)];
	if (share < 0.9)
		return draw_normal();
	memcpy(&value, &bits, sizeof value);
	return value;
}

static void any_values_keep_the_promises(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct gate_entry entry = drop_of(fabs(draw_normal()) * (draw() < 0.3 ? 0 : 1),
						  draw() < 0.5, draw() < 0.5);
		double candidate[3], baseline[3];
		int repeats = 1 + (int)(draw() * 3);
		struct gate forth, back;
		bool finite = true;

		begin(&forth, entry, repeats);
		begin(&back, entry, repeats);
		for (int n = 0; n < repeats; n++) {
			candidate[n] = draw_any();
			baseline[n] = draw_any();
			finite = finite && isfinite(candidate[n]) && isfinite(baseline[n]);
			gate_measure(&forth, GATE_CANDIDATE, n + 1, "m", candidate[n]);
			gate_measure(&forth, GATE_BASELINE, n + 1, "m", baseline[n]);
		}
		for (int n = repeats; n-- > 0;) {
			gate_measure(&back, GATE_BASELINE, n + 1, "m", baseline[n]);
			gate_measure(&back, GATE_CANDIDATE, n + 1, "m", candidate[n]);
			/* The first one counts. */
			gate_measure(&back, GATE_CANDIDATE, n + 1, "m", draw_any());
			gate_measure(&back, GATE_BASELINE, n + 1, "m", draw_any());
		}
		assert_true(judge(&forth).reason == judge(&back).reason);
		assert_true(finite || !judge(&forth).passed);
		/* A better candidate never fares worse. */
		if (repeats == 1 && judge(&forth).passed) {
			double better = entry.lower_is_better ? nextafter(candidate[0], -DBL_MAX)
							      : nextafter(candidate[0], DBL_MAX);

			assert_true(pair_passes(entry, better, baseline[0]));
		}
	}
}

/* --- two series --- */

struct series_point {
	enum gate_role role;
	int64_t step;
	double value;
	enum phase phase;
};

static struct gate_parity compare(bool relative, const struct series_point *points, size_t count)
{
	struct gate_entry entry = { .form = GATE_MAX_GAP, .relative = relative, .limit = 0.001 };
	struct gate_parity_reader reader;
	struct gate_parity parity;

	gate_parity_begin(&reader, &entry);
	for (size_t i = 0; i < count; i++)
		gate_parity_add(&reader, points[i].phase, points[i].role, points[i].step,
				points[i].value);
	gate_parity_end(&reader, &parity);
	return parity;
}

#define COMPARE(relative, ...)                                                                     \
	compare(relative, (const struct series_point[]){ __VA_ARGS__ },                            \
		sizeof((const struct series_point[]){ __VA_ARGS__ }) /                             \
			sizeof(struct series_point))
#define OWN(step, value)                                                                           \
	{                                                                                          \
		GATE_CANDIDATE, step, value, PHASE_TRAIN                                           \
	}
#define OTHER(step, value)                                                                         \
	{                                                                                          \
		GATE_BASELINE, step, value, PHASE_TRAIN                                            \
	}

static void the_largest_gap_is_told_with_its_step(void **state)
{
	struct gate_parity parity =
		COMPARE(false, OWN(0, 1), OTHER(0, 1.5), OWN(10, 4), OTHER(10, 3), OTHER(20, 7),
			OWN(20, 8), OWN(30, 5), OTHER(30, 5.25));

	(void)state;
	assert_int_equal(parity.points, 4);
	assert_int_equal(parity.missing, 0);
	assert_int_equal(parity.step, 10); /* the first of two equal gaps */
	assert_true(parity.candidate == 4 && parity.baseline == 3);
	parity = COMPARE(true, OWN(0, 1), OTHER(0, 1.5), OWN(10, 4), OTHER(10, 3), OWN(20, -1),
			 OTHER(20, -2));
	assert_int_equal(parity.step, 20); /* a half, not a third */
	parity = COMPARE(true, OWN(0, 1), OTHER(0, 1), OWN(10, 1e-300), OTHER(10, 0), OWN(20, 9),
			 OTHER(20, 1));
	assert_int_equal(parity.step, 10); /* a share of 0 is none */
}

static void every_point_of_either_run_must_be_in_both(void **state)
{
	struct gate_parity parity = COMPARE(false, OWN(0, 1), OTHER(0, 1), OTHER(10, 1), OWN(20, 1),
					    OTHER(20, 1), OWN(30, 1));

	(void)state;
	assert_int_equal(parity.points, 2);
	assert_int_equal(parity.missing, 2);
	assert_int_equal(parity.missing_step, 10);
	assert_int_equal(parity.lacking, GATE_CANDIDATE);
	parity = COMPARE(false, OWN(5, 1));
	assert_int_equal(parity.missing_step, 5);
	assert_int_equal(parity.lacking, GATE_BASELINE);
	parity = COMPARE(false, OWN(5, 1), OTHER(5, 1), OWN(4, 1), OTHER(4, 1));
	assert_true(parity.missing > 0); /* an order that tells nothing */
}

static void replayed_points_count_once_and_phase_1_never(void **state)
{
	struct gate_parity parity = COMPARE(
		false, OWN(0, 1), OTHER(0, 1), OWN(10, 9), OWN(10, 2), OTHER(10, 2),
		{ GATE_CANDIDATE, 10, 7, PHASE_PRECOMPILE },
		{ GATE_BASELINE, 15, 7, PHASE_PRECOMPILE }, OTHER(20, 8), OTHER(20, 3), OWN(20, 3));

	(void)state;
	assert_int_equal(parity.points, 3);
	assert_int_equal(parity.missing, 0);
	assert_true(parity.candidate == parity.baseline);
}

static void a_parity_is_judged_as_a_whole(void **state)
{
	struct gate_entry entry = { .form = GATE_MAX_GAP, .metric = "m", .limit = 1 };
	struct gate_parity parity = { .points = 3, .step = 7, .candidate = 1, .baseline = 1.5 };
	struct gate gate;

	(void)state;
	begin(&gate, entry, 1);
	assert_int_equal(judge(&gate).reason, GATE_MISSING); /* not compared */
	gate_set_parity(&gate, 1, &parity);
	gate_set_parity(&gate, -1, &parity);
	assert_int_equal(judge(&gate).reason, GATE_MISSING);
	gate_set_parity(&gate, 0, &parity);
	assert_true(judge(&gate).passed);
	assert_true(judge(&gate).drop == 0.5 && judge(&gate).parity.step == 7);
	gate.parity[0].missing = 1;
	assert_int_equal(judge(&gate).reason, GATE_MISSING);
	gate.parity[0].missing = 0;
	gate.parity[0].invalid = 1;
	assert_int_equal(judge(&gate).reason, GATE_NOT_FINITE);
	begin(&gate, entry, 1);
	gate_set_parity(&gate, 0, &(struct gate_parity){ 0 });
	assert_int_equal(judge(&gate).reason, GATE_MISSING); /* no point at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drop_of_up_to_the_limit_passes),
		cmocka_unit_test(decimal_fractions_meet_their_limit),
		cmocka_unit_test(a_gap_must_be_less_than_the_limit),
		cmocka_unit_test(a_number_of_its_own_is_met_by_itself),
		cmocka_unit_test(what_is_no_number_never_passes),
		cmocka_unit_test(what_is_missing_never_passes),
		cmocka_unit_test(a_share_of_nothing_never_passes),
		cmocka_unit_test(without_a_baseline_the_candidate_needs_numbers),
		cmocka_unit_test(all_entries_are_judged_and_all_must_pass),
		cmocka_unit_test(a_model_at_the_limit_passes_as_seldom_as_the_confidence_says),
		cmocka_unit_test(a_worse_model_hardly_passes_and_an_equal_one_does),
		cmocka_unit_test(the_upper_end_is_students),
		cmocka_unit_test(any_values_keep_the_promises),
		cmocka_unit_test(the_largest_gap_is_told_with_its_step),
		cmocka_unit_test(every_point_of_either_run_must_be_in_both),
		cmocka_unit_test(replayed_points_count_once_and_phase_1_never),
		cmocka_unit_test(a_parity_is_judged_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
