/* The promises of jobs/report/mode_comparison.h: what counts as a measurement, and what two of
 * them say. */
#include "jobs/report/mode_comparison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BEGIN INT64_C(1795000000000)

/* A deed of a run; times in seconds after its beginning. */
struct deed {
	const char *key, *engine, *host;
	bool jit;
	double price;
	int64_t nodes;
	int64_t trial_nodes, trial_from, trial_to, verified; /* trial_nodes 0: no phase 1 */
	int64_t from, first, to;                             /* of the training */
	int64_t first_step, last_step;
	int64_t graphs, hits;
	int64_t missed;   /* graphs that phase 1 did not reach */
	double late;      /* seconds of one graph that was compiled after the first step */
	int64_t attempts; /* of the training */
	int64_t epoch;
};

static const struct deed jit_deed = {
	.key = "k",
	.engine = "local",
	.host = "h",
	.jit = true,
	.nodes = 2,
	.price = 36,
	.from = 10,
	.first = 60,
	.to = 160,
	.first_step = 5,
	.last_step = 100,
	.graphs = 7,
	.attempts = 1,
	.epoch = 1,
};
/* 1 node x 40 s, then 2 nodes x 90 s. */
static const struct deed aot_deed = {
	.key = "k",
	.engine = "local",
	.host = "h",
	.nodes = 2,
	.price = 36,
	.trial_nodes = 1,
	.trial_from = 10,
	.trial_to = 50,
	.verified = 52,
	.from = 70,
	.first = 75,
	.to = 160,
	.first_step = 5,
	.last_step = 100,
	.graphs = 7,
	.attempts = 1,
	.epoch = 1,
};

static void add(struct mode_run *run, struct event *ev, enum event_kind kind, int64_t second)
{
	ev->kind = kind;
	ev->at.ms = BEGIN + second * 1000;
	mode_run_add(run, ev);
	*ev = (struct event){ 0 };
}

static void add_attempt(struct mode_run *run, const struct deed *deed, enum phase phase,
			int64_t nodes, int64_t from, int64_t to)
{
	json_auto_t *late =
		json_pack("[{s:s, s:f}, {s:s, s:i, s:f}]", "graph", "early", "seconds", 40.0,
			  "graph", "late", "after_step", 5, "seconds", deed->late);
	struct event ev = { 0 };

	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, nodes, nodes);
	add(run, &ev, EV_ATTEMPT_INTENDED, from - 5);
	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, since, BEGIN + from * 1000);
	EVENT_SET_STR(&ev, host, deed->host);
	add(run, &ev, EV_ATTEMPT_CLAIMED, from + 1);
	if (phase == PHASE_TRAIN) {
		if (deed->first_step >= 0)
			EVENT_SET(&ev, step, deed->first_step);
		EVENT_SET(&ev, since, BEGIN + deed->first * 1000);
		add(run, &ev, EV_TRAIN_PROGRESS, deed->first + 3);
		if (deed->last_step >= 0)
			EVENT_SET(&ev, step, deed->last_step);
		add(run, &ev, EV_TRAIN_PROGRESS, to);
		EVENT_SET(&ev, graphs, deed->jit ? deed->graphs : deed->missed);
		EVENT_SET(&ev, hits, deed->jit ? deed->hits : 7);
		EVENT_SET(&ev, late, late);
		add(run, &ev, EV_JIT_COMPILED, to);
	}
	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, finished, BEGIN + to * 1000);
	add(run, &ev, EV_ATTEMPT_ENDED, to + 2);
}

static struct mode_run *run_of(const char *id, const struct deed *deed)
{
	json_auto_t *plan = json_pack("{s:i, s:{s:s, s:s}, s:{s:f}}", "nodes", (int)deed->nodes,
				      "compile", "mode", deed->jit ? "jit" : "aot", "graph_key",
				      deed->key, "limits", "price", deed->price);
	struct mode_run *run = mode_run_new(id);
	struct event ev = { 0 };

	EVENT_SET_STR(&ev, name, "job");
	EVENT_SET_STR(&ev, engine, deed->engine);
	EVENT_SET(&ev, plan, plan);
	add(run, &ev, EV_RUN_CREATED, 0);
	for (int64_t epoch = 1; epoch <= deed->epoch; epoch++) {
		EVENT_SET(&ev, epoch, epoch);
		add(run, &ev, EV_DRIVER_TOOK_OVER, 0);
	}
	if (deed->trial_nodes > 0) {
		add_attempt(run, deed, PHASE_PRECOMPILE, deed->trial_nodes, deed->trial_from,
			    deed->trial_to);
		EVENT_SET(&ev, complete, true);
		EVENT_SET(&ev, graphs, deed->graphs + deed->hits);
		EVENT_SET(&ev, compiled, deed->graphs);
		EVENT_SET(&ev, hits, deed->hits);
		add(run, &ev, EV_CACHE_VERIFIED, deed->verified);
	}
	for (int64_t i = 0; i < deed->attempts; i++)
		add_attempt(run, deed, PHASE_TRAIN, deed->nodes, deed->from, deed->to);
	EVENT_SET(&ev, state, OUTCOME_SUCCEEDED);
	add(run, &ev, EV_RUN_ENDED, deed->to + 3);
	return run;
}

static bool measures(const struct deed *deed)
{
	AUTO(mode_run_freep) struct mode_run *run = run_of("r", deed);
	enum mode mode;

	return mode_run_measures(run, &mode);
}

static json_t *compared(const struct deed *jit_did, const struct deed *aot_did)
{
	AUTO(mode_run_freep) struct mode_run *jit = run_of("j1", jit_did);
	AUTO(mode_run_freep) struct mode_run *aot = run_of("a1", aot_did);

	assert_true(mode_runs_match(jit, aot));
	return mode_comparison_json(jit, aot);
}

static double figure(const json_t *modes, const char *path, const char *name)
{
	return js_real(js_path(modes, path), name, -1);
}

static void node_seconds_of_each_phase_on_its_own_nodes_are_compared(void **state)
{
	json_auto_t *modes = compared(&jit_deed, &aot_deed);

	(void)state;
	assert_string_equal(js_str(json_object_get(modes, "jit"), "run"), "j1");
	assert_string_equal(js_str(json_object_get(modes, "aot"), "run"), "a1");
	assert_true(figure(modes, "jit.start", "node_seconds") == 100);
	assert_true(figure(modes, "jit.end", "node_seconds") == 300);
	assert_true(figure(modes, "aot.precompile", "node_seconds") == 40);
	assert_true(figure(modes, "aot.start", "node_seconds") == 40 + 2 * 5);
	assert_true(figure(modes, "aot.end", "node_seconds") == 40 + 2 * 90);
	/* the verification holds no nodes and takes its time; the queue is not counted */
	assert_true(figure(modes, "aot", "verify_seconds") == 2);
	assert_true(figure(modes, "aot.end", "seconds") == 40 + 2 + 90);
	assert_true(figure(modes, "ratio", "start") == 2);
	assert_true(js_bool(modes, "pays", false));
}

static void a_start_that_was_not_all_warm_is_called_so(void **state)
{
	struct deed late = aot_deed;
	json_auto_t *modes = NULL, *warm = compared(&jit_deed, &aot_deed);

	(void)state;
	late.missed = 3;
	modes = compared(&jit_deed, &late);
	assert_int_equal(js_int(json_object_get(modes, "aot"), "late_graphs", 0), 3);
	assert_null(js_path(modes, "jit.late_graphs"));
	assert_null(js_path(warm, "aot.late_graphs"));
}

static void a_known_price_makes_it_a_cost(void **state)
{
	struct deed free_of_charge = jit_deed;
	json_auto_t *modes = NULL;

	(void)state;
	free_of_charge.price = 0;
	modes = compared(&free_of_charge, &aot_deed);
	assert_null(js_path(modes, "jit.end.cost"));
	assert_true(figure(modes, "aot.end", "cost") == 2.2); /* 220 s at 36 an hour */
}

/* The time of the steps, which the mode does not change, decides nothing. */
static void it_is_judged_by_the_start_and_what_was_compiled_later(void **state)
{
	struct deed slow = jit_deed;
	json_auto_t *modes = NULL, *with_late = NULL;

	(void)state;
	slow.first = 30; /* 40 node-seconds beside 50 */
	slow.to = 1000;
	modes = compared(&slow, &aot_deed);
	assert_true(figure(modes, "ratio", "end") > 1);
	assert_true(json_is_false(json_object_get(modes, "pays")));
	slow.late = 10;
	with_late = compared(&slow, &aot_deed);
	assert_true(figure(with_late, "jit.start", "node_seconds") == 40 + 2 * 10);
	assert_true(figure(with_late, "jit.start", "late_seconds") == 10);
	assert_true(js_bool(with_late, "pays", false));
	assert_string_equal(js_str(with_late, "judged_by"), "start");
}

static void it_is_said_when_precompiling_does_not_pay(void **state)
{
	struct deed slow = aot_deed;
	json_auto_t *modes = NULL;

	(void)state;
	slow.trial_to = slow.verified = 200;
	slow.from += 200;
	slow.first += 200;
	slow.to += 200;
	modes = compared(&jit_deed, &slow);
	assert_true(figure(modes, "ratio", "end") < 1);
	assert_true(json_is_false(json_object_get(modes, "pays")));
}

static void what_is_hardly_a_difference_is_none(void **state)
{
	struct deed alike = jit_deed;
	json_auto_t *modes = NULL;

	(void)state;
	alike.first = alike.from + 25; /* 50 node-seconds each */
	modes = compared(&alike, &aot_deed);
	assert_null(json_object_get(modes, "pays"));
}

static void other_steps_are_not_compared(void **state)
{
	struct deed longer = jit_deed;
	json_auto_t *modes = NULL;

	(void)state;
	longer.last_step = 200;
	modes = compared(&longer, &aot_deed);
	assert_null(js_path(modes, "ratio.end"));
	assert_non_null(js_path(modes, "ratio.start"));
	assert_true(js_bool(modes, "pays", false)); /* by what is left */
}

static void without_steps_it_is_judged_by_the_end(void **state)
{
	struct deed jit = jit_deed, aot = aot_deed;
	json_auto_t *modes = NULL;

	(void)state;
	jit.first_step = aot.first_step = jit.last_step = aot.last_step = -1;
	modes = compared(&jit, &aot);
	assert_null(js_path(modes, "ratio.start"));
	assert_string_equal(js_str(modes, "judged_by"), "end");
	assert_true(js_bool(modes, "pays", false));
}

static void only_a_cold_start_in_one_go_is_a_measurement(void **state)
{
	struct deed deed = jit_deed;

	(void)state;
	assert_true(measures(&jit_deed));
	assert_true(measures(&aot_deed));
	deed.hits = 1; /* of graphs that somebody had compiled before */
	assert_false(measures(&deed));
	deed = jit_deed;
	deed.graphs = 0;
	assert_false(measures(&deed));
	deed = jit_deed;
	deed.attempts = 2;
	assert_false(measures(&deed));
	deed = jit_deed;
	deed.epoch = 2;
	assert_false(measures(&deed));
	deed = aot_deed;
	deed.hits = 3;
	assert_false(measures(&deed));
	deed = aot_deed;
	deed.trial_nodes = 0; /* a warm start: no phase 1 */
	assert_false(measures(&deed));
}

static bool match(const struct deed *one, const struct deed *two)
{
	AUTO(mode_run_freep) struct mode_run *jit = run_of("j", one);
	AUTO(mode_run_freep) struct mode_run *aot = run_of("a", two);

	return mode_runs_match(jit, aot);
}

static void only_like_is_compared_with_like(void **state)
{
	struct deed other = jit_deed;

	(void)state;
	assert_true(match(&jit_deed, &aot_deed));
	other.key = "another";
	assert_false(match(&other, &aot_deed));
	other = jit_deed;
	other.host = "another";
	assert_false(match(&other, &aot_deed));
	other = jit_deed;
	other.engine = "batch";
	assert_false(match(&other, &aot_deed));
}

static void one_alone_is_shown_without_a_ratio(void **state)
{
	AUTO(mode_run_freep) struct mode_run *run = run_of("a1", &aot_deed);
	json_auto_t *modes = mode_comparison_json(NULL, run);

	(void)state;
	assert_non_null(json_object_get(modes, "aot"));
	assert_null(json_object_get(modes, "jit"));
	assert_null(json_object_get(modes, "ratio"));
	assert_null(json_object_get(modes, "pays"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_seconds_of_each_phase_on_its_own_nodes_are_compared),
		cmocka_unit_test(a_start_that_was_not_all_warm_is_called_so),
		cmocka_unit_test(a_known_price_makes_it_a_cost),
		cmocka_unit_test(it_is_judged_by_the_start_and_what_was_compiled_later),
		cmocka_unit_test(without_steps_it_is_judged_by_the_end),
		cmocka_unit_test(it_is_said_when_precompiling_does_not_pay),
		cmocka_unit_test(what_is_hardly_a_difference_is_none),
		cmocka_unit_test(other_steps_are_not_compared),
		cmocka_unit_test(only_a_cold_start_in_one_go_is_a_measurement),
		cmocka_unit_test(only_like_is_compared_with_like),
		cmocka_unit_test(one_alone_is_shown_without_a_ratio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
