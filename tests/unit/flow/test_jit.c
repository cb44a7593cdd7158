/* Graphs that a training has to compile, and what compile.jit_budget makes of them. */
#include "tests/unit/flow/story.h"

static struct flow_policy with_budget(int64_t graphs, enum jit_action action)
{
	struct flow_policy policy = story_policy();

	policy.jit_graphs = graphs;
	policy.jit_action = action;
	policy.drain_ms = MIN(2);
	return policy;
}

static struct event compiled(int64_t attempt, int64_t graphs)
{
	struct event ev = event_of(EV_JIT_COMPILED);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, graphs, graphs);
	return ev;
}

static void within_the_budget_nothing_is_said(void **state)
{
	struct flow_policy policy = with_budget(2, JIT_STOP);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 2));
	STORY(&s, "");
	assert_int_equal(s.flow.jit_graphs, 2);
}

static void over_the_budget_it_is_said_once(void **state)
{
	struct flow_policy policy = with_budget(2, JIT_WARN);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 3));
	story_at(&s, MIN(6), compiled(1, 9));
	STORY(&s, "00:05   watch train 1\n"
		  "00:05   record jit.exceeded warn (graphs compiled in training: 3, "
		  "allowed: 2)\n"
		  "00:05   watch train 1\n");
}

static void a_stop_lets_the_training_save_and_ends_the_run(void **state)
{
	struct flow_policy policy = with_budget(0, JIT_STOP);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 1));
	story_at(&s, MIN(6), checkpoint(1, 500, "ckpt/500"));
	story_at(&s, MIN(6), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:05   watch train 1\n"
		  "00:05   record jit.exceeded stop (graphs compiled in training: 1, "
		  "allowed: 0)\n"
		  "00:05   drain train 1\n"
		  "00:05   watch train 1\n"
		  "00:06 train -> ending\n"
		  "00:06   record run.ended refused 5: compile.jit_budget is exceeded: graphs "
		  "compiled in training: 1, allowed: 0\n"
		  "00:06 ending -> ended\n"
		  "00:06   done\n");
}

static void phase_1_runs_again_and_the_training_goes_on(void **state)
{
	struct flow_policy policy = with_budget(0, JIT_RECOMPILE);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 1));
	story_at(&s, MIN(6), checkpoint(1, 500, "ckpt/500"));
	story_at(&s, MIN(6), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
	story_at(&s, MIN(7), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(8), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(9), verified(1, true, NULL));
	STORY(&s, "00:05   watch train 1\n"
		  "00:05   record jit.exceeded recompile (graphs compiled in training: 1, "
		  "allowed: 0)\n"
		  "00:05   drain train 1\n"
		  "00:05   watch train 1\n"
		  "00:06 train -> precompile\n"
		  "00:06   claim the graph key\n"
		  "00:06   record attempt.intended precompile 1\n"
		  "00:06 precompile 1 intended\n"
		  "00:06   submit stk-r1-precompile-1\n"
		  "00:07 precompile 1 submitted\n"
		  "00:07   watch precompile 1\n"
		  "00:08 precompile -> verify\n"
		  "00:08   verify the cache\n"
		  "00:09 verify -> train\n"
		  "00:09   choose a checkpoint\n"
		  "00:09   record attempt.intended train 2 resume=ckpt/500\n"
		  "00:09 train 2 intended\n"
		  "00:09   submit stk-r1-train-2 resume=ckpt/500\n");
}

static void it_runs_again_only_once(void **state)
{
	struct flow_policy policy = with_budget(0, JIT_RECOMPILE);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 1));
	story_at(&s, MIN(6), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	story_at(&s, MIN(7), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(8), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(9), verified(1, true, NULL));
	story_at(&s, MIN(9), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	s.len = 0;
	s.text[0] = '\0';
	story_at(&s, MIN(10), compiled(2, 1));
	STORY(&s, "00:10   watch train 2\n"
		  "00:10   record jit.exceeded warn (graphs compiled in training: 1, "
		  "allowed: 0; phase 1 has run again already)\n"
		  "00:10   watch train 2\n");
}

static void a_stop_beats_making_room(void **state)
{
	struct flow_policy policy = with_budget(0, JIT_RECOMPILE);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 1));
	story_at(&s, MIN(6), stop("enough"));
	story_at(&s, MIN(6), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.outcome, OUTCOME_STOPPED);
}

static void what_no_retry_cures_ends_the_run_all_the_same(void **state)
{
	struct flow_policy policy = with_budget(0, JIT_RECOMPILE);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 1));
	story_at(&s, MIN(6), ended(PHASE_TRAIN, 1, CLASS_USER_CODE));
	assert_int_equal(s.flow.outcome, OUTCOME_FAILED);
}

static void a_training_that_computes_nothing_ends_the_run(void **state)
{
	struct flow_policy policy = with_budget(-1, JIT_WARN);
	struct event spoiled = event_of(EV_TRAIN_SPOILED);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	EVENT_SET(&spoiled, attempt, 1);
	EVENT_SET_STR(&spoiled, reason, "graphs are extracted");
	story_at(&s, MIN(5), spoiled);
	story_at(&s, MIN(6), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:05   stop train 1\n"
		  "00:05   watch train 1\n"
		  "00:06 train -> ending\n"
		  "00:06   record run.ended failed 1: the training computed nothing: graphs are "
		  "extracted\n"
		  "00:06 ending -> ended\n"
		  "00:06   done\n");
}

static void without_a_phase_1_there_is_no_budget(void **state)
{
	struct flow_policy policy = with_budget(-1, JIT_STOP);
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(5), compiled(1, 1000));
	STORY(&s, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_the_budget_nothing_is_said),
		cmocka_unit_test(over_the_budget_it_is_said_once),
		cmocka_unit_test(a_stop_lets_the_training_save_and_ends_the_run),
		cmocka_unit_test(phase_1_runs_again_and_the_training_goes_on),
		cmocka_unit_test(it_runs_again_only_once),
		cmocka_unit_test(a_stop_beats_making_room),
		cmocka_unit_test(what_no_retry_cures_ends_the_run_all_the_same),
		cmocka_unit_test(a_training_that_computes_nothing_ends_the_run),
		cmocka_unit_test(without_a_phase_1_there_is_no_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
