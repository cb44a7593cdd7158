/* A training that would meet another compiler than the one that filled the cache. */
#include "jobs/flow/rules.h"
#include "tests/unit/flow/story.h"

static struct event refused(int64_t attempt, const char *pair)
{
	struct event ev = ended(PHASE_TRAIN, attempt, CLASS_COMPILE);

	EVENT_SET(&ev, changed, NULL);
	EVENT_SET_STR(&ev, signature, pair);
	return ev;
}

static void phase_1_again(struct story *s, int64_t ms, int64_t attempt)
{
	assert_int_equal(s->flow.state, FLOW_PRECOMPILE);
	story_at(s, ms, about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, attempt));
	story_at(s, ms, ended(PHASE_PRECOMPILE, attempt, CLASS_NONE));
	story_at(s, ms, verified(attempt, true, NULL));
}

static void its_cache_is_cold_and_phase_1_runs_again(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.retry_attempts = policy.retry_without_progress = 1;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), refused(1, "compiler/a"));
	assert_int_equal(s.flow.cache, CACHE_COLD);
	assert_false(s.flow.cache_proved);
	phase_1_again(&s, MIN(2), 1);
	STORY(&s, "00:01 train -> precompile\n"
		  "00:01   claim the graph key\n"
		  "00:01   record attempt.intended precompile 1\n"
		  "00:01 precompile 1 intended\n"
		  "00:01   submit stk-r1-precompile-1\n"
		  "00:02 precompile 1 submitted\n"
		  "00:02   watch precompile 1\n"
		  "00:02 precompile -> verify\n"
		  "00:02   verify the cache\n"
		  "00:02 verify -> train\n"
		  "00:02   choose a checkpoint\n"
		  "00:02   record attempt.intended train 2\n"
		  "00:02 train 2 intended\n"
		  "00:02   submit stk-r1-train-2\n");
	assert_string_equal(s.effects.list[0].tolerated, "compiler/a");
	assert_int_equal(s.flow.budget[PHASE_TRAIN].failures, 0);
	assert_int_equal(s.flow.budget[PHASE_TRAIN].backoff_failures, 0);
}

static void for_one_difference_it_runs_again_once_and_for_another_one_too(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), refused(1, "compiler/a"));
	phase_1_again(&s, MIN(2), 1);
	story_at(&s, MIN(3), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	story_at(&s, MIN(4), refused(2, "compiler/b"));
	phase_1_again(&s, MIN(5), 2);
	assert_string_equal(s.effects.list[0].tolerated, "compiler/b");
	story_at(&s, MIN(6), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 3));
	/* An agent that refuses what it was told to put up with has failed. */
	story_at(&s, MIN(7), refused(3, "compiler/b"));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_int_equal(s.flow.budget[PHASE_TRAIN].failures, 1);
	story_replays(&s);
}

static void a_stop_comes_first(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), stop("enough"));
	story_at(&s, MIN(2), refused(1, "compiler/a"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 6);
}

static void without_a_phase_1_there_is_nothing_to_fill(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.compiles = false;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_NONE));
	story_at(&s, MIN(2), refused(1, "compiler/a"));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_int_equal(s.flow.attempt_state, ATTEMPT_BACKOFF);
}

static void the_training_rests_on_the_lock_that_was_written_or_found(void **state)
{
	struct flow flow = { 0 };
	struct event found = checked(CACHE_WARM), proved = verified(1, true, NULL);

	(void)state;
	EVENT_SET_STR(&found, graph_key, "planned");
	transition_cache(&flow, &found);
	assert_string_equal(flow.lock_key, "planned");
	EVENT_SET_STR(&proved, graph_key, "of another compiler");
	transition_verification(&flow, &proved);
	assert_string_equal(flow.lock_key, "of another compiler");
	proved = verified(1, true, NULL); /* as journals of older versions have it */
	transition_verification(&flow, &proved);
	assert_string_equal(flow.lock_key, "");
}

static void a_failure_of_the_compiler_alone_is_a_failure(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(1), ended(PHASE_TRAIN, 1, CLASS_COMPILE));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	assert_int_equal(s.flow.budget[PHASE_TRAIN].failures, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_cache_is_cold_and_phase_1_runs_again),
		cmocka_unit_test(for_one_difference_it_runs_again_once_and_for_another_one_too),
		cmocka_unit_test(a_stop_comes_first),
		cmocka_unit_test(without_a_phase_1_there_is_nothing_to_fill),
		cmocka_unit_test(the_training_rests_on_the_lock_that_was_written_or_found),
		cmocka_unit_test(a_failure_of_the_compiler_alone_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
