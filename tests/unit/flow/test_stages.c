/* What follows a training: evaluation, gate, inference, promotion; the machines and the budget of
 * each stage. */
#include "tests/unit/flow/stages.h"

static void a_turn_goes_through_all_its_phases(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	evaluated(&s, &policy);
	story_at(&s, MIN(7), judged(CANDIDATE, 4, true));
	run_attempt(&s, MIN(8), PHASE_INFER, 1);
	for (int64_t i = 0; i < 3; i++)
		story_at(&s, MIN(9), task(PHASE_INFER, 1, 2 - i));
	story_at(&s, MIN(10), ended(PHASE_INFER, 1, CLASS_NONE));
	story_at(&s, MIN(11), promotion(EV_PROMOTE_INTENDED, 5));
	story_at(&s, MIN(12), promotion(EV_PROMOTE_DONE, 5));
	assert_non_null(strstr(s.text, "00:03 train -> evaluate\n"
				       "00:03   choose the candidate\n"
				       "00:03   record attempt.intended evaluate 1\n"));
	assert_non_null(strstr(s.text, "00:06 evaluate -> gate\n"
				       "00:06   judge\n"
				       "00:07 gate -> infer\n"
				       "00:07   record attempt.intended infer 1\n"));
	assert_non_null(strstr(s.text,
			       "00:10 infer -> promote\n"
			       "00:10   promote\n"
			       "00:12 promote -> ending\n"
			       "00:12   record run.ended succeeded 0: promoted: generation 5\n"));
	story_replays(&s);
}

/* Each attempt has the nodes and the tasks of its stage. */
static void a_stage_has_its_own_machines(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	evaluated(&s, &policy);
	for (int i = 0; i < s.journalled; i++) {
		const struct event *ev = &s.journal[i];

		if (ev->kind != EV_ATTEMPT_INTENDED)
			continue;
		assert_int_equal(ev->nodes, ev->phase == PHASE_EVALUATE ? 2 : 1);
		assert_int_equal(EVENT_HAS(ev, tasks), ev->phase == PHASE_EVALUATE);
		assert_true(ev->phase != PHASE_EVALUATE || ev->tasks == 2);
	}
}

static void a_run_has_only_the_phases_that_it_asks_for(void **state)
{
	static const enum phase phases[] = { PHASE_EVALUATE, PHASE_GATE, PHASE_INFER,
					     PHASE_PROMOTE };
	static const enum flow_state states[] = { FLOW_EVALUATE, FLOW_GATE, FLOW_INFER,
						  FLOW_PROMOTE };

	(void)state;
	for (unsigned bits = 0; bits < 16; bits++) {
		struct flow_policy policy = all_stages();
		enum flow_state first = FLOW_ENDED;
		struct story s;

		for (size_t i = 4; i-- > 0;) {
			policy.stages[phases[i]].is_asked = (bits >> i & 1) != 0;
			if (policy.stages[phases[i]].is_asked)
				first = states[i];
		}
		trained(&s, &policy);
		assert_int_equal(s.flow.state, first);
		assert_int_equal(s.flow.exit_code, 0);
	}
}

static void without_a_candidate_the_run_fails(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	trained(&s, &policy);
	story_at(&s, MIN(3), candidate(NULL));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_RUN_FAILED);
	assert_non_null(strstr(s.flow.end_reason, "no complete checkpoint"));
}

/* Each task counts once, whoever tells of it again, and those that there are not never. */
static void each_task_counts_once(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	trained(&s, &policy);
	story_at(&s, MIN(3), candidate(CANDIDATE));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 1));
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 1));
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 2));
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, -1));
	story_at(&s, MIN(5), task(PHASE_INFER, 1, 0));
	assert_int_equal(s.flow.tasks_done, 1);
	assert_true(flow_task_is_done(&s.flow, 1));
	assert_false(flow_task_is_done(&s.flow, 0));
	/* A command that left one out has not done what it was asked for. */
	story_at(&s, MIN(6), ended(PHASE_EVALUATE, 1, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_RUN_FAILED);
}

/* A later attempt has the tasks left that the earlier ones have not done; the next phase has all of
 * its own. */
static void tasks_outlive_their_attempt_and_not_their_phase(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	trained(&s, &policy);
	story_at(&s, MIN(3), candidate(CANDIDATE));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	story_at(&s, MIN(5), task(PHASE_EVALUATE, 1, 0));
	story_at(&s, MIN(6), ended(PHASE_EVALUATE, 1, CLASS_COMM));
	story_wait(&s, MIN(20));
	run_attempt(&s, MIN(20), PHASE_EVALUATE, 2);
	assert_int_equal(s.flow.tasks_done, 1);
	story_at(&s, MIN(21), task(PHASE_EVALUATE, 1, 1));
	story_at(&s, MIN(22), ended(PHASE_EVALUATE, 2, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_GATE);
	story_at(&s, MIN(23), judged(CANDIDATE, 4, true));
	assert_int_equal(s.flow.state, FLOW_INFER);
	assert_int_equal(s.flow.tasks_done, 0);
}

/* Tasks done are the progress of their phase, as checkpoints are of a training. */
static void a_task_that_is_done_is_progress(void **state)
{
	struct flow_policy policy = all_stages();

	(void)state;
	policy.stages[PHASE_EVALUATE].tasks = 50;
	for (int progress = 0; progress < 2; progress++) {
		struct story s;
		int64_t attempt = 1, ms = MIN(4);

		trained(&s, &policy);
		story_at(&s, MIN(3), candidate(CANDIDATE));
		while (s.flow.state == FLOW_EVALUATE && attempt < 12) {
			run_attempt(&s, ms, PHASE_EVALUATE, attempt);
			if (progress)
				story_at(&s, ms, task(PHASE_EVALUATE, attempt, attempt));
			story_at(&s, ms, ended(PHASE_EVALUATE, attempt++, CLASS_COMM));
			ms += MIN(10);
			if (s.flow.state == FLOW_EVALUATE)
				story_wait(&s, ms);
		}
		assert_int_equal(attempt, progress ? 12 : 6); /* retry.without_progress is 5 */
		if (!progress)
			assert_non_null(strstr(s.flow.end_reason, "without a task done"));
	}
}

/* A bad shard ends the phase, though others go well between its failures. */
static void the_same_failure_three_times_in_one_task_ends_the_phase(void **state)
{
	static const char *const tasks[] = { "shard-1", "shard-2" };

	(void)state;
	for (size_t names = 1; names <= 2; names++) {
		struct flow_policy policy = all_stages();
		struct story s;
		int64_t attempt = 1, ms = MIN(4);

		policy.stages[PHASE_EVALUATE].is_asked = policy.stages[PHASE_GATE].is_asked = false;
		policy.stages[PHASE_INFER].tasks = 50;
		trained(&s, &policy);
		story_at(&s, MIN(3), candidate(CANDIDATE));
		while (s.flow.state == FLOW_INFER && attempt < 9) {
			struct event ev = ended(PHASE_INFER, attempt, CLASS_TRANSIENT_INFRA);

			EVENT_SET_STR(&ev, signature, "transient-infra/x/1");
			EVENT_SET_STR(&ev, task, tasks[(size_t)attempt % names]);
			run_attempt(&s, ms, PHASE_INFER, attempt);
			story_at(&s, ms, task(PHASE_INFER, attempt, 10 + attempt));
			story_at(&s, ms, ev);
			attempt++;
			ms += MIN(10);
			if (s.flow.state == FLOW_INFER)
				story_wait(&s, ms);
		}
		assert_int_equal(attempt - 1, names == 1 ? 3 : 5);
		assert_non_null(strstr(s.flow.end_reason, "in the same way"));
		assert_string_equal(strrchr(s.flow.end_reason, ')'),
				    names == 1 ? ") in shard-1" : ") in shard-2");
	}
}

static void each_stage_has_its_own_budget(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	policy.retry_attempts = 2;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_WARM));
	run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
	story_at(&s, MIN(2), ended(PHASE_TRAIN, 1, CLASS_COMM));
	story_wait(&s, MIN(10));
	run_attempt(&s, MIN(10), PHASE_TRAIN, 2);
	story_at(&s, MIN(11), ended(PHASE_TRAIN, 2, CLASS_NONE));
	story_at(&s, MIN(11), candidate(CANDIDATE));
	run_attempt(&s, MIN(12), PHASE_EVALUATE, 1);
	story_at(&s, MIN(13), ended(PHASE_EVALUATE, 1, CLASS_COMM));
	assert_int_equal(s.flow.state, FLOW_EVALUATE);
	story_wait(&s, MIN(30));
	run_attempt(&s, MIN(30), PHASE_EVALUATE, 2);
	story_at(&s, MIN(31), ended(PHASE_EVALUATE, 2, CLASS_COMM));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_non_null(strstr(s.flow.end_reason, "evaluate failed 2 times"));
}

/* ---- the gate and the promotion ------------------------------------------------------------- */

static void a_gate_that_says_no_ends_the_run_with_5(void **state)
{
	(void)state;
	for (int advises = 0; advises < 2; advises++) {
		struct flow_policy policy = all_stages();
		struct story s;

		policy.gate_advises = advises != 0;
		evaluated(&s, &policy);
		story_at(&s, MIN(7), judged(CANDIDATE, 4, false));
		if (advises) {
			assert_int_equal(s.flow.state, FLOW_INFER);
			continue;
		}
		assert_int_equal(s.flow.state, FLOW_ENDED);
		assert_int_equal(s.flow.outcome, OUTCOME_REFUSED);
		assert_int_equal(s.flow.exit_code, EXIT_GATE);
		assert_non_null(strstr(s.flow.end_reason, "accuracy fell"));
		assert_int_equal(s.flow.end_phase, PHASE_GATE);
	}
}

/* A verdict on another model, or against another version, is none. */
static void a_verdict_is_on_exactly_this_candidate_and_this_version(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	evaluated(&s, &policy);
	story_at(&s, MIN(7), judged("ckpt/20", 4, true));
	story_at(&s, MIN(7), judged(CANDIDATE, 3, true));
	story_at(&s, MIN(7), judged(CANDIDATE, 5, false));
	assert_int_equal(s.flow.state, FLOW_GATE);
	story_at(&s, MIN(7), judged(CANDIDATE, 4, true));
	assert_int_equal(s.flow.state, FLOW_INFER);
}

static void to_promotion(struct story *s, struct flow_policy *policy)
{
	policy->stages[PHASE_INFER].is_asked = false;
	evaluated(s, policy);
	story_at(s, MIN(7), judged(CANDIDATE, 4, true));
	assert_int_equal(s->flow.state, FLOW_PROMOTE);
}

static void the_pointer_moves_from_the_version_that_was_compared_with_alone(void **state)
{
	struct flow_policy policy = all_stages();
	struct event other = promotion(EV_PROMOTE_INTENDED, 5);
	struct story s;

	(void)state;
	to_promotion(&s, &policy);
	EVENT_SET_STR(&other, url, "ckpt/20");
	story_at(&s, MIN(8), other);
	story_at(&s, MIN(8), promotion(EV_PROMOTE_INTENDED, 4));
	story_at(&s, MIN(8), promotion(EV_PROMOTE_INTENDED, 6));
	assert_false(s.flow.promoting);
	/* Nothing is done before it is intended. */
	story_at(&s, MIN(8), promotion(EV_PROMOTE_DONE, 5));
	assert_int_equal(s.flow.state, FLOW_PROMOTE);
	story_at(&s, MIN(8), promotion(EV_PROMOTE_INTENDED, 5));
	assert_true(s.flow.promoting);
	story_at(&s, MIN(9), promotion(EV_PROMOTE_DONE, 5));
	assert_int_equal(s.flow.exit_code, 0);
	assert_int_equal(s.flow.state, FLOW_ENDED);
}

static void an_overtaken_promotion_is_refused(void **state)
{
	(void)state;
	for (int intended = 0; intended < 2; intended++) {
		struct flow_policy policy = all_stages();
		struct story s;

		to_promotion(&s, &policy);
		if (intended)
			story_at(&s, MIN(8), promotion(EV_PROMOTE_INTENDED, 5));
		story_at(&s, MIN(9), promotion(EV_PROMOTE_OVERTAKEN, 5));
		assert_int_equal(s.flow.state, FLOW_ENDED);
		assert_int_equal(s.flow.outcome, OUTCOME_REFUSED);
		assert_int_equal(s.flow.exit_code, EXIT_GATE);
	}
}

/* Nobody knows from the intent on whether the entry is there: only the outcome ends the run. */
static void a_stop_or_a_limit_does_not_end_a_promotion_under_way(void **state)
{
	(void)state;
	for (int intended = 0; intended < 2; intended++) {
		struct flow_policy policy = all_stages();
		struct story s;

		policy.deadline_ms = MIN(60);
		memset(&s, 0, sizeof s);
		to_promotion(&s, &policy);
		s.flow.created.ms = MIN(1);
		if (intended)
			story_at(&s, MIN(8), promotion(EV_PROMOTE_INTENDED, 5));
		story_at(&s, MIN(9), stop("enough"));
		assert_int_equal(s.flow.state, intended ? FLOW_PROMOTE : FLOW_ENDED);
		if (!intended)
			continue;
		story_wait(&s, MIN(100));
		assert_int_equal(s.flow.state, FLOW_PROMOTE);
		assert_int_equal(s.effects.count, 1);
		assert_int_equal(s.effects.list[0].kind, EFFECT_PROMOTE);
		story_at(&s, MIN(101), promotion(EV_PROMOTE_DONE, 5));
		assert_int_equal(s.flow.exit_code, 0);
	}
}

/* A training that ends well while the run is to end begins no evaluation. */
static void a_run_that_is_to_end_begins_no_other_phase(void **state)
{
	(void)state;
	for (int stages = 0; stages < 2; stages++) {
		struct flow_policy policy = stages ? all_stages() : story_policy();
		struct story s;

		story_begin(&s, &policy);
		story_at(&s, MIN(1), checked(CACHE_WARM));
		run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
		story_at(&s, MIN(2), stop("enough"));
		story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
		assert_int_equal(s.flow.state, FLOW_ENDED);
		assert_int_equal(s.flow.exit_code, stages ? EXIT_STOPPED : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_goes_through_all_its_phases),
		cmocka_unit_test(a_stage_has_its_own_machines),
		cmocka_unit_test(a_run_has_only_the_phases_that_it_asks_for),
		cmocka_unit_test(without_a_candidate_the_run_fails),
		cmocka_unit_test(each_task_counts_once),
		cmocka_unit_test(tasks_outlive_their_attempt_and_not_their_phase),
		cmocka_unit_test(a_task_that_is_done_is_progress),
		cmocka_unit_test(the_same_failure_three_times_in_one_task_ends_the_phase),
		cmocka_unit_test(each_stage_has_its_own_budget),
		cmocka_unit_test(a_gate_that_says_no_ends_the_run_with_5),
		cmocka_unit_test(a_verdict_is_on_exactly_this_candidate_and_this_version),
		cmocka_unit_test(the_pointer_moves_from_the_version_that_was_compared_with_alone),
		cmocka_unit_test(an_overtaken_promotion_is_refused),
		cmocka_unit_test(a_stop_or_a_limit_does_not_end_a_promotion_under_way),
		cmocka_unit_test(a_run_that_is_to_end_begins_no_other_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
