/* Stages whose graphs are compiled ahead: one more attempt of phase 1 comes just before each, with
 * a cache, a proof, a claim and a budget of its own. */
#include "tests/unit/flow/stages.h"

static struct flow_policy ahead(void)
{
	struct flow_policy policy = all_stages();

	policy.stages[PHASE_EVALUATE].compiles = policy.stages[PHASE_INFER].compiles = true;
	return policy;
}

static struct event verified_key(int64_t attempt, const char *key)
{
	struct event ev = verified(attempt, true, "all there");

	EVENT_SET_STR(&ev, graph_key, key);
	return ev;
}

static void precompile(struct story *s, int64_t ms, int64_t attempt)
{
	run_attempt(s, ms, PHASE_PRECOMPILE, attempt);
	story_at(s, ms, ended(PHASE_PRECOMPILE, attempt, CLASS_NONE));
}

/* Up to the question whether the cache of the evaluation is warm. */
static void before_evaluation(struct story *s, const struct flow_policy *policy)
{
	trained(s, policy);
	story_at(s, MIN(3), candidate(CANDIDATE));
	assert_int_equal(s->flow.state, FLOW_PLANNED);
	assert_int_equal(s->flow.stage, PHASE_EVALUATE);
}

/* Up to the same question of the inference. */
static void before_inference(struct story *s, const struct flow_policy *policy)
{
	before_evaluation(s, policy);
	story_at(s, MIN(4), checked(CACHE_WARM));
	evaluate(s, 4);
	story_at(s, MIN(7), judged(CANDIDATE, 4, true));
	assert_int_equal(s->flow.state, FLOW_PLANNED);
	assert_int_equal(s->flow.stage, PHASE_INFER);
}

static void cold_stages_are_compiled_just_before_they_begin(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, 0, checked(CACHE_COLD));
	precompile(&s, MIN(1), 1);
	story_at(&s, MIN(2), verified_key(1, "of-train"));
	assert_string_equal(s.flow.lock_key, "of-train");
	run_attempt(&s, MIN(2), PHASE_TRAIN, 1);
	story_at(&s, MIN(3), checkpoint(1, 30, CANDIDATE));
	s.len = 0;
	story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_string_equal(s.flow.lock_key, "");
	assert_false(s.flow.cache_proved);
	story_at(&s, MIN(3), candidate(CANDIDATE));
	story_at(&s, MIN(4), checked(CACHE_COLD));
	precompile(&s, MIN(5), 2);
	story_at(&s, MIN(6), verified_key(2, "of-evaluate"));
	assert_string_equal(s.flow.lock_key, "of-evaluate");
	assert_true(s.flow.cache_proved);
	STORY(&s, "00:03 train -> planned\n"
		  "00:03   choose the candidate\n"
		  "00:03   check the cache\n"
		  "00:04 planned -> precompile\n"
		  "00:04   claim the graph key, and look again\n"
		  "00:04   record attempt.intended precompile 2\n"
		  "00:04 precompile 2 intended\n"
		  "00:04   submit stk-r1-precompile-2\n"
		  "00:05 precompile 2 submitted\n"
		  "00:05   watch precompile 2\n"
		  "00:05 precompile 2 running\n"
		  "00:05 precompile -> verify\n"
		  "00:05   verify the cache\n"
		  "00:06 verify -> evaluate\n"
		  "00:06   record attempt.intended evaluate 1\n"
		  "00:06 evaluate 1 intended\n"
		  "00:06   submit stk-r1-evaluate-1\n");
	evaluate(&s, 6);
	s.len = 0;
	story_at(&s, MIN(8), judged(CANDIDATE, 4, true));
	story_at(&s, MIN(8), checked(CACHE_COLD));
	assert_non_null(strstr(s.text, "00:08 gate -> planned\n"
				       "00:08   check the cache\n"
				       "00:08 planned -> precompile\n"
				       "00:08   claim the graph key, and look again\n"
				       "00:08   record attempt.intended precompile 3\n"));
	precompile(&s, MIN(9), 3);
	story_at(&s, MIN(10), verified_key(3, "of-infer"));
	assert_int_equal(s.flow.state, FLOW_INFER);
	story_replays(&s);
}

/* The intent names the stage, and has its nodes; that of the training names none. */
static void the_intent_names_the_stage(void **state)
{
	static const struct {
		enum phase stage;
		int nodes;
	} wanted[] = { { PHASE_TRAIN, 1 }, { PHASE_EVALUATE, 2 }, { PHASE_INFER, 3 } };
	struct flow_policy policy = ahead();
	struct story s;
	size_t found = 0;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, 0, checked(CACHE_COLD));
	precompile(&s, MIN(1), 1);
	story_at(&s, MIN(1), verified(1, true, ""));
	run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
	story_at(&s, MIN(2), ended(PHASE_TRAIN, 1, CLASS_NONE));
	story_at(&s, MIN(3), candidate(CANDIDATE));
	story_at(&s, MIN(3), checked(CACHE_COLD));
	precompile(&s, MIN(4), 2);
	story_at(&s, MIN(4), verified(2, true, ""));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 0));
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 1));
	story_at(&s, MIN(5), ended(PHASE_EVALUATE, 1, CLASS_NONE));
	story_at(&s, MIN(6), judged(CANDIDATE, 4, true));
	story_at(&s, MIN(6), checked(CACHE_COLD));
	for (int i = 0; i < s.journalled; i++) {
		const struct event *ev = &s.journal[i];

		if (ev->kind != EV_ATTEMPT_INTENDED || ev->phase != PHASE_PRECOMPILE)
			continue;
		assert_int_equal(ev->attempt, found + 1);
		assert_int_equal(EVENT_HAS(ev, stage), wanted[found].stage != PHASE_TRAIN);
		assert_true(!EVENT_HAS(ev, stage) || ev->stage == wanted[found].stage);
		assert_int_equal(ev->nodes, wanted[found].nodes);
		assert_false(EVENT_HAS(ev, tasks));
		found++;
	}
	assert_int_equal(found, 3);
}

static void a_warm_stage_needs_no_phase_1(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	before_inference(&s, &policy);
	story_at(&s, MIN(8), checked(CACHE_WARM));
	assert_int_equal(s.flow.state, FLOW_INFER);
	assert_int_equal(s.flow.attempts[PHASE_PRECOMPILE], 0);
	story_replays(&s);
}

/* Nothing is compiled for an inference that the gate refuses, nor without a candidate. */
static void what_ends_the_run_before_costs_no_phase_1(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	trained(&s, &policy);
	story_at(&s, MIN(3), candidate(NULL));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_RUN_FAILED);
	assert_true(s.flow.end_has_phase);
	assert_int_equal(s.flow.end_phase, PHASE_EVALUATE);
	policy.stages[PHASE_EVALUATE].compiles = false;
	evaluated(&s, &policy);
	story_at(&s, MIN(7), judged(CANDIDATE, 4, false));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_GATE);
	assert_int_equal(s.flow.attempts[PHASE_PRECOMPILE], 0);
}

/* The mode of the training does not matter. */
static void each_stage_decides_for_itself(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 8; bits++) {
		struct flow_policy policy = all_stages();
		struct story s;

		policy.compiles = (bits & 1) != 0;
		policy.stages[PHASE_EVALUATE].compiles = (bits & 2) != 0;
		policy.stages[PHASE_INFER].compiles = (bits & 4) != 0;
		story_begin(&s, &policy);
		story_at(&s, 0, checked(CACHE_COLD));
		assert_int_equal(s.flow.state, bits & 1 ? FLOW_PRECOMPILE : FLOW_TRAIN);
		trained(&s, &policy);
		story_at(&s, MIN(3), candidate(CANDIDATE));
		assert_int_equal(s.flow.state, bits & 2 ? FLOW_PLANNED : FLOW_EVALUATE);
		if (bits & 2)
			story_at(&s, MIN(3), checked(CACHE_WARM));
		assert_int_equal(s.flow.cache_proved, (bits & 2) != 0);
		run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
		story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 0));
		story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 1));
		story_at(&s, MIN(6), ended(PHASE_EVALUATE, 1, CLASS_NONE));
		story_at(&s, MIN(7), judged(CANDIDATE, 4, true));
		assert_int_equal(s.flow.state, bits & 4 ? FLOW_PLANNED : FLOW_INFER);
	}
}

/* Failures of the training's phase 1 are not those of a stage's, and an incomplete cache gets its
 * one repeat in each. */
static void each_has_a_budget_of_its_own(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;
	int64_t ms = MIN(4);

	(void)state;
	before_evaluation(&s, &policy);
	s.flow.budget[PHASE_PRECOMPILE].failures = 19;
	s.flow.incomplete_retried = true;
	story_at(&s, MIN(3), checked(CACHE_WARM));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 0));
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 1));
	story_at(&s, MIN(6), ended(PHASE_EVALUATE, 1, CLASS_NONE));
	story_at(&s, MIN(7), judged(CANDIDATE, 4, true));
	story_at(&s, MIN(7), checked(CACHE_COLD));
	assert_int_equal(s.flow.budget[PHASE_PRECOMPILE].failures, 0);
	run_attempt(&s, MIN(8), PHASE_PRECOMPILE, 1);
	story_at(&s, MIN(8), ended(PHASE_PRECOMPILE, 1, CLASS_COMM));
	story_wait(&s, MIN(20));
	run_attempt(&s, MIN(20), PHASE_PRECOMPILE, 2);
	story_at(&s, MIN(21), ended(PHASE_PRECOMPILE, 2, CLASS_NONE));
	story_at(&s, MIN(21), verified(2, false, "1 is missing"));
	assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
	precompile(&s, MIN(22), 3);
	story_at(&s, MIN(23), verified(3, false, "1 is missing"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_GATE);
	assert_string_equal(s.flow.end_reason, "the cache of infer is not complete: 1 is missing");
	/* The same failure too often. */
	before_evaluation(&s, &policy);
	story_at(&s, MIN(3), checked(CACHE_COLD));
	for (int64_t attempt = 1; s.flow.state == FLOW_PRECOMPILE && attempt < 9; attempt++) {
		run_attempt(&s, ms, PHASE_PRECOMPILE, attempt);
		story_at(&s, ms, ended(PHASE_PRECOMPILE, attempt, CLASS_COMM));
		story_wait(&s, ms += MIN(10));
	}
	assert_int_equal(s.flow.attempts[PHASE_PRECOMPILE], 5); /* retry.without_progress */
	assert_int_equal(s.flow.exit_code, EXIT_RUN_FAILED);
}

/* Another run has the key of the stage: it is waited for, and its cache is as good as ours. */
static void the_key_of_a_stage_is_claimed(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	before_inference(&s, &policy);
	s.key_holder = "other";
	story_at(&s, MIN(8), checked(CACHE_COLD));
	assert_int_equal(s.effects.list[0].kind, EFFECT_CLAIM_KEY);
	assert_true(s.effects.list[0].recheck);
	story_at(&s, MIN(8), key_event(EV_CACHE_WAITING));
	assert_true(flow_keeps_key(&s.flow));
	story_at(&s, MIN(30), checked(CACHE_WARM));
	assert_int_equal(s.flow.state, FLOW_INFER);
	assert_false(flow_keeps_key(&s.flow));
	story_replays(&s);
}

/* Tasks that are done stay done while phase 1 runs again for another compiler. */
static void another_compiler_has_the_cache_of_the_stage_filled_again(void **state)
{
	struct flow_policy policy = ahead();
	struct event ev = ended(PHASE_EVALUATE, 2, CLASS_COMPILE);
	struct story s;

	(void)state;
	before_evaluation(&s, &policy);
	story_at(&s, MIN(4), checked(CACHE_WARM));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 0));
	story_at(&s, MIN(5), ended(PHASE_EVALUATE, 1, CLASS_COMM));
	story_wait(&s, MIN(20));
	story_at(&s, MIN(20), checked(CACHE_WARM));
	story_at(&s, MIN(20), about(EV_ATTEMPT_SUBMITTED, PHASE_EVALUATE, 2));
	story_at(&s, MIN(20), about(EV_ATTEMPT_CLAIMED, PHASE_EVALUATE, 2));
	EVENT_SET(&ev, changed, NULL);
	EVENT_SET_STR(&ev, signature, "a pair");
	story_at(&s, MIN(21), ev);
	assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
	assert_int_equal(s.flow.stage, PHASE_EVALUATE);
	assert_false(s.flow.cache_proved);
	precompile(&s, MIN(22), 1);
	story_at(&s, MIN(23), verified(1, true, ""));
	story_at(&s, MIN(23), checked(CACHE_WARM));
	assert_int_equal(s.flow.state, FLOW_EVALUATE);
	assert_int_equal(s.flow.tasks_done, 1);
	run_attempt(&s, MIN(24), PHASE_EVALUATE, 3);
	story_at(&s, MIN(25), task(PHASE_EVALUATE, 3, 1));
	story_at(&s, MIN(25), ended(PHASE_EVALUATE, 3, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_GATE);
	story_replays(&s);
}

/* The cache is looked at again before another attempt, and what is lost is compiled again. One that
 * was never proved has nothing to lose. */
static void graphs_that_are_lost_before_another_attempt_are_compiled_again(void **state)
{
	(void)state;
	for (int proved = 0; proved < 2; proved++)
		for (int lost = 0; lost < 2; lost++) {
			struct flow_policy policy = ahead();
			struct story s;

			policy.train_on_incomplete = true;
			before_evaluation(&s, &policy);
			story_at(&s, MIN(4), checked(proved ? CACHE_WARM : CACHE_COLD));
			for (int64_t attempt = 1; !proved && attempt < 3; attempt++) {
				precompile(&s, MIN(4), attempt);
				story_at(&s, MIN(4), verified(attempt, false, ""));
			}
			run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
			story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 0));
			story_at(&s, MIN(5), ended(PHASE_EVALUATE, 1, CLASS_COMM));
			story_wait(&s, MIN(20));
			assert_int_equal(s.flow.attempt_state,
					 proved ? ATTEMPT_BACKOFF : ATTEMPT_INTENDED);
			if (!proved)
				continue;
			assert_int_equal(s.effects.list[0].kind, EFFECT_CHECK_CACHE);
			story_at(&s, MIN(20), checked(lost ? CACHE_COLD : CACHE_WARM));
			assert_int_equal(s.flow.state, lost ? FLOW_PRECOMPILE : FLOW_EVALUATE);
			assert_int_equal(s.flow.attempt_state, ATTEMPT_INTENDED);
			assert_int_equal(s.flow.tasks_done, 1);
			story_replays(&s);
		}
}

/* A stage that compiles as it goes is held to no compiler. */
static void a_jit_stage_is_held_to_no_compiler(void **state)
{
	struct flow_policy policy = all_stages();
	struct event ev = ended(PHASE_EVALUATE, 1, CLASS_COMPILE);
	struct story s;

	(void)state;
	trained(&s, &policy);
	story_at(&s, MIN(3), candidate(CANDIDATE));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	EVENT_SET(&ev, changed, NULL);
	EVENT_SET_STR(&ev, signature, "a pair");
	story_at(&s, MIN(5), ev);
	assert_int_not_equal(s.flow.state, FLOW_PRECOMPILE);
}

/* A driver that dies at any event is followed by one that knows as much. */
static void a_takeover_at_each_point_changes_nothing(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	before_inference(&s, &policy);
	story_at(&s, MIN(8), checked(CACHE_COLD));
	precompile(&s, MIN(9), 1);
	story_at(&s, MIN(10), verified(1, true, ""));
	for (int dies = 1; dies <= s.journalled; dies++) {
		struct story next;
		struct effects before;

		memset(&next, 0, sizeof next);
		flow_init(&next.flow, &policy);
		for (int i = 0; i < dies; i++)
			flow_apply(&next.flow, &s.journal[i]);
		flow_effects(&next.flow, next.flow.at, &before);
		story_at(&next, next.flow.at.ms, took_over(2));
		if (before.list[0].kind == EFFECT_SUBMIT)
			assert_int_equal(next.effects.list[0].kind, EFFECT_FIND);
		else if (before.list[0].kind != EFFECT_RECORD &&
			 before.list[0].kind != EFFECT_CLAIM_KEY)
			assert_int_equal(next.effects.list[0].kind, before.list[0].kind);
		assert_int_equal(next.effects.list[0].phase == PHASE_PRECOMPILE &&
					 next.flow.stage != PHASE_TRAIN,
				 next.flow.state == FLOW_PRECOMPILE &&
					 next.flow.stage == PHASE_INFER);
	}
}

/* The order of the attempt says after damage for which stage it compiles. */
static void an_attempt_that_is_found_again_knows_its_stage(void **state)
{
	(void)state;
	for (int told = 0; told < 2; told++) {
		struct flow_policy policy = ahead();
		struct event found = about(EV_ATTEMPT_INTENDED, PHASE_PRECOMPILE, 4);
		struct story s;

		if (told)
			EVENT_SET(&found, stage, PHASE_INFER);
		before_evaluation(&s, &policy);
		story_at(&s, MIN(3), event_of(EV_JOURNAL_SALVAGED));
		s.flow.unsettled = true;
		story_at(&s, MIN(3), found);
		assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
		assert_int_equal(s.flow.stage, told ? PHASE_INFER : PHASE_TRAIN);
	}
}

/* A pause before a stage comes before its cache is looked at; a run that is past that pauses no
 * more. */
static void a_pause_comes_before_phase_1_of_the_next_stage(void **state)
{
	struct flow_policy policy = ahead();
	struct event took = took_over(1);
	struct story s;

	(void)state;
	EVENT_SET(&took, pause_after, PHASE_TRAIN);
	story_begin(&s, &policy);
	story_at(&s, 0, took);
	story_at(&s, 0, checked(CACHE_WARM));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
	story_at(&s, MIN(2), checkpoint(1, 30, CANDIDATE));
	story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	assert_true(flow_is_past(&s.flow, PHASE_TRAIN) && flow_is_past(&s.flow, PHASE_VERIFY));
	assert_false(flow_is_past(&s.flow, PHASE_EVALUATE));
	story_at(&s, MIN(9), took_over(2));
	assert_int_equal(s.flow.state, FLOW_PLANNED);
	assert_int_equal(s.flow.stage, PHASE_EVALUATE);
	story_at(&s, MIN(9), candidate(CANDIDATE));
	story_at(&s, MIN(9), checked(CACHE_COLD));
	assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
	story_replays(&s);
}

static void a_stop_before_a_stage_ends_the_run(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	before_inference(&s, &policy);
	story_at(&s, MIN(8), stop("enough"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_STOPPED);
	assert_int_equal(s.flow.end_phase, PHASE_INFER);
}

/* The machines are the stage's, and so is their price; the time is that of phase 1. */
static void its_machines_are_paid_as_the_stages(void **state)
{
	struct flow_policy policy = ahead();
	struct ledger_view view;
	struct story s;

	(void)state;
	policy.price_per_ms = 1;
	policy.stages[PHASE_INFER].price_per_ms = 10;
	policy.cost_usd = (double)MIN(25);
	before_inference(&s, &policy);
	story_at(&s, MIN(8), checked(CACHE_COLD));
	ledger_at(&s.flow.ledger, (struct utc){ MIN(8) }, &view);
	assert_int_equal(view.paid_of[PHASE_INFER], 0);
	run_attempt(&s, MIN(8), PHASE_PRECOMPILE, 1);
	ledger_at(&s.flow.ledger, (struct utc){ MIN(9) }, &view);
	assert_int_equal(view.paid_of[PHASE_INFER], MIN(1));
	assert_int_equal(view.paid_of[PHASE_PRECOMPILE], 0);
	assert_int_equal(view.ms[BIN_PRECOMPILE], MIN(1));
	assert_int_equal(limit_reached(&s.flow, (struct utc){ MIN(9) }), LIMIT_NONE);
	assert_int_equal(limit_reached(&s.flow, (struct utc){ MIN(11) }), LIMIT_COST);
	story_at(&s, MIN(9), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(10), verified(1, true, ""));
	ledger_at(&s.flow.ledger, (struct utc){ MIN(10) }, &view);
	assert_int_equal(view.paid_of[PHASE_INFER], MIN(1));
	assert_int_equal(view.total_ms, MIN(10));
	/* 1 min for the training's cache; 2 and 1 before the stages; 1 for the proof. */
	assert_int_equal(view.ms[BIN_VERIFY], MIN(1) + MIN(1) + MIN(1) + MIN(1));
}

/* Fewer compilers at once are fewer of those that the stage's machines would have. */
static void workers_are_those_of_the_stage(void **state)
{
	struct flow_policy policy = ahead();
	struct story s;

	(void)state;
	policy.compile_workers = 32;
	policy.stages[PHASE_INFER].compile_workers = 8;
	before_inference(&s, &policy);
	story_at(&s, MIN(8), checked(CACHE_COLD));
	run_attempt(&s, MIN(8), PHASE_PRECOMPILE, 1);
	story_at(&s, MIN(8), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(9), verified(1, false, "1 is missing"));
	assert_int_equal(s.flow.workers, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cold_stages_are_compiled_just_before_they_begin),
		cmocka_unit_test(the_intent_names_the_stage),
		cmocka_unit_test(a_warm_stage_needs_no_phase_1),
		cmocka_unit_test(what_ends_the_run_before_costs_no_phase_1),
		cmocka_unit_test(each_stage_decides_for_itself),
		cmocka_unit_test(each_has_a_budget_of_its_own),
		cmocka_unit_test(the_key_of_a_stage_is_claimed),
		cmocka_unit_test(another_compiler_has_the_cache_of_the_stage_filled_again),
		cmocka_unit_test(graphs_that_are_lost_before_another_attempt_are_compiled_again),
		cmocka_unit_test(a_jit_stage_is_held_to_no_compiler),
		cmocka_unit_test(a_takeover_at_each_point_changes_nothing),
		cmocka_unit_test(an_attempt_that_is_found_again_knows_its_stage),
		cmocka_unit_test(a_pause_comes_before_phase_1_of_the_next_stage),
		cmocka_unit_test(a_stop_before_a_stage_ends_the_run),
		cmocka_unit_test(its_machines_are_paid_as_the_stages),
		cmocka_unit_test(workers_are_those_of_the_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
