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

/* The training fails once more, in attempt `n`; its successor is submitted if there is one. */
static void fail_alike(struct story *s, int64_t n, enum failure_class class, const char *signature)
{
	story_at(s, s->flow.at.ms + MIN(1), signed_end(n, class, signature));
	if (s->flow.state != FLOW_TRAIN)
		return;
	story_wait(s, s->flow.at.ms + MIN(30));
	story_at(s, s->flow.at.ms, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, n + 1));
}

static void an_unknown_cause_is_retried_three_times_and_no_more(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.retry_without_progress = 20;
	story_begin_training(&s, &policy);
	for (int64_t n = 1; n <= 3; n++) {
		fail_alike(&s, n, CLASS_UNKNOWN, "OddError at train.py");
		assert_int_equal(s.flow.state, FLOW_TRAIN);
	}
	fail_alike(&s, 4, CLASS_UNKNOWN, "OddError at train.py");
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 1);
	assert_string_equal(s.flow.end_reason,
			    "train failed 4 times in the same way (unknown), without a new "
			    "checkpoint between");
}

/* Others between, Spot too, do not make it another; a new checkpoint does. */
static void an_unknown_cause_is_counted_until_a_new_checkpoint(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.retry_without_progress = 20;
	story_begin_training(&s, &policy);
	for (int64_t n = 1; n <= 3; n++)
		fail_alike(&s, n, CLASS_UNKNOWN, "a");
	story_at(&s, s.flow.at.ms, checkpoint(4, 100, "ckpt/100"));
	for (int64_t n = 4; n <= 8; n++)
		fail_alike(&s, n, n == 5 ? CLASS_SPOT : CLASS_UNKNOWN, n == 7 ? "b" : "a");
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	fail_alike(&s, 9, CLASS_UNKNOWN, "a");
	assert_int_equal(s.flow.state, FLOW_ENDED);
}

/* No class that a retry may cure ends a run before retry.without_progress does. */
static void two_alike_failures_end_no_run(void **state)
{
	static const enum failure_class class[] = { CLASS_TRANSIENT_INFRA, CLASS_HARDWARE_NODE,
						    CLASS_COMM, CLASS_TIMEOUT_HANG };

	(void)state;
	for (size_t i = 0; i < sizeof class / sizeof class[0]; i++) {
		struct flow_policy policy = story_policy();
		struct story s;

		story_begin_training(&s, &policy);
		for (int64_t n = 1; n <= 4; n++) {
			fail_alike(&s, n, class[i], "the same");
			assert_int_equal(s.flow.state, FLOW_TRAIN);
		}
		fail_alike(&s, 5, class[i], "the same");
		assert_int_equal(s.flow.state, FLOW_ENDED);
		assert_non_null(strstr(s.flow.end_reason, "retry.without_progress"));
	}
}

/* Each one goes on from the checkpoint before; what fails from scratch is bad input. */
static void a_damaged_checkpoint_gives_way_to_the_one_before(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin_training(&s, &policy);
	for (int64_t step = 1; step <= 5; step++)
		story_at(&s, MIN(step), checkpoint(1, step, "ckpt/whole"));
	fail_alike(&s, 1, CLASS_DATA, "damaged");
	for (int64_t n = 2; n <= 4; n++) {
		assert_int_equal(s.flow.state, FLOW_TRAIN);
		assert_string_not_equal(s.flow.resumed_from, "");
		fail_alike(&s, n, CLASS_DATA, "damaged");
	}
	assert_int_equal(s.flow.state, FLOW_TRAIN);

	story_begin_training(&s, &policy);
	fail_alike(&s, 1, CLASS_DATA, "bad input");
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	fail_alike(&s, 2, CLASS_DATA, "bad input");
	assert_int_equal(s.flow.state, FLOW_ENDED);
}

/* Attempts count whatever ends them: also Spot, which uses up no other budget. */
static void attempts_with_machines_are_bounded(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.attempts = 4; /* the first one holds its claim already */
	story_begin_training(&s, &policy);
	for (int64_t n = 1; n <= 4; n++) { /* none of these got machines */
		fail_alike(&s, n, CLASS_CAPACITY, "none to be had");
		assert_int_equal(s.flow.state, FLOW_TRAIN);
	}
	for (int64_t n = 5; n <= 7; n++) {
		assert_string_equal(s.flow.end_reason, "");
		story_at(&s, s.flow.at.ms, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, n));
		fail_alike(&s, n, CLASS_SPOT, "taken");
	}
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 1);
	assert_non_null(strstr(s.flow.end_reason, "limits.attempts is used up"));
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
		assert_int_equal(s.effects.list[0].workers, 0);
		story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_COMPILE));
		story_at(&s, MIN(3), verified(1, false, "a graph failed"));
		assert_int_equal(s.effects.list[0].kind, EFFECT_SUBMIT);
		assert_int_equal(s.effects.list[0].workers, cases[i].fewer);
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
	assert_int_equal(s.effects.list[0].workers, 4);
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
		cmocka_unit_test(an_unknown_cause_is_retried_three_times_and_no_more),
		cmocka_unit_test(an_unknown_cause_is_counted_until_a_new_checkpoint),
		cmocka_unit_test(two_alike_failures_end_no_run),
		cmocka_unit_test(a_damaged_checkpoint_gives_way_to_the_one_before),
		cmocka_unit_test(attempts_with_machines_are_bounded),
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
