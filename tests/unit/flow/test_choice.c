/* What an attempt goes on with: the cause of the last failure, fewer compile
 * processes, a checkpoint. Told as stories. */
#include "tests/unit/flow/story.h"

static struct event signed_end(int64_t attempt, enum failure_class class, const char *signature)
{
	struct event ev = ended(PHASE_TRAIN, attempt, class);

	EVENT_SET_STR(&ev, signature, signature);
	return ev;
}

/* ---- causes and workers ------------------------------------------------------------ */

static void the_same_cause_twice_without_progress_ends_the_run(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(10), signed_end(1, CLASS_UNKNOWN, "KeyError at train.py"));
	story_wait(&s, MIN(60));
	story_at(&s, MIN(60), signed_end(2, CLASS_UNKNOWN, "KeyError at train.py"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 1);
	assert_string_equal(s.flow.end_reason,
			    "train failed twice in the same way (unknown), without a new "
			    "checkpoint between");
}

static void the_same_cause_after_progress_or_between_others_goes_on(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(10), signed_end(1, CLASS_UNKNOWN, "a"));
	story_wait(&s, MIN(20));
	story_at(&s, MIN(20), signed_end(2, CLASS_UNKNOWN, "b"));
	story_wait(&s, MIN(30));
	story_at(&s, MIN(30), signed_end(3, CLASS_UNKNOWN, "a"));
	story_wait(&s, MIN(40));
	story_at(&s, MIN(40), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 4));
	story_at(&s, MIN(40), checkpoint(4, 100, "ckpt/100"));
	story_at(&s, MIN(41), signed_end(4, CLASS_UNKNOWN, "a"));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	/* Spot says nothing against what came before it. */
	story_wait(&s, MIN(50));
	story_at(&s, MIN(50), signed_end(5, CLASS_SPOT, "a"));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	story_wait(&s, MIN(60));
	story_at(&s, MIN(60), signed_end(6, CLASS_UNKNOWN, "a"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
}

static void a_service_that_stays_down_is_left_to_the_budgets(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	for (int attempt = 1; attempt < 5; attempt++) {
		story_at(&s, MIN(10 * attempt),
			 signed_end(attempt, CLASS_TRANSIENT_INFRA, "SlowDown"));
		assert_int_equal(s.flow.state, FLOW_TRAIN);
		story_wait(&s, MIN(10 * attempt + 9));
	}
	story_at(&s, MIN(60), signed_end(5, CLASS_TRANSIENT_INFRA, "SlowDown"));
	assert_int_equal(s.flow.state, FLOW_ENDED); /* retry.without_progress */
}

static void a_compile_failure_is_retried_once_with_fewer_workers(void **state)
{
	static const struct {
		int64_t workers, fewer;
	} cases[] = { { 0, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 }, { 8, 4 }, { 32, 16 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct flow_policy policy = story_policy();
		struct story s;

		policy.compile_workers = cases[i].workers;
		story_begin(&s, &policy);
		story_at(&s, MIN(1), checked(CACHE_COLD));
		assert_int_equal(s.wishes.list[0].workers, 0);
		story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_COMPILE));
		story_at(&s, MIN(3), verified(1, false, "a graph failed"));
		assert_int_equal(s.wishes.list[0].kind, WISH_SUBMIT);
		assert_int_equal(s.wishes.list[0].workers, cases[i].fewer);
		story_replays(&s);
		story_at(&s, MIN(61), ended(PHASE_PRECOMPILE, 2, CLASS_COMPILE));
		story_at(&s, MIN(62), verified(2, false, "a graph failed"));
		assert_int_equal(s.flow.state, FLOW_ENDED);
	}
}

static void an_incomplete_cache_is_precompiled_again_with_fewer_workers(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.compile_workers = 8;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_COLD));
	story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(3), verified(1, false, NULL));
	assert_int_equal(s.wishes.list[0].workers, 4);
}

/* ---- choice -------------------------------------------------------------------------- */

static void a_checkpoint_that_no_longer_proves_complete_is_passed_over(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(10), checkpoint(1, 100, "ckpt/100"));
	story_at(&s, MIN(20), checkpoint(1, 200, "ckpt/200"));
	s.marked_count = 1; /* the newer one was cut off since */
	story_at(&s, MIN(21), ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	story_wait(&s, MIN(30));
	assert_string_equal(s.flow.resumed_from, "ckpt/100");
	assert_int_equal(s.flow.checkpoint_step, 100);
	story_replays(&s);
}

static void without_one_that_proves_complete_it_begins_from_scratch(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(10), checkpoint(1, 100, "ckpt/100"));
	s.marked_count = 0;
	story_at(&s, MIN(21), ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	story_wait(&s, MIN(30));
	assert_int_equal(s.flow.attempt, 2);
	assert_string_equal(s.flow.resumed_from, "");
	assert_int_equal(s.flow.checkpoint_step, -1);
}

static void a_choice_that_is_not_one_is_not_taken(void **state)
{
	struct flow_policy policy = story_policy();
	struct event ev = event_of(EV_CHECKPOINT_CHOSEN);
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	assert_int_equal(flow_rule_find(&s.flow, &ev), -1); /* the attempt runs */
	s.flow.attempt_state = ATTEMPT_BACKOFF;
	assert_true(flow_rule_find(&s.flow, &ev) >= 0);
	EVENT_SET(&ev, step, 100);
	assert_int_equal(flow_rule_find(&s.flow, &ev), -1); /* of what? */
	EVENT_SET_STR(&ev, url, "ckpt/100");
	assert_true(flow_rule_find(&s.flow, &ev) >= 0);
	s.flow.below = 100;
	assert_int_equal(flow_rule_find(&s.flow, &ev), -1); /* not trusted */
}

static void what_was_given_up_is_not_trusted_until_it_was_passed(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	story_at(&s, MIN(10), checkpoint(1, 100, "ckpt/1/100"));
	story_at(&s, MIN(11), checkpoint(1, 200, "ckpt/1/200"));
	story_at(&s, MIN(12), ended(PHASE_TRAIN, 1, CLASS_DATA));
	story_wait(&s, MIN(20));
	assert_string_equal(s.flow.resumed_from, "ckpt/1/100");
	story_at(&s, MIN(20), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	story_at(&s, MIN(21), checkpoint(2, 150, "ckpt/2/150"));
	story_at(&s, MIN(22), ended(PHASE_TRAIN, 2, CLASS_UNKNOWN));
	story_wait(&s, MIN(30));
	assert_string_equal(s.flow.resumed_from, "ckpt/2/150");
	story_at(&s, MIN(30), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 3));
	story_at(&s, MIN(31), checkpoint(3, 200, "ckpt/3/200"));
	story_at(&s, MIN(32), ended(PHASE_TRAIN, 3, CLASS_UNKNOWN));
	story_wait(&s, MIN(40));
	assert_string_equal(s.flow.resumed_from, "ckpt/3/200");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_cause_twice_without_progress_ends_the_run),
		cmocka_unit_test(the_same_cause_after_progress_or_between_others_goes_on),
		cmocka_unit_test(a_service_that_stays_down_is_left_to_the_budgets),
		cmocka_unit_test(a_compile_failure_is_retried_once_with_fewer_workers),
		cmocka_unit_test(an_incomplete_cache_is_precompiled_again_with_fewer_workers),
		cmocka_unit_test(a_checkpoint_that_no_longer_proves_complete_is_passed_over),
		cmocka_unit_test(without_one_that_proves_complete_it_begins_from_scratch),
		cmocka_unit_test(a_choice_that_is_not_one_is_not_taken),
		cmocka_unit_test(what_was_given_up_is_not_trusted_until_it_was_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
