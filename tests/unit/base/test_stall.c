/* The judge of stalls: what is progress, how long each phase may be silent, ten
 * thousand healthy runs that it must let alone, and hangs that it must catch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/stall.h"

#define SECOND ((int64_t)1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

#define RUNS 10000

static struct mono at(int64_t ms)
{
	return (struct mono){ ms };
}

/* Look as often as an agent does, up to this moment; when the verdict fell, or -1. */
static int64_t look_until(struct stall *stall, int64_t from, int64_t to,
			  struct stall_silence *verdict)
{
	for (int64_t now = from; now <= to; now += SECOND)
		if (stall_check(stall, at(now), verdict))
			return now;
	return -1;
}

/* Steps of one second each, from `*now` on. */
static void steps(struct stall *stall, int64_t *now, int64_t first, int64_t count)
{
	struct stall_silence verdict;

	for (int64_t i = 0; i < count; i++) {
		*now += SECOND;
		assert_false(stall_check(stall, at(*now), &verdict));
		stall_step(stall, at(*now), first + i);
	}
}

static void assert_stalls_at(struct stall *stall, int64_t now, int64_t silent,
			     enum stall_doing doing)
{
	struct stall_silence verdict = { 0 };
	int64_t fell = look_until(stall, now, now + silent + HOUR, &verdict);

	assert_int_equal(fell, now + silent + SECOND);
	assert_int_equal(verdict.doing, doing);
	assert_int_equal(verdict.limit_ms, silent);
	assert_int_equal(verdict.silent_ms, silent + SECOND);
}

static void a_silence_is_told_half_way_to_its_limit(void **state)
{
	struct stall_silence half = { 0 };
	struct stall stall;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_FIXED, MINUTE, true, at(0));
	steps(&stall, &now, 1, 50);
	assert_false(stall_is_half(&stall, at(now + 29 * SECOND), &half));
	assert_true(stall_is_half(&stall, at(now + 30 * SECOND), &half));
	assert_int_equal(half.doing, DOING_STEP);
	assert_int_equal(half.limit_ms, MINUTE);
	assert_int_equal(half.silent_ms, 30 * SECOND);
	assert_stalls_at(&stall, now, MINUTE, DOING_STEP);
	stall_step(&stall, at(now + 40 * SECOND), 51);
	assert_false(stall_is_half(&stall, at(now + 60 * SECOND), &half));
	stall_init(&stall, STALL_OFF, 0, true, at(0));
	assert_false(stall_is_half(&stall, at(100 * HOUR), &half));
}

static void a_hang_after_step_50_is_caught_in_five_minutes_and_a_little(void **state)
{
	struct stall stall;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	steps(&stall, &now, 1, 50);
	assert_stalls_at(&stall, now, 5 * MINUTE + 5 * SECOND, DOING_STEP);
}

static void a_fixed_limit_holds_for_steps_and_never_shortens_the_others(void **state)
{
	struct stall stall;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_FIXED, 3 * SECOND, true, at(0));
	assert_int_equal(stall_limit(&stall), 30 * MINUTE);
	stall_compile(&stall, at(0), true);
	assert_int_equal(stall_limit(&stall), 2 * HOUR);
	stall_compile(&stall, at(0), false);
	assert_int_equal(stall_limit(&stall), HOUR);
	steps(&stall, &now, 1, 2);
	stall_bytes(&stall, at(now));
	assert_int_equal(stall_limit(&stall), 30 * MINUTE);
	stall_saved(&stall);
	assert_stalls_at(&stall, now, 3 * SECOND, DOING_STEP);
	stall_init(&stall, STALL_FIXED, 3 * HOUR, true, at(0));
	assert_int_equal(stall_limit(&stall), 3 * HOUR);
}

static void off_is_off(void **state)
{
	struct stall stall;
	struct stall_silence verdict;

	(void)state;
	stall_init(&stall, STALL_OFF, 0, true, at(0));
	assert_int_equal(look_until(&stall, 0, 5 * HOUR, &verdict), -1);
}

static void each_phase_before_the_first_step_has_its_own_limit(void **state)
{
	struct stall stall;

	(void)state;
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	assert_stalls_at(&stall, 0, 30 * MINUTE, DOING_START);
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	stall_output(&stall, at(0), true);
	assert_stalls_at(&stall, 0, HOUR, DOING_FIRST_STEP);
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	stall_compile(&stall, at(0), true);
	assert_stalls_at(&stall, 0, 2 * HOUR, DOING_COMPILE);
}

static void other_lines_do_not_count_once_a_step_was_seen(void **state)
{
	struct stall stall;
	struct stall_silence verdict;
	int64_t now = 0, from;

	(void)state;
	stall_init(&stall, STALL_FIXED, MINUTE, true, at(0));
	stall_output(&stall, at(0), false);
	steps(&stall, &now, 1, 20);
	for (from = now; now < from + MINUTE; now += SECOND) {
		assert_false(stall_check(&stall, at(now), &verdict));
		stall_output(&stall, at(now), false);
	}
	assert_true(stall_check(&stall, at(now + SECOND), &verdict));
	assert_int_equal(verdict.doing, DOING_STEP);
}

static void a_node_that_is_behind_counts_as_long_as_it_follows(void **state)
{
	struct stall stall;
	struct stall_silence verdict;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_FIXED, MINUTE, true, at(0));
	steps(&stall, &now, 1, 20);
	for (int64_t step = 3; step <= 20; step++) {
		for (int second = 0; second < 60; second++)
			assert_false(stall_check(&stall, at(now += SECOND), &verdict));
		stall_step(&stall, at(now), step);
	}
	assert_int_equal(stall.step, 20);
	for (int second = 0; second < 60; second++)
		assert_false(stall_check(&stall, at(now += SECOND), &verdict));
	assert_true(stall_check(&stall, at(now + SECOND), &verdict));
}

static void bytes_compile_lines_and_cache_bytes_count_as_well(void **state)
{
	struct stall stall;
	struct stall_silence verdict;
	int64_t now = 0;

	(void)state;
	for (int sign = 0; sign < 3; sign++) {
		stall_init(&stall, STALL_AUTO, 0, true, at(now));
		steps(&stall, &now, 1, 60);
		for (int64_t end = now + 3 * HOUR; now < end; now += 20 * SECOND) {
			assert_false(stall_check(&stall, at(now), &verdict));
			if (sign == 0)
				stall_bytes(&stall, at(now));
			else if (sign == 1)
				stall_compile(&stall, at(now), false);
			else
				stall_cache(&stall, at(now));
		}
	}
}

static void waiting_for_anothers_compilation_counts_once(void **state)
{
	struct stall_silence verdict;
	struct stall stall;
	int64_t fell = -1, now;

	(void)state;
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	/* The command says so each minute, for ever. */
	for (now = 0; fell < 0 && now < 10 * HOUR; now += MINUTE) {
		stall_wait(&stall, at(now));
		fell = look_until(&stall, now + SECOND, now + MINUTE, &verdict);
	}
	assert_int_equal(fell, 2 * HOUR + SECOND);
	assert_int_equal(verdict.doing, DOING_COMPILE);
	/* Any other sign of life begins the wait anew. */
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	stall_wait(&stall, at(0));
	stall_compile(&stall, at(HOUR), false);
	stall_wait(&stall, at(HOUR + MINUTE));
	assert_int_equal(stall.last.ms, HOUR + MINUTE);
	assert_int_equal(stall.doing, DOING_COMPILE);
}

static void a_progress_bar_puts_the_verdict_off_by_an_hour_and_no_longer(void **state)
{
	struct stall stall;
	struct stall_silence verdict = { 0 };
	int64_t now = 0, from;

	(void)state;
	stall_init(&stall, STALL_FIXED, 10 * SECOND, true, at(0));
	steps(&stall, &now, 1, 50);
	for (from = now; now <= from + HOUR + 10 * SECOND; now += SECOND) {
		assert_false(stall_check(&stall, at(now), &verdict));
		stall_output(&stall, at(now), true);
	}
	assert_true(stall_check(&stall, at(now), &verdict));
	assert_int_equal(verdict.limit_ms, HOUR + 10 * SECOND);
	/* A bar that is drawn no more is silence. */
	stall_init(&stall, STALL_FIXED, 10 * SECOND, true, at(now));
	steps(&stall, &now, 1, 50);
	stall_output(&stall, at(now + SECOND), true);
	assert_int_equal(look_until(&stall, now, now + HOUR, &verdict), now + 12 * SECOND);
}

static void where_no_metric_tells_steps_output_counts_all_along(void **state)
{
	struct stall stall;
	struct stall_silence verdict;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_AUTO, 0, false, at(0));
	for (; now < 10 * HOUR; now += 25 * SECOND) {
		assert_false(stall_check(&stall, at(now), &verdict));
		stall_output(&stall, at(now), false);
	}
	assert_int_equal(stall_limit(&stall), HOUR);
	stall_init(&stall, STALL_FIXED, MINUTE, false, at(0));
	stall_output(&stall, at(0), false);
	assert_stalls_at(&stall, 0, MINUTE, DOING_STEP);
	/* A metric that had to be given up leaves it like that. */
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	stall_step(&stall, at(0), 1);
	stall_forget_steps(&stall);
	stall_output(&stall, at(20 * SECOND), false);
	assert_int_equal(stall.last.ms, 20 * SECOND);
}

static void time_in_which_nobody_looked_is_not_held_against_it(void **state)
{
	struct stall stall;
	struct stall_silence verdict;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_FIXED, MINUTE, true, at(0));
	steps(&stall, &now, 1, 20);
	now += 8 * HOUR; /* the lid was closed */
	assert_false(stall_check(&stall, at(now), &verdict));
	assert_stalls_at(&stall, now, MINUTE, DOING_STEP);
}

static void an_evaluation_seen_once_is_expected_again(void **state)
{
	struct stall stall;
	int64_t now = 0;

	(void)state;
	stall_init(&stall, STALL_AUTO, 0, true, at(0));
	steps(&stall, &now, 1, 1200);
	assert_int_equal(stall_limit(&stall), 15 * MINUTE + 5 * SECOND);
	for (int i = 0; i < 14 * 60; i++)
		assert_false(stall_check(&stall, at(now += SECOND), &(struct stall_silence){ 0 }));
	steps(&stall, &now, 1201, 300);
	assert_int_equal(stall_limit(&stall), 2 * (14 * MINUTE + SECOND));
}

/* ---- healthy runs ---- */

struct chance {
	uint64_t state;
};

/* splitmix64 */
static uint64_t next(struct chance *c)
{
	uint64_t z = (c->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static double uniform(struct chance *c, double from, double to)
{
	return from + (to - from) * ((double)(next(c) >> 11) / 9007199254740992.0);
}

static int64_t between(struct chance *c, int64_t from, int64_t to)
{
	return (int64_t)uniform(c, (double)from, (double)to + 1);
}

static bool one_in(struct chance *c, int n)
{
	return next(c) % (uint64_t)n == 0;
}

static double normal(struct chance *c)
{
	return sqrt(-2 * log(uniform(c, 1e-12, 1))) * cos(uniform(c, 0, 2 * 3.14159265358979));
}

struct run {
	struct chance chance;
	struct stall stall;
	int64_t now, since_eval; /* ms */
	int64_t step, stride;
	double median, spread;
	int eval_every, save_every;
	double eval_share;
	bool bars, tells_compiles;
	int alarms;
};

/* Nothing is heard until then. Right before the next sign of life it has been
 * silent for longest; looks in between only keep us from being blind. */
static void silent_for(struct run *run, int64_t ms)
{
	struct stall_silence verdict;

	if (ms < 1)
		ms = 1;
	run->now += ms;
	run->stall.checked = at(run->now - 1);
	if (stall_check(&run->stall, at(run->now), &verdict))
		run->alarms++;
}

static int64_t log_normal(struct run *run, double median_ms, double spread)
{
	return (int64_t)(median_ms * exp(spread * normal(&run->chance)));
}

static void compile_once(struct run *run, int64_t most)
{
	if (run->tells_compiles)
		stall_compile(&run->stall, at(run->now), true);
	silent_for(run, between(&run->chance, SECOND, most));
	if (run->tells_compiles)
		stall_compile(&run->stall, at(run->now), false);
}

/* Load, print, compile, up to the first step. */
static void start_up(struct run *run)
{
	int64_t graphs = between(&run->chance, 1, 8);

	silent_for(run, between(&run->chance, SECOND, 20 * MINUTE));
	stall_output(&run->stall, at(run->now), false);
	silent_for(run, between(&run->chance, SECOND, 30 * MINUTE));
	for (int64_t i = 0; i < graphs; i++)
		compile_once(run, run->tells_compiles ? 110 * MINUTE : 3 * MINUTE);
}

static void evaluate(struct run *run)
{
	double share = run->eval_share * uniform(&run->chance, 0.6, 1.4);
	int64_t ms = (int64_t)((double)run->since_eval * share);

	if (ms > (run->bars ? 50 : 14) * MINUTE)
		ms = (run->bars ? 50 : 14) * MINUTE;
	for (; run->bars && ms > 5 * SECOND; ms -= 5 * SECOND) {
		silent_for(run, 5 * SECOND);
		stall_output(&run->stall, at(run->now), true);
	}
	silent_for(run, ms);
	run->since_eval = 0;
}

/* Gather in silence, write, with a pause where the storage is slow, tidy up. */
static void save(struct run *run)
{
	int64_t writes = between(&run->chance, 1, 60);

	silent_for(run, between(&run->chance, 0, 4 * MINUTE));
	for (int64_t i = 0; i < writes; i++) {
		stall_bytes(&run->stall, at(run->now));
		silent_for(run, between(&run->chance, SECOND, 30 * SECOND));
	}
	if (one_in(&run->chance, 10))
		silent_for(run, between(&run->chance, MINUTE, 25 * MINUTE));
	stall_bytes(&run->stall, at(run->now));
	if (one_in(&run->chance, 2)) {
		silent_for(run, 6 * SECOND);
		stall_saved(&run->stall);
	}
	silent_for(run, between(&run->chance, 0, 2 * MINUTE));
}

static void one_report(struct run *run, int number)
{
	int64_t ms = log_normal(run, run->median, run->spread);

	run->since_eval += ms;
	if (number > 0 && number < 4 && one_in(&run->chance, 2))
		ms += between(&run->chance, SECOND, 20 * MINUTE); /* graphs of the first steps */
	else if (number > 0 && number % run->eval_every == 0)
		evaluate(run);
	else if (number > 0 && number % run->save_every == 0)
		save(run);
	else if (run->tells_compiles && one_in(&run->chance, 400))
		compile_once(run, 100 * MINUTE);
	else if (one_in(&run->chance, 300))
		ms += between(&run->chance, SECOND, 4 * MINUTE); /* a slow one */
	silent_for(run, ms);
	run->step += run->stride;
	stall_step(&run->stall, at(run->now), run->step);
}

/* Fixed, unless the environment asks for others. */
static uint64_t seed_of(uint64_t number)
{
	const char *base = getenv("STOKER_TEST_SEED");

	return number + (base ? (strtoull(base, NULL, 10) - 1) * RUNS : 0);
}

static void make_run(struct run *run, uint64_t number)
{
	*run = (struct run){ .chance.state = seed_of(number) };
	run->stride = one_in(&run->chance, 2) ? 1 : between(&run->chance, 2, 100);
	run->median = pow(10, uniform(&run->chance, 1.7, 5.6)); /* 50 ms to 400 s a report */
	run->spread = uniform(&run->chance, 0.02, 0.4);
	run->eval_every = (int)between(&run->chance, 10, 150);
	run->save_every = (int)between(&run->chance, 10, 150);
	run->eval_share = uniform(&run->chance, 0.02, 0.6);
	run->bars = one_in(&run->chance, 3);
	run->tells_compiles = !one_in(&run->chance, 4);
	stall_init(&run->stall, STALL_AUTO, 0, true, at(0));
}

static void ten_thousand_healthy_runs_give_no_alarm(void **state)
{
	int alarmed = 0;
	int64_t reports = 0;
	double hours = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct run run;
		int64_t count;

		make_run(&run, seed);
		start_up(&run);
		count = between(&run.chance, 60, 240);
		for (int i = 0; i < count; i++)
			one_report(&run, i);
		silent_for(&run, between(&run.chance, SECOND, 4 * MINUTE)); /* the end */
		if (run.alarms > 0 && alarmed++ < 5)
			print_message("seed %llu: %d false alarms\n", (unsigned long long)seed,
				      run.alarms);
		reports += count;
		hours += (double)run.now / (double)HOUR;
	}
	print_message("%d healthy runs, %lld reports, %.0f hours: %d false alarms\n", RUNS,
		      (long long)reports, hours, alarmed);
	assert_int_equal(alarmed, 0);
}

/* The same runs, each hanging at a step from 50 on. */
static void every_hang_after_step_50_is_caught_within_its_limit(void **state)
{
	int64_t most = 0, sum = 0, quick = 0, quick_sum = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct run run;
		int64_t limit;
		int count;

		make_run(&run, seed);
		start_up(&run);
		count = (int)between(&run.chance, 50, 150);
		for (int i = 0; i < count; i++)
			one_report(&run, i);
		limit = stall_limit(&run.stall);
		silent_for(&run, limit);
		assert_int_equal(run.alarms, 0);
		silent_for(&run, SECOND);
		assert_int_equal(run.alarms, 1);
		sum += limit;
		most = limit > most ? limit : most;
		if (run.median < 10 * SECOND) {
			quick++;
			quick_sum += limit;
		}
	}
	print_message("hangs: caught after %lld s on average (steps below 10 s: %lld s), "
		      "%lld s at most\n",
		      (long long)(sum / RUNS / SECOND), (long long)(quick_sum / quick / SECOND),
		      (long long)(most / SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silence_is_told_half_way_to_its_limit),
		cmocka_unit_test(a_hang_after_step_50_is_caught_in_five_minutes_and_a_little),
		cmocka_unit_test(a_fixed_limit_holds_for_steps_and_never_shortens_the_others),
		cmocka_unit_test(off_is_off),
		cmocka_unit_test(each_phase_before_the_first_step_has_its_own_limit),
		cmocka_unit_test(other_lines_do_not_count_once_a_step_was_seen),
		cmocka_unit_test(a_node_that_is_behind_counts_as_long_as_it_follows),
		cmocka_unit_test(bytes_compile_lines_and_cache_bytes_count_as_well),
		cmocka_unit_test(waiting_for_anothers_compilation_counts_once),
		cmocka_unit_test(a_progress_bar_puts_the_verdict_off_by_an_hour_and_no_longer),
		cmocka_unit_test(where_no_metric_tells_steps_output_counts_all_along),
		cmocka_unit_test(time_in_which_nobody_looked_is_not_held_against_it),
		cmocka_unit_test(an_evaluation_seen_once_is_expected_again),
		cmocka_unit_test(ten_thousand_healthy_runs_give_no_alarm),
		cmocka_unit_test(every_hang_after_step_50_is_caught_within_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
