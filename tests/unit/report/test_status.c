/* The promises of jobs/report/status.h: the shape that programs rely on. */
#include "jobs/report/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct event at(enum event_kind kind, int64_t second)
{
	return (struct event){ .kind = kind, .at = { 1795000000000 + second * 1000 } };
}

static void add_attempt(struct status *status, enum phase phase, int64_t attempt, int64_t from,
			int64_t to, enum failure_class class)
{
	struct event ev = at(EV_ATTEMPT_INTENDED, from);

	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET_STR(&ev, job, "stk-r-train-1");
	EVENT_SET_STR(&ev, nonce, "n");
	status_add(status, &ev);
	ev = at(EV_ATTEMPT_CLAIMED, from);
	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	status_add(status, &ev);
	ev = at(EV_ATTEMPT_ENDED, to);
	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, class, class);
	EVENT_SET(&ev, exit, class == CLASS_NONE ? 0 : 1);
	EVENT_SET_STR(&ev, evidence, "ValueError: no");
	status_add(status, &ev);
}

static bool is_near(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

/* Intended, and by the service's word: machines from `held` to `released`. */
static void add_billed(struct status *status, int64_t intended, int64_t held, int64_t claimed,
		       int64_t released, int64_t ended, int64_t billable_ms)
{
	struct event ev = at(EV_ATTEMPT_INTENDED, intended);

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET_STR(&ev, job, "stk-r-train-1");
	EVENT_SET_STR(&ev, nonce, "n");
	status_add(status, &ev);
	ev = at(EV_ATTEMPT_CLAIMED, claimed + 3);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, since, at(EV_ATTEMPT_CLAIMED, claimed).at.ms);
	EVENT_SET(&ev, held, at(EV_ATTEMPT_CLAIMED, held).at.ms);
	status_add(status, &ev);
	ev = at(EV_ATTEMPT_ENDED, ended);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, class, CLASS_NONE);
	EVENT_SET(&ev, released, at(EV_ATTEMPT_ENDED, released).at.ms);
	EVENT_SET(&ev, billable, billable_ms);
	status_add(status, &ev);
}

static struct status *begun(json_t *plan)
{
	struct status *status = status_new("r1");
	struct event ev = at(EV_RUN_CREATED, 0);

	EVENT_SET_STR(&ev, name, "job");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "0");
	EVENT_SET(&ev, seed, 1);
	status_add(status, &ev);
	return status;
}

static void a_fresh_run_is_running_and_knows_nothing_else(void **state)
{
	json_auto_t *plan = json_object(), *result = NULL;
	AUTO(status_freep) struct status *status = begun(plan);

	(void)state;
	result = status_json(status, (struct utc){ 1795000001000 }, true);
	assert_string_equal(js_str(result, "run"), "r1");
	assert_string_equal(js_str(result, "state"), "running");
	assert_int_equal(json_array_size(json_object_get(result, "attempts")), 0);
	assert_null(json_object_get(result, "exit_code"));
	assert_null(json_object_get(result, "jit"));
	assert_null(json_object_get(result, "cost"));
}

static void a_failed_attempt_tells_its_class_evidence_and_what_followed(void **state)
{
	json_auto_t *plan = json_object(), *result = NULL;
	AUTO(status_freep) struct status *status = begun(plan);
	struct event ev = at(EV_RUN_ENDED, 40);
	const json_t *attempt;

	(void)state;
	add_attempt(status, PHASE_TRAIN, 1, 10, 35, CLASS_USER_CODE);
	EVENT_SET(&ev, state, OUTCOME_FAILED);
	EVENT_SET(&ev, exit_code, 1);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET_STR(&ev, hint, "mend it");
	status_add(status, &ev);
	result = status_json(status, ev.at, true);
	attempt = json_array_get(json_object_get(result, "attempts"), 0);
	assert_string_equal(js_str(attempt, "state"), "ended");
	assert_string_equal(js_str(attempt, "class"), "user-code");
	assert_string_equal(js_str(attempt, "evidence"), "ValueError: no");
	assert_string_equal(js_str(attempt, "action"), "stop");
	assert_true(js_real(attempt, "seconds", 0) == 25.0);
	assert_string_equal(js_str(result, "state"), "failed");
	assert_string_equal(js_str(result, "phase"), "train");
	assert_string_equal(js_str(result, "hint"), "mend it");
	assert_int_equal(js_int(result, "exit_code", -1), 1);
	assert_true(json_is_null(json_object_get(result, "driver")));
}

static void a_backoff_waits_and_a_list_has_no_attempts(void **state)
{
	json_auto_t *plan = json_object(), *waiting = NULL, *later = NULL;
	AUTO(status_freep) struct status *status = begun(plan);
	struct event ev = at(EV_RETRY_SCHEDULED, 36);

	(void)state;
	add_attempt(status, PHASE_TRAIN, 1, 10, 35, CLASS_UNKNOWN);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, until, ev.at.ms + 5000);
	EVENT_SET(&ev, action, ACTION_RETRY);
	status_add(status, &ev);
	waiting = status_json(status, ev.at, false);
	assert_string_equal(js_str(waiting, "state"), "waiting");
	assert_string_equal(js_str(waiting, "waiting_for"), "the next attempt");
	assert_null(json_object_get(waiting, "attempts"));
	later = status_json(status, (struct utc){ ev.at.ms + 5001 }, true);
	assert_string_equal(js_str(later, "state"), "running");
}

static void the_cost_is_that_of_the_time_attempts_ran(void **state)
{
	json_auto_t *plan = json_pack("{s:{s:f}, s:i}", "limits", "price", 36.0, "nodes", 2);
	AUTO(status_freep) struct status *status = begun(plan);
	json_auto_t *result = NULL;

	(void)state;
	add_attempt(status, PHASE_PRECOMPILE, 1, 0, 50, CLASS_NONE);
	add_attempt(status, PHASE_TRAIN, 1, 100, 150, CLASS_NONE);
	result = status_json(status, (struct utc){ 1795000999000 }, true);
	/* 100 s at 72 USD an hour for both nodes */
	assert_true(js_real(json_object_get(result, "cost"), "accrued", 0) == 2.0);
}

/* 72 USD an hour for both nodes: 2 cents a second. */
static void what_is_billed_and_kept_adds_up(void **state)
{
	json_auto_t *plan = json_pack("{s:{s:f}, s:i}", "limits", "price", 36.0, "nodes", 2);
	AUTO(status_freep) struct status *status = begun(plan);
	struct event ev = at(EV_ATTEMPT_KEPT, 60);
	json_auto_t *between = NULL, *result = NULL;
	const json_t *cost, *bins;
	double sum = 0;
	const char *bin;
	json_t *value;

	(void)state;
	add_attempt(status, PHASE_PRECOMPILE, 1, 0, 50, CLASS_NONE);
	between = status_json(status, (struct utc){ 1795000999000 }, true);
	assert_null(js_path(between, "cost.billable"));
	assert_null(js_path(between, "cost.kept"));
	EVENT_SET(&ev, phase, PHASE_PRECOMPILE);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, seconds, 25.0);
	status_add(status, &ev);
	status_add(status, &ev); /* a driver that died had told it */
	add_billed(status, 80, 90, 100, 155, 170, 30000);
	result = status_json(status, (struct utc){ 1795000999000 }, true);
	cost = json_object_get(result, "cost");
	bins = json_object_get(cost, "bins");
	/* held: 50 s, and 65 s from 90 to 155; kept 25 s; billed: 50 s of nobody's word, 30 s */
	assert_true(is_near(js_real(cost, "accrued", 0), 0.02 * (50 + 65 + 25)));
	assert_true(is_near(js_real(cost, "billable", 0), 0.02 * (50 + 30 + 25)));
	assert_true(is_near(js_real(cost, "kept", 0), 0.02 * 25));
	assert_true(is_near(js_real(bins, "pull", 0), 0.02 * 10));
	json_object_foreach ((json_t *)(uintptr_t)bins, bin, value)
		sum += json_number_value(value);
	assert_true(is_near(sum + js_real(cost, "kept", 0), js_real(cost, "accrued", 0)));
	assert_true(js_real(cost, "per_hour", 0) == 72);
	assert_true(js_real(json_array_get(json_object_get(result, "attempts"), 1), "billable",
			    0) == 30);
}

static void a_run_that_waits_for_another_one_says_for_whom(void **state)
{
	json_auto_t *plan = json_object(), *waits = NULL, *goes_on = NULL;
	AUTO(status_freep) struct status *status = begun(plan);
	struct event ev = at(EV_CACHE_WAITING, 5);

	(void)state;
	EVENT_SET_STR(&ev, graph_key, "0123");
	EVENT_SET_STR(&ev, holder, "other");
	EVENT_SET_STR(&ev, host, "elsewhere");
	EVENT_SET(&ev, since, 1795000000123);
	status_add(status, &ev);
	waits = status_json(status, (struct utc){ 1795000010000 }, true);
	assert_string_equal(js_str(waits, "state"), "waiting");
	assert_string_equal(js_str(waits, "waiting_for"),
			    "run other on elsewhere, which precompiles the same graphs");
	assert_string_equal(js_str(js_path(waits, "cache.waits_for"), "run"), "other");
	assert_string_equal(js_str(js_path(waits, "cache.waits_for"), "since"),
			    "2026-11-18T11:06:40.123Z");
	ev = at(EV_CACHE_CLAIMED, 20);
	EVENT_SET_STR(&ev, graph_key, "0123");
	status_add(status, &ev);
	goes_on = status_json(status, (struct utc){ 1795000021000 }, true);
	assert_string_equal(js_str(goes_on, "state"), "running");
	assert_null(js_path(goes_on, "cache.waits_for"));
}

static void add_jit(struct status *status, int64_t attempt, const char *late, int64_t graphs,
		    double seconds)
{
	struct event ev = at(EV_JIT_COMPILED, 60 + attempt);
	json_auto_t *rows = NULL;
	struct err *err = NULL;

	assert_int_equal(js_parse(late, strlen(late), "late", &rows, &err), 0);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, graphs, graphs);
	EVENT_SET(&ev, seconds, seconds);
	EVENT_SET(&ev, cost, seconds / 50);
	EVENT_SET(&ev, late, rows);
	status_add(status, &ev);
}

static void graphs_compiled_in_training_are_those_of_all_attempts(void **state)
{
	json_auto_t *plan = json_pack("{s:{s:f}, s:i}", "limits", "price", 36.0, "nodes", 2);
	AUTO(status_freep) struct status *status = begun(plan);
	json_auto_t *result = NULL;
	const json_t *jit;

	(void)state;
	add_jit(status, 1, "[{\"graph\":\"a\"}]", 1, 10);
	/* it tells the sum of its attempt each time */
	add_jit(status, 1, "[{\"graph\":\"a\"},{\"graph\":\"b\",\"after_step\":5}]", 2, 30);
	/* b was not stored in time: the same graph, paid a second time */
	add_jit(status, 2, "[{\"graph\":\"b\",\"after_step\":5},{\"graph\":\"c\"}]", 2, 20);
	result = status_json(status, (struct utc){ 1795000999000 }, true);
	jit = json_object_get(result, "jit");
	assert_int_equal(js_int(jit, "graphs", -1), 3);
	assert_int_equal(json_array_size(json_object_get(jit, "late")), 3);
	assert_true(js_real(jit, "seconds", 0) == 50);
	assert_true(js_real(jit, "cost", 0) == 1); /* 50 s at 72 USD an hour for both nodes */
}

/* Trains up to a step, of 1000 in all, at two steps a second. */
static void train_to(struct status *status, int64_t attempt, int64_t second, int64_t step)
{
	struct event ev = at(EV_TRAIN_PROGRESS, second);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, step, step);
	EVENT_SET(&ev, of, 1000);
	EVENT_SET(&ev, rate, 2);
	EVENT_SET(&ev, eta, (double)(1000 - step) / 2);
	status_add(status, &ev);
}

static void begin_attempt(struct status *status, int64_t attempt, int64_t second)
{
	struct event ev = at(EV_ATTEMPT_INTENDED, second);

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET_STR(&ev, job, "stk-r-train-1");
	EVENT_SET_STR(&ev, nonce, "n");
	status_add(status, &ev);
	ev.kind = EV_ATTEMPT_CLAIMED;
	status_add(status, &ev);
}

static double estimated(const struct status *status, int64_t second)
{
	json_auto_t *result = status_json(status, at(EV_RUN_CREATED, second).at, false);

	return js_real(json_object_get(result, "cost"), "estimated", -1);
}

/* The forecast stands while no step is told, as that of the limits does. */
static void the_cost_at_the_end_is_one_from_step_to_step(void **state)
{
	json_auto_t *plan = json_pack("{s:{s:f}, s:i}", "limits", "price", 36.0, "nodes", 2);
	AUTO(status_freep) struct status *status = begun(plan);

	(void)state;
	begin_attempt(status, 1, 100);
	train_to(status, 1, 150, 100);
	/* 500 s at 0.02 USD a second */
	assert_true(is_near(estimated(status, 150), 0.02 * 500));
	assert_true(is_near(estimated(status, 450), 0.02 * 500));
	assert_true(is_near(estimated(status, 700), 0.02 * 600));
	train_to(status, 1, 160, 120);
	assert_true(is_near(estimated(status, 160), 0.02 * 500));
}

static void an_ended_attempt_forecasts_nothing(void **state)
{
	json_auto_t *plan = json_pack("{s:{s:f}, s:i}", "limits", "price", 36.0, "nodes", 2);
	AUTO(status_freep) struct status *status = begun(plan);
	json_auto_t *waiting = NULL;
	struct event ended;

	(void)state;
	begin_attempt(status, 1, 100);
	train_to(status, 1, 150, 100);
	ended = at(EV_ATTEMPT_ENDED, 160);
	EVENT_SET(&ended, phase, PHASE_TRAIN);
	EVENT_SET(&ended, attempt, 1);
	status_add(status, &ended);
	waiting = status_json(status, at(EV_RUN_CREATED, 170).at, false);
	assert_null(js_path(waiting, "progress.eta"));
	assert_null(js_path(waiting, "cost.estimated"));
	assert_true(js_real(js_path(waiting, "progress"), "rate", 0) == 2);
}

static void a_new_attempt_has_no_speed_yet(void **state)
{
	json_auto_t *plan = json_pack("{s:{s:f}, s:i}", "limits", "price", 36.0, "nodes", 2);
	AUTO(status_freep) struct status *status = begun(plan);
	json_auto_t *fresh = NULL, *again = NULL;

	(void)state;
	begin_attempt(status, 1, 100);
	train_to(status, 1, 150, 100);
	begin_attempt(status, 2, 200);
	fresh = status_json(status, at(EV_RUN_CREATED, 210).at, false);
	assert_null(js_path(fresh, "progress.rate"));
	assert_null(js_path(fresh, "progress.eta"));
	assert_null(js_path(fresh, "cost.estimated"));
	assert_int_equal(js_int(js_path(fresh, "progress"), "step", 0), 100);
	train_to(status, 2, 250, 101);
	again = status_json(status, at(EV_RUN_CREATED, 250).at, false);
	assert_true(js_real(js_path(again, "progress"), "rate", 0) == 2);
}

static void without_a_price_compiling_has_no_cost(void **state)
{
	json_auto_t *plan = json_object(), *result = NULL;
	AUTO(status_freep) struct status *status = begun(plan);
	struct event ev = at(EV_JIT_COMPILED, 60);

	(void)state;
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, graphs, 4);
	EVENT_SET(&ev, seconds, 2.5);
	status_add(status, &ev);
	result = status_json(status, ev.at, true);
	assert_int_equal(js_int(json_object_get(result, "jit"), "graphs", -1), 4);
	assert_null(js_path(result, "jit.cost"));
	assert_null(js_path(result, "jit.late"));
}

static void add_step(struct status *status, int64_t second, int64_t step, double rate)
{
	struct event ev = at(EV_TRAIN_PROGRESS, second);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, step, step);
	EVENT_SET(&ev, rate, rate);
	status_add(status, &ev);
}

/* Returns what does not come, and for how long; "": nothing is missed. */
static const char *missed(const struct status *status, int64_t second)
{
	static char words[64];
	json_auto_t *json = status_json(status, at(EV_RUN_CREATED, second).at, false);
	const json_t *stalled = json_object_get(json, "stalled");

	snprintf(words, sizeof words, "%s, %.0f s%s", js_str(stalled, "reason"),
		 js_real(stalled, "seconds", 0), js_str(stalled, "until") ? ", restart" : "");
	return stalled ? words : "";
}

static void steps_that_do_not_come_are_missed_by_their_own_measure(void **state)
{
	json_auto_t *plan = json_object();
	AUTO(status_freep) struct status *status = begun(plan);
	struct event ev;

	(void)state;
	ev = at(EV_DRIVER_TOOK_OVER, 1);
	EVENT_SET_STR(&ev, host, "h");
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, 1);
	status_add(status, &ev);
	ev = at(EV_ATTEMPT_INTENDED, 1);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	status_add(status, &ev);
	ev.kind = EV_ATTEMPT_CLAIMED;
	status_add(status, &ev);
	assert_string_equal(missed(status, 9000), ""); /* none was seen yet: it may take its time */
	add_step(status, 100, 5, 10);
	assert_string_equal(missed(status, 140), "");
	assert_string_equal(missed(status, 160), "no step, 60 s");
	/* A step takes 20 s: ten of them are missed. */
	add_step(status, 170, 6, 0.05);
	assert_string_equal(missed(status, 360), "");
	assert_string_equal(missed(status, 380), "no step, 210 s");
	/* The same step once more is none. */
	add_step(status, 375, 6, 0.05);
	assert_string_equal(missed(status, 380), "no step, 210 s");
	/* The agent knows better, until a step comes. */
	ev = at(EV_ATTEMPT_STALLED, 390);
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, since, at(EV_RUN_CREATED, 171).at.ms);
	EVENT_SET(&ev, until, at(EV_RUN_CREATED, 600).at.ms);
	EVENT_SET_STR(&ev, reason, "no step after a save began");
	status_add(status, &ev);
	assert_string_equal(missed(status, 391), "no step after a save began, 220 s, restart");
	add_step(status, 395, 7, 0.05);
	assert_string_equal(missed(status, 400), "");
	/* A training that is to end is not called stalled. */
	ev = at(EV_REQUEST_STOP, 410);
	status_add(status, &ev);
	assert_string_equal(missed(status, 9000), "");
}

/* A state that is kept and taken up again anywhere ends as if it had never been. */
static void a_state_that_was_kept_goes_on_as_the_same(void **state)
{
	enum { EVENTS = 8 };
	struct event all[EVENTS] = { at(EV_RUN_CREATED, 0),      at(EV_DRIVER_TOOK_OVER, 1),
				     at(EV_ATTEMPT_INTENDED, 2), at(EV_ATTEMPT_CLAIMED, 4),
				     at(EV_TRAIN_PROGRESS, 9),   at(EV_ATTEMPT_STALLED, 20),
				     at(EV_REQUEST_STOP, 30),    at(EV_DRIVER_WAITING, 31) };
	json_auto_t *plan = json_pack("{s:i, s:{s:f}, s:{s:i}}", "nodes", 2, "limits", "price", 1.1,
				      "checkpoint", "grace_ms", 5000);
	json_auto_t *metrics = json_pack("{s:f}", "loss", 0.1);

	(void)state;
	EVENT_SET_STR(&all[0], name, "n");
	EVENT_SET_STR(&all[0], engine, "local");
	EVENT_SET(&all[0], plan, plan);
	EVENT_SET_STR(&all[1], host, "h");
	for (int i = 2; i <= 3; i++) {
		EVENT_SET(&all[i], phase, PHASE_TRAIN);
		EVENT_SET(&all[i], attempt, 1);
		EVENT_SET_STR(&all[i], job, "stk-r-train-1");
	}
	EVENT_SET(&all[4], attempt, 1);
	EVENT_SET(&all[4], step, 7);
	EVENT_SET(&all[4], metrics, metrics);
	EVENT_SET(&all[5], since, all[4].at.ms);
	EVENT_SET_STR(&all[5], reason, "no step");
	EVENT_SET_STR(&all[6], reason, "wrong data");
	EVENT_SET_STR(&all[7], reason, "S3 is away");
	for (int kept = 0; kept <= EVENTS; kept++) {
		AUTO(status_freep) struct status *whole = status_new("r"), *first = status_new("r");
		AUTO(status_freep) struct status *again = NULL;
		AUTO(sb_release) struct sb bytes = SB_INIT;
		AUTO(auto_free) char *want = NULL, *found = NULL;
		json_auto_t *of_whole = NULL, *of_again = NULL;

		for (int i = 0; i < EVENTS; i++)
			status_add(whole, &all[i]);
		for (int i = 0; i < kept; i++)
			status_add(first, &all[i]);
		status_keep(first, &bytes);
		again = status_from_kept(bytes.text, bytes.len);
		assert_non_null(again);
		for (int i = kept; i < EVENTS; i++)
			status_add(again, &all[i]);
		of_whole = status_json(whole, at(EV_RUN_ENDED, 40).at, true);
		of_again = status_json(again, at(EV_RUN_ENDED, 40).at, true);
		want = js_line(of_whole);
		found = js_line(of_again);
		assert_string_equal(found, want);
		/* Bytes of another program are none. */
		bytes.text[12] ^= 1;
		assert_null(status_from_kept(bytes.text, bytes.len));
		assert_null(status_from_kept(bytes.text, 10));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_that_was_kept_goes_on_as_the_same),
		cmocka_unit_test(a_fresh_run_is_running_and_knows_nothing_else),
		cmocka_unit_test(a_failed_attempt_tells_its_class_evidence_and_what_followed),
		cmocka_unit_test(a_backoff_waits_and_a_list_has_no_attempts),
		cmocka_unit_test(a_run_that_waits_for_another_one_says_for_whom),
		cmocka_unit_test(the_cost_is_that_of_the_time_attempts_ran),
		cmocka_unit_test(what_is_billed_and_kept_adds_up),
		cmocka_unit_test(graphs_compiled_in_training_are_those_of_all_attempts),
		cmocka_unit_test(the_cost_at_the_end_is_one_from_step_to_step),
		cmocka_unit_test(an_ended_attempt_forecasts_nothing),
		cmocka_unit_test(a_new_attempt_has_no_speed_yet),
		cmocka_unit_test(without_a_price_compiling_has_no_cost),
		cmocka_unit_test(steps_that_do_not_come_are_missed_by_their_own_measure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
