/* Pauses between phases; time, cost and lost attempts of the phases after a training. */
#include "tests/unit/flow/stages.h"

/* ---- pauses --------------------------------------------------------------------------------- */

static struct event took_over_until(int64_t epoch, enum phase phase)
{
	struct event ev = took_over(epoch);

	EVENT_SET(&ev, pause_after, phase);
	return ev;
}

static void a_run_pauses_after_the_phase_it_was_told(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), took_over_until(1, PHASE_TRAIN));
	story_at(&s, MIN(1), checked(CACHE_WARM));
	run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
	story_at(&s, MIN(2), checkpoint(1, 30, CANDIDATE));
	story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	assert_int_equal(s.effects.list[0].kind, EFFECT_DONE);
	assert_true(flow_is_past(&s.flow, PHASE_TRAIN) && flow_is_past(&s.flow, PHASE_VERIFY));
	assert_false(flow_is_past(&s.flow, PHASE_EVALUATE));
	/* Nobody drives it: hours are idle, and no limit is judged. */
	story_wait(&s, MIN(600));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	story_at(&s, MIN(600), took_over_until(2, PHASE_GATE));
	assert_int_equal(s.flow.state, FLOW_EVALUATE);
	assert_int_equal(s.flow.ledger.ms[BIN_IDLE], MIN(1 + 597)); /* no driver at first */
	story_at(&s, MIN(600), candidate(CANDIDATE));
	run_attempt(&s, MIN(601), PHASE_EVALUATE, 1);
	story_at(&s, MIN(602), task(PHASE_EVALUATE, 1, 0));
	story_at(&s, MIN(602), task(PHASE_EVALUATE, 1, 1));
	story_at(&s, MIN(602), ended(PHASE_EVALUATE, 1, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_GATE);
	story_at(&s, MIN(603), judged(CANDIDATE, 4, true));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	story_at(&s, MIN(604), took_over(3));
	assert_int_equal(s.flow.state, FLOW_INFER);
	assert_int_equal(s.flow.pause_after, -1);
	story_replays(&s);
}

/* A warm cache leaves nothing to do before the training; a driver told to stop there does. */
static void a_phase_that_is_not_needed_is_past(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), took_over_until(1, PHASE_PRECOMPILE));
	assert_int_equal(s.flow.state, FLOW_PLANNED);
	story_at(&s, MIN(1), checked(CACHE_WARM));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	story_at(&s, MIN(2), took_over_until(2, PHASE_VERIFY));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	assert_int_equal(s.flow.attempts[PHASE_TRAIN], 0);
	story_at(&s, MIN(3), took_over(3));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
}

/* The last phase ends the run: there is nothing left to pause before. */
static void a_run_that_is_over_does_not_pause(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), took_over_until(1, PHASE_TRAIN));
	story_at(&s, MIN(1), checked(CACHE_WARM));
	run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
	story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 0);
}

static void a_paused_run_can_be_stopped(void **state)
{
	struct flow_policy policy = all_stages();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), took_over_until(1, PHASE_VERIFY));
	story_at(&s, MIN(1), checked(CACHE_WARM));
	assert_int_equal(s.flow.state, FLOW_PAUSED);
	story_at(&s, MIN(2), stop("enough"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, EXIT_STOPPED);
}

/* ---- time and money ---------------------------------------------------------------------------
 */

static void time_and_cost_are_those_of_the_stage(void **state)
{
	struct flow_policy policy = all_stages();
	struct ledger_view view;
	struct story s;

	(void)state;
	policy.price_per_ms = 1.0 / MIN(1); /* a dollar a minute */
	policy.stages[PHASE_EVALUATE].price_per_ms = 5.0 / MIN(1);
	policy.cost_usd = 11.9;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_WARM));
	run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
	story_at(&s, MIN(2), checkpoint(1, 30, CANDIDATE));
	story_at(&s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
	story_at(&s, MIN(3), candidate(CANDIDATE));
	run_attempt(&s, MIN(4), PHASE_EVALUATE, 1);
	ledger_at(&s.flow.ledger, (struct utc){ MIN(5) }, &view);
	assert_int_equal(view.ms[BIN_EVALUATE], MIN(1));
	assert_int_equal(view.paid_of[PHASE_TRAIN], MIN(2));
	assert_int_equal(view.paid_of[PHASE_EVALUATE], MIN(1));
	/* 2 USD of the training, and 5 a minute since */
	assert_int_equal(limit_reached(&s.flow, (struct utc){ MIN(5) + 58000 }), LIMIT_NONE);
	assert_int_equal(limit_reached(&s.flow, (struct utc){ MIN(6) }), LIMIT_COST);
}

/* The stages after the training take time, too: the last turn tells how long. */
static void a_forecast_adds_what_follows_the_training(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		struct flow_policy policy = all_stages();
		struct event ev = event_of(EV_TRAIN_PROGRESS);
		struct story s;

		policy.deadline_ms = MIN(60);
		policy.later_ms = later ? MIN(20) : 0;
		story_begin_late(&s, &policy);
		run_attempt(&s, MIN(1), PHASE_TRAIN, 1);
		EVENT_SET(&ev, attempt, 1);
		EVENT_SET(&ev, step, 1);
		EVENT_SET(&ev, eta, 45 * 60);
		story_at(&s, MIN(2), ev);
		ev.step = 2;
		story_at(&s, MIN(3), ev);
		assert_int_equal((s.flow.forecast.reported >> LIMIT_DEADLINE & 1) != 0, later);
	}
}

/* An attempt that the journal has lost is found again in any phase that has attempts. */
static void a_lost_attempt_of_a_stage_is_found_again(void **state)
{
	struct flow_policy policy = all_stages();
	struct event damage = event_of(EV_JOURNAL_SALVAGED);
	struct story s;

	(void)state;
	trained(&s, &policy);
	story_at(&s, MIN(3), candidate(CANDIDATE));
	EVENT_SET_STR(&damage, reason, "x");
	story_at(&s, MIN(4), damage);
	story_at(&s, MIN(4), about(EV_ATTEMPT_INTENDED, PHASE_EVALUATE, 2));
	assert_int_equal(s.flow.state, FLOW_EVALUATE);
	assert_int_equal(s.flow.attempt_state, ATTEMPT_UNCERTAIN);
	assert_int_equal(s.flow.attempt, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_pauses_after_the_phase_it_was_told),
		cmocka_unit_test(a_phase_that_is_not_needed_is_past),
		cmocka_unit_test(a_run_that_is_over_does_not_pause),
		cmocka_unit_test(a_paused_run_can_be_stopped),
		cmocka_unit_test(time_and_cost_are_those_of_the_stage),
		cmocka_unit_test(a_forecast_adds_what_follows_the_training),
		cmocka_unit_test(a_lost_attempt_of_a_stage_is_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
