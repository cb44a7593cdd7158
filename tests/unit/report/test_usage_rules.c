/* What held a training up: jobs/report/measure/usage_rules.h. */
#include "jobs/report/measure/usage_rules.h"

#include <math.h>

#include "jobs/base/sb.h"
#include "jobs/base/usage.h"
#include "tests/unit/quoted.h"

/* Figures of a moment; below 0: not told. */
struct moment {
	double trainer, loaders, cpu, swap, swapped, busy[3], full;
};

static const struct moment healthy = { 95, 20, 300, 0, -1, { 90, 88, 91 }, 80 };
static const struct moment host_alone = { 95, 20, 300, 0, -1, { -1, -1, -1 }, -1 };

static void tell(struct usage_rules *rules, struct usage_point at, size_t figure, double value)
{
	at.figure = figure;
	at.value = value;
	if (value >= 0)
		usage_rules_add(rules, &at);
}

static struct usage_point here = { .attempt = 1, .step = 1, .at_ms = 1700000000000 };

/* Tells so many seconds of an attempt's node. */
static void train(struct usage_rules *rules, int seconds, const struct moment *moment)
{
	for (int i = 0; i < seconds; i++) {
		here.at_ms += 1000;
		tell(rules, here, USAGE_CPU, moment->cpu);
		tell(rules, here, USAGE_CPU_CORES, 8);
		tell(rules, here, USAGE_TRAINER, moment->trainer);
		tell(rules, here, USAGE_LOADERS, moment->loaders);
		tell(rules, here, USAGE_SWAP_IN, moment->swap);
		tell(rules, here, USAGE_SWAP_OUT, moment->swap);
		tell(rules, here, USAGE_SWAPPED, moment->swapped);
		for (size_t k = 0; k < 3; k++)
			tell(rules, here, usage_busy(k), moment->busy[k]);
		tell(rules, here, usage_full(1), moment->full);
	}
}

static double judged;

/* Says what is found, as "rule@node rule@node"; "-": nothing can be said. The caller frees it. */
static char *found(struct usage_rules *rules)
{
	json_auto_t *findings = usage_rules_findings(rules, &judged);
	const json_t *one;
	AUTO(sb_release) struct sb text = SB_INIT;
	size_t i;

	if (!findings)
		return mem_copy("-");
	json_array_foreach (findings, i, one) {
		assert_non_null(js_str(one, "figure"));
		assert_non_null(js_str(one, "threshold"));
		assert_non_null(js_str(one, "means"));
		sb_addf(&text, "%s%s@%lld", i ? " " : "", js_str(one, "rule"),
			(long long)js_int(one, "node", -1));
	}
	return mem_copy(text.len > 0 ? text.text : "");
}

static void is_found(struct moment moment, const char *want)
{
	AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
	AUTO(auto_free) char *text = NULL;

	train(rules, 30, &moment);
	text = found(rules);
	assert_string_equal(text, want);
}

static void what_is_healthy_has_no_name(void **state)
{
	(void)state;
	is_found(healthy, "");
	is_found(host_alone, "");
	/* All of the CPU is what a training on it wants. */
	is_found((struct moment){ 400, 30, 800, 0, -1, { -1, -1, -1 }, -1 }, "");
	/* Devices that are busy do not wait, whatever the host does. */
	is_found((struct moment){ 5, 99, 800, 0, -1, { 70, 70, 70 }, 80 }, "");
	/* Devices that do little, and a host that does little: something else is the cause. */
	is_found((struct moment){ 60, 10, 60, 0, -1, { 30, 30, 30 }, 80 }, "");
	/* Others on the machine swap; or this command did once. */
	is_found((struct moment){ 95, 20, 300, 50, 0, { 90, 90, 90 }, 80 }, "");
	is_found((struct moment){ 95, 20, 300, 0.1, 500, { 90, 90, 90 }, 80 }, "");
	/* Devices that do nothing need no larger batch. */
	is_found((struct moment){ 95, 20, 300, 0, -1, { 3, 3, 3 }, 10 }, "");
}

static void each_bottleneck_is_named(void **state)
{
	struct moment moment;

	(void)state;
	moment = host_alone;
	moment.trainer = 12;
	moment.loaders = 97;
	is_found(moment, "loader-bound@0");
	moment = healthy;
	moment.trainer = 12;
	moment.loaders = 97;
	for (size_t i = 0; i < 3; i++)
		moment.busy[i] = 35;
	is_found(moment, "loader-bound@0");
	moment.trainer = moment.loaders = -1;
	moment.cpu = 790;
	is_found(moment, "loader-bound@0");
	moment = healthy;
	moment.busy[2] = 4;
	is_found(moment, "idle core@0");
	moment = host_alone;
	moment.swap = 3;
	moment.swapped = 700;
	is_found(moment, "swapping@0");
	moment = healthy;
	moment.full = 30;
	is_found(moment, "memory left unused@0");
}

static void warm_up_and_the_last_sample_are_not_judged(void **state)
{
	AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
	AUTO(auto_free) char *text = NULL;
	struct moment waits = host_alone;

	(void)state;
	waits.trainer = 10;
	waits.loaders = 99;
	here.step = -1;
	train(rules, 100, &waits); /* it compiles */
	here.step = 1;
	train(rules, USAGE_WARM, &waits);
	train(rules, 10, &host_alone);
	train(rules, 1, &waits);
	text = found(rules);
	assert_string_equal(text, "");
	assert_true(fabs(judged - 10) < 1e-9);
}

/* The service has started the command again: it loads, compiles, and makes steps. */
static void each_start_of_an_attempt_has_a_warm_up(void **state)
{
	AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
	AUTO(auto_free) char *text = NULL;
	struct moment waits = host_alone;

	(void)state;
	waits.trainer = 10;
	waits.loaders = 99;
	train(rules, USAGE_WARM + 6, &host_alone);
	here.at_ms += 300000;
	here.start = 1;
	here.step = -1;
	train(rules, 100, &waits);
	here.step = 1;
	train(rules, USAGE_WARM, &waits);
	train(rules, 6, &host_alone);
	here.start = 0;
	text = found(rules);
	assert_string_equal(text, "");
	assert_true(fabs(judged - (2 * 5)) < 1e-9);
}

static void without_steps_the_first_minute_is_not_judged(void **state)
{
	AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(false);
	AUTO(auto_free) char *text = NULL;
	struct moment waits = host_alone;

	(void)state;
	waits.trainer = 10;
	waits.loaders = 99;
	here.step = -1;
	train(rules, 60, &waits);
	train(rules, 20, &host_alone);
	here.step = 1;
	text = found(rules);
	assert_string_equal(text, "");
	assert_true(fabs(judged - 19) < 1e-9);
}

static void of_a_few_samples_nothing_is_said(void **state)
{
	for (int more = 0; more <= 1; more++) {
		AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
		AUTO(auto_free) char *text = NULL;

		(void)state;
		train(rules, USAGE_WARM + USAGE_LEAST + more, &healthy);
		text = found(rules);
		assert_string_equal(text, more ? "" : "-");
	}
}

static void nodes_and_attempts_are_told_apart(void **state)
{
	AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
	AUTO(auto_free) char *text = NULL;
	struct moment idles = healthy;

	(void)state;
	idles.busy[0] = 1;
	for (here.attempt = 1; here.attempt <= 2; here.attempt++)
		for (here.node = 0; here.node < 3; here.node++) {
			here.at_ms = 1700000000000 + here.attempt * 100000;
			/* Each attempt alone has too few of them. */
			train(rules, USAGE_WARM + 5, here.node == 1 ? &idles : &healthy);
		}
	here.attempt = 1;
	here.node = 0;
	text = found(rules);
	assert_string_equal(text, "idle core@1");
	assert_true(fabs(judged - (3 * 2 * 4)) < 1e-9);
}

static void half_of_the_time_is_needed(void **state)
{
	struct moment waits = host_alone;

	(void)state;
	waits.trainer = 10;
	waits.loaders = 99;
	for (int seconds = 19; seconds <= 20; seconds++) {
		AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
		AUTO(auto_free) char *text = NULL;

		train(rules, USAGE_WARM, &host_alone);
		train(rules, seconds, &waits);
		train(rules, 40 - seconds + 1, &host_alone);
		text = found(rules);
		assert_string_equal(text, seconds == 20 ? "loader-bound@0" : "");
	}
}

/* Tools tell less often than the host is read. */
static void figures_of_devices_hold_for_a_while(void **state)
{
	struct moment waits = healthy, between = host_alone;

	(void)state;
	waits.trainer = between.trainer = 10;
	waits.loaders = between.loaders = 99;
	waits.busy[0] = waits.busy[1] = waits.busy[2] = 95;
	for (int pause = 5; pause <= 60; pause += 55) {
		AUTO(usage_rules_freep) struct usage_rules *rules = usage_rules_new(true);
		AUTO(auto_free) char *text = NULL;

		for (int i = 0; i < 3; i++) {
			train(rules, 1, &waits);
			train(rules, pause, &between);
		}
		text = found(rules);
		/* Devices that were busy a minute ago say nothing, in either direction. */
		assert_string_equal(text, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_healthy_has_no_name),
		cmocka_unit_test(each_bottleneck_is_named),
		cmocka_unit_test(warm_up_and_the_last_sample_are_not_judged),
		cmocka_unit_test(each_start_of_an_attempt_has_a_warm_up),
		cmocka_unit_test(without_steps_the_first_minute_is_not_judged),
		cmocka_unit_test(of_a_few_samples_nothing_is_said),
		cmocka_unit_test(nodes_and_attempts_are_told_apart),
		cmocka_unit_test(half_of_the_time_is_needed),
		cmocka_unit_test(figures_of_devices_hold_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
