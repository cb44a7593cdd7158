/* Whether a limit will be reached before the end: said in time, and once. */
#include "tests/unit/flow/story.h"

static struct event progress(double eta)
{
	struct event ev = event_of(EV_TRAIN_PROGRESS);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, step, 100);
	if (eta >= 0)
		EVENT_SET(&ev, eta, eta);
	return ev;
}

/* Returns how often a risk for this limit was told so far. */
static int told(const struct story *s, enum run_limit limit)
{
	int count = 0;

	for (int i = 0; i < s->journalled; i++)
		count += s->journal[i].kind == EV_RUN_AT_RISK && s->journal[i].limit == limit;
	return count;
}

static const char *why(const struct story *s)
{
	for (int i = s->journalled - 1; i >= 0; i--)
		if (s->journal[i].kind == EV_RUN_AT_RISK)
			return s->journal[i].reason;
	return "nobody was told";
}

static void a_deadline_that_two_forecasts_miss_is_told_once(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(60);
	story_train_late(&s, &policy);
	story_at(&s, MIN(2), progress(2 * 3600));
	assert_int_equal(told(&s, LIMIT_DEADLINE), 0);
	story_at(&s, MIN(3), progress(2 * 3600));
	assert_int_equal(told(&s, LIMIT_DEADLINE), 1);
	assert_string_equal(why(&s),
			    "at the present pace the training ends 62 min after the deadline");
	for (int minute = 4; minute < 20; minute++)
		story_at(&s, MIN(minute), progress(2 * 3600));
	assert_int_equal(told(&s, LIMIT_DEADLINE), 1);
}

static void a_slow_first_step_alarms_nobody(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(60);
	story_train_late(&s, &policy);
	story_at(&s, MIN(2), progress(9 * 3600));
	story_at(&s, MIN(3), progress(600));
	story_at(&s, MIN(4), progress(9 * 3600));
	story_at(&s, MIN(5), progress(-1));
	story_at(&s, MIN(6), progress(9 * 3600));
	assert_int_equal(told(&s, LIMIT_DEADLINE), 0);
}

static void the_cost_is_forecast_too_and_apart_from_the_deadline(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(60);
	policy.cost_usd = 100;
	policy.price_per_ms = 60.0 / (3600 * 1000); /* a dollar a minute */
	story_train_late(&s, &policy);
	story_at(&s, MIN(11), progress(100 * 60));
	story_at(&s, MIN(11), progress(100 * 60));
	assert_int_equal(told(&s, LIMIT_DEADLINE), 1);
	assert_int_equal(told(&s, LIMIT_COST), 0);
	story_at(&s, MIN(11), progress(100 * 60));
	story_at(&s, MIN(11), progress(100 * 60));
	assert_int_equal(told(&s, LIMIT_COST), 1);
	assert_string_equal(
		why(&s), "at the present pace the run ends at 110.00 USD, allowed are 100.00 USD");
}

static void a_run_without_limits_is_never_at_risk(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(2), progress(9e8));
	story_at(&s, MIN(3), progress(9e8));
	assert_string_equal(why(&s), "nobody was told");
}

/* ---- lead before a limit of time or cost -------------------------------------------- */

static struct flow_policy with_lead(void)
{
	struct flow_policy policy = story_policy();

	policy.drain_ms = MIN(2);
	policy.lead_ms = MIN(5);
	policy.deadline_ms = MIN(60); /* until minute 61 */
	return policy;
}

static void a_training_that_ends_in_time_is_let_do_so(void **state)
{
	struct flow_policy policy = with_lead();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(50), progress(10 * 60));
	story_at(&s, MIN(58), progress(2 * 60));
	story_wait(&s, MIN(61) - 1);
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	assert_string_equal(why(&s), "nobody was told");
	story_wait(&s, MIN(61));
	assert_int_equal(s.flow.limit, LIMIT_DEADLINE);
	assert_string_equal(s.flow.stop_reason, "the run was created 1 h ago");
	/* The same of the money: a dollar a minute from minute 1 on. */
	policy.deadline_ms = 0;
	policy.cost_usd = 60;
	policy.price_per_ms = 1.0 / MIN(1);
	story_train_late(&s, &policy);
	story_at(&s, MIN(50), progress(10 * 60));
	story_wait(&s, MIN(61) - 1);
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(61));
	assert_int_equal(s.flow.limit, LIMIT_COST);
	assert_string_equal(s.flow.stop_reason, "the machines have cost 60.00 USD");
}

static void one_that_should_have_ended_before_is_told_to_save(void **state)
{
	struct flow_policy policy = with_lead();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(50), progress(0)); /* the last step, and what follows hangs */
	story_wait(&s, MIN(56) - 1);
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(56));
	assert_int_equal(s.flow.limit, LIMIT_DEADLINE);
	assert_string_equal(s.flow.stop_reason,
			    "the training was asked to save 5 min before the run's time is over");
	policy.deadline_ms = 0;
	policy.cost_usd = 60;
	policy.price_per_ms = 1.0 / MIN(1);
	story_train_late(&s, &policy);
	story_at(&s, MIN(50), progress(5 * 60));
	/* The forecast stays as it is, whatever else is told in the last of the money. */
	story_at(&s, MIN(56) - 1, checkpoint(1, 100, "s3://b/c/checkpoint-100"));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(56));
	assert_int_equal(s.flow.limit, LIMIT_COST);
	assert_string_equal(
		s.flow.stop_reason,
		"the training was asked to save 5 min before the machines have cost 60.00 USD");
}

static void who_will_be_late_is_told_so_before_it_is_stopped(void **state)
{
	struct flow_policy policy = with_lead();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(50), progress(12 * 60)); /* one forecast is believed by nobody */
	story_wait(&s, MIN(57));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	s.len = 0;
	story_at(&s, MIN(57), progress(5 * 60));
	STORY(&s, "00:57   watch train 1\n"
		  "00:57   record run.at_risk deadline (at the present pace the training ends 60 s "
		  "after the deadline)\n"
		  "00:57   watch train 1\n"
		  "00:57   record limit.reached deadline (the training was asked to save 5 min "
		  "before the run's time is over)\n"
		  "00:57   drain train 1\n"
		  "00:57   watch train 1\n");
	/* Told long ago, it is stopped in time, but not if it has caught up meanwhile. */
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), progress(90 * 60));
	story_at(&s, MIN(11), progress(90 * 60));
	assert_int_equal(told(&s, LIMIT_DEADLINE), 1);
	story_at(&s, MIN(55), progress(3 * 60));
	story_wait(&s, MIN(57));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_at(&s, MIN(57), progress(5 * 60));
	assert_int_equal(s.flow.limit, LIMIT_DEADLINE);
}

/* The training's claim may not be read for minutes; then its steps show that it is under way. */
static void steps_show_a_training_whose_claim_was_not_seen(void **state)
{
	struct flow_policy policy = with_lead();
	struct story s;

	(void)state;
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(50), progress(10 * 60));
	story_wait(&s, MIN(61) - 1);
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(61));
	assert_int_equal(s.flow.limit, LIMIT_DEADLINE);
	assert_string_equal(s.flow.stop_reason, "the run was created 1 h ago");
}

static void no_training_is_begun_where_it_could_only_save(void **state)
{
	struct flow_policy policy = with_lead();
	struct story s;

	(void)state;
	policy.backoff_first_ms = policy.backoff_max_ms = MIN(600);
	story_train_late(&s, &policy);
	story_at(&s, MIN(30), progress(10 * 60)); /* of an attempt that is no more */
	story_at(&s, MIN(50), ended(PHASE_TRAIN, 1, CLASS_UNKNOWN));
	assert_int_equal(s.effects.list[0].kind, EFFECT_WAIT);
	assert_true(s.effects.list[0].until.ms <= MIN(56));
	story_wait(&s, MIN(56));
	assert_int_equal(s.flow.attempt, 1);
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_string_equal(s.flow.end_reason,
			    "limits.deadline is reached: no training starts in the last 5 min "
			    "before the run's time is over");
	/* A training that waits for machines is not let begin. */
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_wait(&s, MIN(56));
	assert_int_equal(s.flow.limit, LIMIT_DEADLINE);
	assert_int_equal(s.effects.list[0].kind, EFFECT_STOP);
	/* No training is begun after a phase 1 that has used up the money. */
	policy.deadline_ms = 0;
	policy.cost_usd = 60;
	policy.price_per_ms = 1.0 / MIN(1);
	memset(&s, 0, sizeof s);
	flow_init(&s.flow, &policy);
	story_at(&s, MIN(1), created());
	story_at(&s, MIN(1), checked(CACHE_COLD));
	story_at(&s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(1), about(EV_ATTEMPT_CLAIMED, PHASE_PRECOMPILE, 1));
	story_wait(&s, MIN(57));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_at(&s, MIN(57), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
	story_at(&s, MIN(57), verified(1, true, "all there"));
	assert_int_equal(s.flow.attempts[PHASE_TRAIN], 0);
	assert_string_equal(s.flow.end_reason,
			    "limits.cost is reached: no training starts in the last 5 min "
			    "before the machines have cost 60.00 USD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deadline_that_two_forecasts_miss_is_told_once),
		cmocka_unit_test(a_slow_first_step_alarms_nobody),
		cmocka_unit_test(the_cost_is_forecast_too_and_apart_from_the_deadline),
		cmocka_unit_test(a_run_without_limits_is_never_at_risk),
		cmocka_unit_test(a_training_that_ends_in_time_is_let_do_so),
		cmocka_unit_test(one_that_should_have_ended_before_is_told_to_save),
		cmocka_unit_test(who_will_be_late_is_told_so_before_it_is_stopped),
		cmocka_unit_test(steps_show_a_training_whose_claim_was_not_seen),
		cmocka_unit_test(no_training_is_begun_where_it_could_only_save),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
