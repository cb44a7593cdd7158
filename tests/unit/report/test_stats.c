/* The promises of jobs/report/run_tally.h and jobs/report/stats.h: what counts, and figures that
 * were computed elsewhere. */
#include "jobs/report/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/report/proportion.h"
#include "jobs/report/run_tally.h"
#include "jobs/report/status.h"

static bool is_near(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

/* ---- a run ---- */

static struct event at(enum event_kind kind, int64_t second)
{
	return (struct event){ .kind = kind, .at = { 1795000000000 + second * 1000 } };
}

static struct status *begin(const char *plan_text)
{
	AUTO(err_freep) struct err *err = NULL;
	struct status *status = status_new("r");
	struct event ev = at(EV_RUN_CREATED, 0);
	json_auto_t *plan = NULL;

	assert_int_equal(js_parse(plan_text, strlen(plan_text), "plan", &plan, &err), 0);
	EVENT_SET_STR(&ev, name, "job");
	EVENT_SET_STR(&ev, engine, "batch");
	EVENT_SET(&ev, plan, plan);
	status_add(status, &ev);
	return status;
}

static void begin_attempt(struct status *status, int64_t number, int64_t second)
{
	struct event ev = at(EV_ATTEMPT_INTENDED, second);

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, number);
	status_add(status, &ev);
	ev = at(EV_ATTEMPT_CLAIMED, second);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, number);
	status_add(status, &ev);
}

static void end_attempt(struct status *status, int64_t number, int64_t second,
			enum failure_class class, int64_t node, const char *hosts_text)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event ev = at(EV_ATTEMPT_ENDED, second);
	json_auto_t *hosts = NULL;

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, number);
	EVENT_SET(&ev, class, class);
	EVENT_SET(&ev, node, 0); /* ended first, because of the cause on another */
	EVENT_SET(&ev, cause_node, node);
	if (hosts_text) {
		assert_int_equal(js_parse(hosts_text, strlen(hosts_text), "hosts", &hosts, &err),
				 0);
		EVENT_SET(&ev, hosts, hosts);
	}
	status_add(status, &ev);
}

static void retry(struct status *status, int64_t second, enum action action)
{
	struct event ev = at(EV_RETRY_SCHEDULED, second);

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, action, action);
	status_add(status, &ev);
}

static void end_run(struct status *status, int64_t second, enum outcome state, int64_t code)
{
	struct event ev = at(EV_RUN_ENDED, second);

	EVENT_SET(&ev, state, state);
	EVENT_SET(&ev, exit_code, code);
	status_add(status, &ev);
}

static int64_t deep_int(const json_t *tally, const char *path)
{
	return json_integer_value(js_path(tally, path));
}

#define PLAN "{\"nodes\":2,\"instance\":{\"type\":\"trn1.32xlarge\"},\"limits\":{\"price\":10}}"

static struct status *failed_twice(void)
{
	struct status *status = begin(PLAN);

	begin_attempt(status, 1, 10);
	end_attempt(status, 1, 110, CLASS_HARDWARE_NODE, 1, "[\"a\",\"b\"]");
	retry(status, 111, ACTION_EXCLUDE);
	begin_attempt(status, 2, 120);
	end_attempt(status, 2, 170, CLASS_USER_CODE, 0, "[\"a\",\"c\"]");
	return status;
}

static void a_tally_has_failures_with_what_followed_and_machines(void **state)
{
	AUTO(status_freep) struct status *status = failed_twice();
	json_auto_t *tally = NULL;

	(void)state;
	end_run(status, 171, OUTCOME_FAILED, 1);
	tally = status_tally(status, at(EV_RUN_ENDED, 171).at);
	assert_string_equal(js_str(tally, "instance"), "trn1.32xlarge");
	assert_int_equal(js_int(tally, "attempts", 0), 2);
	assert_int_equal(deep_int(tally, "failures.hardware-node.attempts"), 1);
	assert_int_equal(deep_int(tally, "failures.hardware-node.exclude"), 1);
	assert_int_equal(deep_int(tally, "failures.user-code.attempts"), 1);
	assert_int_equal(deep_int(tally, "failures.user-code.stop"), 1);
	assert_int_equal(deep_int(tally, "machines.a.ms"), 150000);
	assert_int_equal(deep_int(tally, "machines.a.attempts"), 2);
	assert_null(js_path(tally, "machines.a.failed"));
	assert_int_equal(deep_int(tally, "machines.b.ms"), 100000);
	assert_int_equal(deep_int(tally, "machines.b.failed"), 1);
	assert_null(js_path(tally, "machines.c.failed"));
}

/* A summary in the middle of a run goes on with it. */
static void a_kept_status_keeps_its_tally(void **state)
{
	AUTO(status_freep) struct status *status = failed_twice(), *again = NULL;
	AUTO(sb_release) struct sb bytes = SB_INIT;
	json_auto_t *tally = NULL, *want = NULL;

	(void)state;
	status_keep(status, &bytes);
	again = status_from_kept(bytes.text, bytes.len);
	assert_non_null(again);
	end_run(status, 171, OUTCOME_FAILED, 1);
	end_run(again, 171, OUTCOME_FAILED, 1);
	want = status_tally(status, at(EV_RUN_ENDED, 171).at);
	tally = status_tally(again, at(EV_RUN_ENDED, 171).at);
	assert_true(json_equal(tally, want));
}

/* A run on a machine after it has failed there cannot count again. */
static void a_machine_is_exposed_up_to_the_first_failure_of_a_run(void **state)
{
	AUTO(status_freep) struct status *status = begin("{}");
	json_auto_t *tally = NULL;

	(void)state;
	begin_attempt(status, 1, 0);
	end_attempt(status, 1, 7, CLASS_SPOT, 0, "[\"a\"]");
	begin_attempt(status, 2, 10);
	end_attempt(status, 2, 30, CLASS_COMM, 0, "[\"a\"]");
	begin_attempt(status, 3, 40);
	end_attempt(status, 3, 90, CLASS_COMM, 0, "[\"a\"]");
	tally = status_tally(status, at(EV_RUN_ENDED, 90).at);
	assert_int_equal(deep_int(tally, "machines.a.ms"), 77000);
	assert_int_equal(deep_int(tally, "machines.a.exposed"), 27000);
	assert_int_equal(deep_int(tally, "machines.a.failed"), 2);
}

static void names_of_ranks_are_no_machines(void **state)
{
	AUTO(status_freep) struct status *status = begin("{\"nodes\":4}");
	json_auto_t *tally = NULL;

	(void)state;
	begin_attempt(status, 1, 10);
	end_attempt(status, 1, 20, CLASS_COMM, 0, "[\"algo-1\",\"algo-12\",\"\",\"algo-12x\"]");
	tally = status_tally(status, at(EV_RUN_ENDED, 20).at);
	assert_int_equal(json_object_size(json_object_get(tally, "machines")), 1);
	assert_non_null(js_path(tally, "machines.algo-12x"));
}

static void a_request_drains_the_attempt_under_way_only(void **state)
{
	AUTO(status_freep) struct status *status = begin("{}");
	json_auto_t *tally = NULL;
	struct event ev = at(EV_REQUEST_DRAIN, 5);

	(void)state;
	status_add(status, &ev);
	begin_attempt(status, 1, 10);
	end_attempt(status, 1, 20, CLASS_COMM, 0, NULL);
	begin_attempt(status, 2, 30);
	ev = at(EV_REQUEST_DRAIN, 35);
	status_add(status, &ev);
	end_attempt(status, 2, 40, CLASS_STOPPED, 0, NULL);
	tally = status_tally(status, at(EV_RUN_ENDED, 40).at);
	assert_int_equal(js_int(tally, "drained", 0), 1);
}

/* ---- many runs ---- */

static void add(struct stats *stats, const char *tally_text)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *tally = NULL;

	assert_int_equal(js_parse(tally_text, strlen(tally_text), "tally", &tally, &err), 0);
	stats_add(stats, tally);
}

static void stops_gates_and_limits_are_told_apart(void **state)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_ALL);
	json_auto_t *result = NULL;
	const json_t *all;

	(void)state;
	add(stats, "{\"state\":\"succeeded\",\"exit_code\":0}");
	add(stats, "{\"state\":\"succeeded\",\"exit_code\":0}");
	add(stats, "{\"state\":\"failed\",\"exit_code\":1}");
	add(stats, "{\"state\":\"refused\",\"exit_code\":4}");
	add(stats, "{\"state\":\"refused\",\"exit_code\":5}");
	add(stats, "{\"state\":\"refused\",\"exit_code\":5,\"limit\":\"deadline\"}");
	add(stats, "{\"state\":\"stopped\",\"exit_code\":6}");
	add(stats, "{}");
	add(stats, "{\"state\":\"failed\",\"exit_code\":1,\"debug\":true,\"attempts\":7}");
	result = stats_json(stats);
	all = json_array_get(result, 0);
	assert_int_equal(js_int(all, "runs", 0), 9);
	assert_int_equal(js_int(all, "debug", 0), 1);
	assert_int_equal(js_int(all, "attempts", -1), 0);
	assert_int_equal(js_int(all, "succeeded", 0), 2);
	assert_int_equal(js_int(all, "failed", 0), 1);
	assert_int_equal(js_int(all, "refused", 0), 1);
	assert_int_equal(js_int(all, "gate", 0), 1);
	assert_int_equal(js_int(all, "limit", 0), 1);
	assert_int_equal(js_int(all, "stopped", 0), 1);
	assert_int_equal(js_int(all, "going_on", 0), 1);
	assert_int_equal(deep_int(all, "success.of"), 4);
	assert_true(is_near(js_real(json_object_get(all, "success"), "rate", 0), 0.5));
}

/* Time and money of a debug run are spent, and are neither good nor free of failures. */
static void a_debug_run_counts_in_hours_alone(void **state)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_ALL);
	json_auto_t *result = NULL;
	const json_t *all;

	(void)state;
	add(stats, "{\"state\":\"succeeded\",\"exit_code\":0,\"nodes\":2,"
		   "\"held\":{\"steps\":30000,\"setup\":10000}}");
	add(stats, "{\"state\":\"failed\",\"exit_code\":1,\"debug\":true,\"nodes\":2,\"kept\":5000,"
		   "\"held\":{\"steps\":50000,\"setup\":20000},"
		   "\"failures\":{\"comm\":{\"attempts\":3}},"
		   "\"machines\":{\"a\":{\"ms\":1,\"failed\":1}}}");
	result = stats_json(stats);
	all = json_array_get(result, 0);
	assert_true(is_near(js_real(json_object_get(all, "held"), "total", 0), 220));
	assert_true(is_near(js_real(all, "goodput", 0), 0.75));
	assert_true(is_near(js_real(json_object_get(all, "mtbf"), "held", 0), 40));
	assert_int_equal(deep_int(all, "mtbf.interrupted"), 0);
	assert_int_equal(json_array_size(json_object_get(all, "failures")), 0);
	assert_int_equal(json_array_size(json_object_get(all, "nodes")), 0);
}

/* The run had two nodes at 10 USD an hour each: the price in a tally is that of all nodes. */
static void time_and_money_count_every_node(void **state)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_ALL);
	json_auto_t *result = NULL;
	const json_t *all, *cost;

	(void)state;
	add(stats, "{\"nodes\":2,\"price\":20,\"ms\":{\"queue\":1800000,\"steps\":3600000},"
		   "\"held\":{\"setup\":600000,\"steps\":3600000},\"kept\":600000,"
		   "\"billed\":1800000,\"failures\":{\"spot\":{\"attempts\":2,\"retry\":2},"
		   "\"user-code\":{\"attempts\":1,\"stop\":1}}}");
	add(stats, "{\"nodes\":1,\"ms\":{\"steps\":600000},\"held\":{\"steps\":600000}}");
	result = stats_json(stats);
	all = json_array_get(result, 0);
	cost = json_object_get(all, "cost");
	assert_true(is_near(js_real(json_object_get(all, "ledger"), "total", 0), 6000));
	assert_true(is_near(js_real(json_object_get(all, "held"), "steps", 0), 7800));
	assert_true(is_near(js_real(json_object_get(all, "held"), "total", 0), 9000));
	assert_true(is_near(js_real(all, "kept", 0), 1200));
	assert_true(is_near(js_real(all, "billable", 0), 3600));
	assert_true(is_near(js_real(all, "goodput", 0), 7800.0 / 10200));
	assert_true(is_near(js_real(cost, "accrued", 0), 20 * 4800.0 / 3600));
	assert_true(is_near(js_real(cost, "billable", 0), 10));
	assert_int_equal(js_int(cost, "without_price", -1), 1);
	/* A Spot machine that is taken back interrupts; a mistake in the code does not. */
	assert_int_equal(deep_int(all, "mtbf.interrupted"), 2);
	assert_true(is_near(js_real(json_object_get(all, "mtbf"), "seconds", 0), 4800.0 / 2));
}

static void groups_are_in_order_of_their_names(void **state)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_BY_MONTH);
	json_auto_t *result = NULL;

	(void)state;
	add(stats, "{\"created\":\"2026-11-02T10:00:00.000Z\"}");
	add(stats, "{\"created\":\"2026-02-02T10:00:00.000Z\"}");
	add(stats, "{\"created\":\"2026-11-30T10:00:00.000Z\"}");
	result = stats_json(stats);
	assert_int_equal(json_array_size(result), 2);
	assert_string_equal(js_str(json_array_get(result, 0), "group"), "2026-02");
	assert_string_equal(js_str(json_array_get(result, 1), "group"), "2026-11");
	assert_int_equal(js_int(json_array_get(result, 1), "runs", 0), 2);
}

/* ---- figures ---- */

/* Wanted: the formula in Python, with 40 digits. */
static void the_interval_is_wilsons(void **state)
{
	double low, high;

	(void)state;
	proportion_wilson(380, 396, &low, &high);
	assert_true(is_near(low, 0.93538159852024) && is_near(high, 0.97497922567642));
	proportion_wilson(0, 10, &low, &high);
	assert_true(is_near(low, 0) && is_near(high, 0.27753279986289));
	proportion_wilson(10, 10, &low, &high);
	assert_true(is_near(low, 0.72246720013711) && is_near(high, 1));
}

/* Wanted: the sum in Python, in fractions. */
static void the_tail_is_the_binomial_one(void **state)
{
	(void)state;
	assert_true(is_near(proportion_tail(5, 6, 0.1), 5.5e-05));
	assert_true(is_near(proportion_tail(0, 6, 0.1), 1));
	assert_true(is_near(proportion_tail(7, 6, 0.1), 0));
	assert_true(is_near(proportion_tail(6, 6, 1), 1));
	assert_true(is_near(proportion_tail(3, 200, 0.01), 0.32332130546434));
}

/* ---- machines ---- */

/* `runs` of an hour on each of `count` machines, of which those on machine 0 fail first. */
static json_t *nodes_after(int count, int runs, int failed_on_first, int failed_on_others)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_BY_NODE);

	for (int machine = 0; machine < count; machine++)
		for (int run = 0; run < runs; run++) {
			int failed = machine == 0 ? run < failed_on_first
						  : machine <= failed_on_others && run == 0;
			char text[200];

			snprintf(text, sizeof text,
				 "{\"machines\":{\"m%d\":{\"ms\":3600000,\"exposed\":3600000,"
				 "\"attempts\":3,\"failed\":"
				 "%d}}}",
				 machine, failed * 3);
			add(stats, text);
		}
	return stats_json(stats);
}

static void a_machine_that_fails_more_than_its_share_is_told(void **state)
{
	json_auto_t *rows = nodes_after(10, 10, 5, 1);
	const json_t *first = json_array_get(rows, 0);

	(void)state;
	assert_int_equal(json_array_size(rows), 10);
	assert_string_equal(js_str(first, "host"), "m0");
	/* Three attempts of one run are no three failures. */
	assert_int_equal(js_int(first, "failed_runs", 0), 5);
	assert_int_equal(js_int(first, "failures", 0), 15);
	assert_true(is_near(js_real(first, "share", 0), 0.1));
	assert_true(is_near(js_real(first, "expected", 0), 0.6));
	assert_true(is_near(js_real(first, "chance", 0), 5.5e-04));
	assert_true(js_bool(first, "suspect", false));
	assert_false(js_bool(json_array_get(rows, 1), "suspect", true));
}

static void one_failure_is_no_pattern_however_small_the_share(void **state)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_BY_NODE);
	json_auto_t *rows = NULL;

	(void)state;
	for (int run = 0; run < 2000; run++)
		add(stats,
		    "{\"machines\":{\"old\":{\"ms\":3600000,\"exposed\":3600000,\"attempts\":1}}}");
	add(stats,
	    "{\"machines\":{\"new\":{\"ms\":1000,\"exposed\":1000,\"attempts\":1,\"failed\":1}}}");
	rows = stats_json(stats);
	assert_string_equal(js_str(json_array_get(rows, 0), "host"), "new");
	assert_true(js_real(json_array_get(rows, 0), "chance", 1) < 0.01);
	assert_false(js_bool(json_array_get(rows, 0), "suspect", true));
}

static void failures_by_share_are_no_pattern(void **state)
{
	json_auto_t *even = nodes_after(10, 10, 2, 9), *one = nodes_after(1, 10, 10, 0);

	(void)state;
	assert_false(js_bool(json_array_get(even, 0), "suspect", true));
	assert_false(js_bool(json_array_get(one, 0), "suspect", true));
}

/* xorshift64*, in [0, 1). */
static double draw(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (double)((*seed * 0x2545f4914f6cdd1du) >> 11) / 9007199254740992.0;
}

/* 100 runs on eight machines that fail by the hour, machine `sick` ten times as often (-1: none).
 * True if the rule names it; with none: any. */
static bool names_one(uint64_t *seed, int sick)
{
	AUTO(stats_freep) struct stats *stats = stats_new(STATS_BY_NODE);
	json_auto_t *rows = NULL;
	json_t *row;
	bool named = false;
	size_t i;

	for (int run = 0; run < 100; run++) {
		int machine = (int)(draw(seed) * 8);
		double hours = -5 * log(1 - draw(seed));
		double fails = -50 * log(1 - draw(seed)) / (machine == sick ? 10 : 1);
		bool failed = fails < hours;
		json_auto_t *tally = json_pack(
			"{s:{s:{s:I, s:I, s:i, s:i}}}", "machines",
			(const char *[]){ "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7" }[machine],
			"ms", (json_int_t)((failed ? fails : hours) * 3.6e6), "exposed",
			(json_int_t)((failed ? fails : hours) * 3.6e6), "attempts", 1, "failed",
			(int)failed);

		stats_add(stats, tally);
	}
	rows = stats_json(stats);
	json_array_foreach (rows, i, row)
		named |= js_bool(row, "suspect", false) && (sick < 0 || js_is(row, "host", "m0"));
	return named;
}

static void a_healthy_machine_is_named_in_one_of_a_hundred_states_at_most(void **state)
{
	uint64_t seed = 20261129;
	int healthy = 0, sick = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		healthy += names_one(&seed, -1);
		sick += names_one(&seed, 0);
	}
	assert_true(healthy <= 3);
	/* This shows that the rule can name one at all: ten failures are few to tell by. */
	assert_true(sick >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tally_has_failures_with_what_followed_and_machines),
		cmocka_unit_test(a_kept_status_keeps_its_tally),
		cmocka_unit_test(a_machine_is_exposed_up_to_the_first_failure_of_a_run),
		cmocka_unit_test(names_of_ranks_are_no_machines),
		cmocka_unit_test(a_request_drains_the_attempt_under_way_only),
		cmocka_unit_test(stops_gates_and_limits_are_told_apart),
		cmocka_unit_test(a_debug_run_counts_in_hours_alone),
		cmocka_unit_test(time_and_money_count_every_node),
		cmocka_unit_test(groups_are_in_order_of_their_names),
		cmocka_unit_test(the_interval_is_wilsons),
		cmocka_unit_test(the_tail_is_the_binomial_one),
		cmocka_unit_test(a_machine_that_fails_more_than_its_share_is_told),
		cmocka_unit_test(one_failure_is_no_pattern_however_small_the_share),
		cmocka_unit_test(failures_by_share_are_no_pattern),
		cmocka_unit_test(a_healthy_machine_is_named_in_one_of_a_hundred_states_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
