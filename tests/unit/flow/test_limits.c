/* Drains, limits and continuity, told as stories. */
#include "tests/unit/flow/story.h"

#include "jobs/flow/internal.h"
#include "jobs/flow/rules.h"

static struct flow_policy with_drain(void)
{
	struct flow_policy policy = story_policy();

	policy.drain_ms = MIN(2);
	return policy;
}

static struct event drain(const char *reason)
{
	struct event ev = event_of(EV_REQUEST_DRAIN);

	EVENT_SET_STR(&ev, reason, reason);
	return ev;
}

static struct event continued(enum continuity continuity, const char *reason)
{
	struct event ev = event_of(EV_TRAIN_CONTINUITY);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, continuity, continuity);
	EVENT_SET_STR(&ev, reason, reason);
	return ev;
}

/* ---- drain --------------------------------------------------------------------- */

static void a_stop_lets_a_training_save_first(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), stop("enough"));
	story_at(&s, MIN(11), checkpoint(1, 500, "ckpt/500"));
	story_at(&s, MIN(12), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:10   drain train 1\n"
		  "00:10   watch train 1\n"
		  "00:12 train -> ending\n"
		  "00:12   record run.ended stopped 6: stopped on request: enough\n"
		  "00:12 ending -> ended\n"
		  "00:12   done\n");
	assert_int_equal(s.flow.checkpoint_step, 500);
}

static void a_drain_that_takes_too_long_becomes_a_stop(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), drain("maintenance"));
	assert_int_equal(s.effects.list[0].until.ms, MIN(12) + FLOW_DRAIN_MARGIN_MS);
	story_wait(&s, MIN(12) + FLOW_DRAIN_MARGIN_MS - 1);
	story_wait(&s, MIN(12) + FLOW_DRAIN_MARGIN_MS);
	STORY(&s, "00:10   drain train 1\n"
		  "00:10   watch train 1\n"
		  "00:12   stop train 1\n"
		  "00:12   watch train 1\n");
}

static void asked_twice_to_stop_it_saves_for_as_long_as_after_the_first_time(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), stop("enough"));
	story_at(&s, MIN(10), drain("later")); /* says nothing new */
	assert_int_equal(s.effects.list[0].kind, EFFECT_DRAIN);
	story_at(&s, MIN(11), stop("now"));
	assert_int_equal(s.effects.list[0].kind, EFFECT_DRAIN);
	assert_int_equal(s.effects.list[0].until.ms, MIN(12) + FLOW_DRAIN_MARGIN_MS);
	assert_string_equal(s.flow.stop_reason, "enough");
}

static void what_has_nothing_to_save_is_stopped_at_once(void **state)
{
	struct flow_policy policy = with_drain(), none = story_policy();
	struct story s;

	(void)state;
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(3), drain(NULL));
	assert_int_equal(s.effects.list[0].kind, EFFECT_STOP); /* not claimed */
	story_train_late(&s, &none);
	story_at(&s, MIN(3), drain(NULL));
	assert_int_equal(s.effects.list[0].kind, EFFECT_STOP); /* no time to */
	memset(&s, 0, sizeof s);
	flow_init(&s.flow, &policy);
	story_at(&s, MIN(1), created());
	story_at(&s, MIN(1), checked(CACHE_COLD));
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(2), about(EV_ATTEMPT_CLAIMED, PHASE_PRECOMPILE, 1));
	story_at(&s, MIN(3), drain(NULL));
	assert_int_equal(s.effects.list[0].kind, EFFECT_STOP); /* phase 1 computes zeros */
}

static void a_drain_outlives_its_driver(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), stop(NULL));
	story_at(&s, MIN(11), took_over(2));
	assert_int_equal(s.effects.list[0].kind, EFFECT_DRAIN);
	story_at(&s, MIN(13), took_over(3));
	assert_int_equal(s.effects.list[0].kind, EFFECT_STOP);
}

static void a_drain_between_attempts_ends_the_run(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), ended(PHASE_TRAIN, 1, CLASS_UNKNOWN));
	story_at(&s, MIN(10), drain("maintenance"));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 6);
	assert_string_equal(s.flow.end_reason, "stopped on request: maintenance");
}

/* ---- limits -------------------------------------------------------------------- */

static void the_deadline_drains_and_refuses(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(60);
	story_train_late(&s, &policy);
	story_wait(&s, MIN(61) - 1);
	story_wait(&s, MIN(61));
	story_at(&s, MIN(62), checkpoint(1, 500, "ckpt/500"));
	story_at(&s, MIN(62), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "01:01   watch train 1\n"
		  "01:01   record limit.reached deadline (the run was created 1 h ago)\n"
		  "01:01   drain train 1\n"
		  "01:01   watch train 1\n"
		  "01:02 train -> ending\n"
		  "01:02   record run.ended refused 5: limits.deadline is reached: the run was "
		  "created 1 h ago\n"
		  "01:02 ending -> ended\n"
		  "01:02   done\n");
}

/* If machines are a service's, the last of the time and of the money is for saving. */
static void a_training_is_told_in_time_where_that_is_wanted(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.lead_ms = MIN(5);
	policy.deadline_ms = MIN(60);
	story_train_late(&s, &policy);
	story_wait(&s, MIN(56) - 1);
	story_wait(&s, MIN(56));
	story_at(&s, MIN(57), checkpoint(1, 500, "ckpt/500"));
	story_at(&s, MIN(57), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:56   watch train 1\n"
		  "00:56   record limit.reached deadline (the training was asked to save 5 min "
		  "before the run's time is over)\n"
		  "00:56   drain train 1\n"
		  "00:56   watch train 1\n"
		  "00:57 train -> ending\n"
		  "00:57   record run.ended refused 5: limits.deadline is reached: the training "
		  "was asked to save 5 min before the run's time is over\n"
		  "00:57 ending -> ended\n"
		  "00:57   done\n");
}

static void never_before_half_of_a_limit(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.lead_ms = MIN(50);
	policy.deadline_ms = MIN(60);
	story_train_late(&s, &policy);
	assert_int_equal(limit_reached(&s.flow, (struct utc){ s.flow.created.ms + MIN(30) - 1 }),
			 LIMIT_NONE);
	assert_int_equal(limit_reached(&s.flow, (struct utc){ s.flow.created.ms + MIN(30) }),
			 LIMIT_DEADLINE);
	policy.deadline_ms = 0;
	policy.price_per_ms = 0.001;
	policy.cost_usd = 3600; /* an hour of its machines */
	story_train_late(&s, &policy);
	assert_int_equal(limit_reached(&s.flow, (struct utc){ s.flow.claimed_at.ms + MIN(30) - 1 }),
			 LIMIT_NONE);
	assert_int_equal(limit_reached(&s.flow, (struct utc){ s.flow.claimed_at.ms + MIN(30) }),
			 LIMIT_COST);
}

static void the_deadline_counts_in_every_phase_and_between_attempts(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(60);
	memset(&s, 0, sizeof s);
	flow_init(&s.flow, &policy);
	story_at(&s, MIN(1), created());
	story_wait(&s, MIN(61));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 5);
	story_train_late(&s, &policy);
	policy.backoff_first_ms = policy.backoff_max_ms = MIN(600);
	s.flow.policy = policy;
	story_at(&s, MIN(59), ended(PHASE_TRAIN, 1, CLASS_UNKNOWN));
	assert_int_equal(s.effects.list[0].kind, EFFECT_WAIT);
	assert_true(s.effects.list[0].until.ms <= MIN(61));
	story_wait(&s, MIN(61));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 5);
	assert_int_equal(s.flow.outcome, OUTCOME_REFUSED);
	/* an intent is looked for first */
	story_begin_late(&s, &policy);
	story_wait(&s, MIN(61));
	assert_int_equal(s.flow.attempt_state, ATTEMPT_UNCERTAIN);
	story_at(&s, MIN(62), about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 5);
}

static void a_training_that_ends_well_after_its_deadline_has_succeeded(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(60);
	story_train_late(&s, &policy);
	story_at(&s, MIN(90), ended(PHASE_TRAIN, 1, CLASS_NONE)); /* nobody looked before */
	assert_int_equal(s.flow.outcome, OUTCOME_SUCCEEDED);
}

static void the_cost_cap_counts_what_jobs_held(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.price_per_ms = 1.0 / 60000; /* a dollar a minute */
	policy.cost_usd = 30;
	story_train_late(&s, &policy);
	story_at(&s, MIN(11), ended(PHASE_TRAIN, 1, CLASS_UNKNOWN));
	story_wait(&s, MIN(100)); /* waiting costs nothing */
	assert_int_equal(s.flow.attempt, 2);
	story_at(&s, MIN(100), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 2));
	story_at(&s, MIN(100), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	story_wait(&s, MIN(119));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(120));
	assert_int_equal(s.flow.limit, LIMIT_COST);
	assert_int_equal(s.effects.list[0].kind, EFFECT_DRAIN);
	story_at(&s, MIN(121), ended(PHASE_TRAIN, 2, CLASS_STOPPED));
	assert_int_equal(s.flow.exit_code, 5);
	assert_string_equal(s.flow.end_reason,
			    "limits.cost is reached: the machines have cost 30.00 USD");
}

static void without_a_price_there_is_no_cost_and_no_cap(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.cost_usd = 0.01;
	story_train_late(&s, &policy);
	story_wait(&s, MIN(100000));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
}

static void the_queue_limit_counts_until_the_claim(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.queue_ms = MIN(10);
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	s.len = 0;
	story_wait(&s, MIN(12));
	story_at(&s, MIN(13), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s,
	      "00:12   watch train 1\n"
	      "00:12   record limit.reached queue (train 1 has waited for 10 min in the queue)\n"
	      "00:12   stop train 1\n"
	      "00:12   watch train 1\n"
	      "00:13 train -> ending\n"
	      "00:13   record run.ended refused 5: limits.queue is reached: train 1 has waited "
	      "for 10 min in the queue\n"
	      "00:13 ending -> ended\n"
	      "00:13   done\n");
	story_train_late(&s, &policy);
	story_wait(&s, MIN(500));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
}

static void the_start_limit_counts_from_the_claim_to_the_command(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.start_ms = MIN(30);
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(100), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	story_wait(&s, MIN(129));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(130));
	assert_int_equal(s.flow.limit, LIMIT_START);
	story_train_late(&s, &policy);
	story_wait(&s, MIN(500));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
}

static void the_start_limit_leaves_the_check_up_out(void **state)
{
	struct event ev = about(EV_HEALTH_CHECKED, PHASE_TRAIN, 1);
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.start_ms = MIN(30);
	policy.health_ms = MIN(20);
	EVENT_SET(&ev, healthy, true);
	EVENT_SET(&ev, since, MIN(101));
	EVENT_SET(&ev, finished, MIN(106));
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(100), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	assert_int_equal(limit_next_ms(&s.flow), MIN(150)); /* it may take so long */
	story_at(&s, MIN(107), ev);
	assert_int_equal(limit_next_ms(&s.flow), MIN(135)); /* it took five minutes */
	story_wait(&s, MIN(134));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	story_wait(&s, MIN(135));
	assert_int_equal(s.flow.limit, LIMIT_START);
}

/* A driver that comes late sees first and judges then. */
static void a_limit_is_judged_after_the_attempt_was_looked_at(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.start_ms = MIN(30);
	story_begin_late(&s, &policy);
	story_at(&s, MIN(2), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(3), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	flow_effects(&s.flow, (struct utc){ MIN(500) }, &s.effects);
	assert_int_equal(s.effects.count, 2);
	assert_int_equal(s.effects.list[0].kind, EFFECT_WATCH);
	assert_int_equal(s.effects.list[1].kind, EFFECT_RECORD);
	story_at(&s, MIN(500), about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	assert_int_equal(s.effects.count, 1);
}

static void what_cannot_be_seen_for_too_long_is_left_as_it_is(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.unreachable_ms = MIN(60);
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	story_wait(&s, MIN(69));
	story_wait(&s, MIN(70));
	assert_int_equal(s.flow.state, FLOW_TRAIN);
	story_at(&s, MIN(200), took_over(2)); /* with a patience of its own */
	story_wait(&s, MIN(259));
	story_at(&s, MIN(259), about(EV_ATTEMPT_FOUND, PHASE_TRAIN, 1));
	story_wait(&s, MIN(600));
	STORY(&s, "00:10 train 1 lost\n"
		  "01:10   watch train 1\n"
		  "01:10   record limit.reached unreachable (train 1 could not be seen for 1 h)\n"
		  "01:10   leave\n"
		  "03:20   watch train 1\n"
		  "04:19 train 1 running\n");
}

static void what_is_sent_again_and_again_is_unseen_since_the_first_time(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.unreachable_ms = MIN(60);
	story_begin_late(&s, &policy);
	story_at(&s, MIN(10), about(EV_ATTEMPT_UNCERTAIN, PHASE_TRAIN, 1));
	for (int i = 0; i < 5; i++) {
		story_at(&s, MIN(20 + 10 * i), about(EV_ATTEMPT_MISSING, PHASE_TRAIN, 1));
		story_at(&s, MIN(20 + 10 * i), about(EV_ATTEMPT_UNCERTAIN, PHASE_TRAIN, 1));
	}
	story_wait(&s, MIN(69));
	assert_int_equal(s.effects.list[0].kind, EFFECT_FIND);
	story_wait(&s, MIN(70));
	assert_int_equal(s.flow.limit, LIMIT_NONE);
	assert_int_equal(s.effects.list[s.effects.count - 1].kind, EFFECT_LEAVE);
	/* An attempt that was taken in the end is lost since it was lost. */
	story_at(&s, MIN(71), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(&s, MIN(72), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	assert_int_equal(s.flow.unobserved_since.ms, MIN(72));
}

static void a_stop_does_not_wait_for_ever_for_what_cannot_be_seen(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.unreachable_ms = MIN(60);
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), about(EV_ATTEMPT_LOST, PHASE_TRAIN, 1));
	story_at(&s, MIN(11), stop(NULL));
	story_wait(&s, MIN(70));
	assert_int_equal(s.effects.list[0].kind, EFFECT_LEAVE);
	assert_int_equal(s.flow.state, FLOW_TRAIN);
}

/* ---- continuity ------------------------------------------------------------------ */

static void a_training_that_ignores_its_checkpoint_is_stopped(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	policy.stop_on_mismatch = true;
	story_train_late(&s, &policy);
	story_at(&s, MIN(10), continued(CONTINUITY_VERIFIED, NULL));
	story_at(&s, MIN(10), continued(CONTINUITY_UNVERIFIED, NULL));
	assert_false(s.flow.stop_requested);
	story_at(&s, MIN(11), continued(CONTINUITY_FAILED, "step 1 after 500"));
	story_at(&s, MIN(12), ended(PHASE_TRAIN, 1, CLASS_STOPPED));
	STORY(&s, "00:11   stop train 1\n"
		  "00:11   watch train 1\n"
		  "00:12 train -> ending\n"
		  "00:12   record run.ended failed 1: the training did not go on from its "
		  "checkpoint: step 1 after 500\n"
		  "00:12 ending -> ended\n"
		  "00:12   done\n");
	assert_int_equal(s.flow.end_class, CLASS_USER_CONFIG);
	assert_true(strstr(s.flow.end_hint, "STOKER_RESUME_FROM") != NULL);
}

static void a_mismatch_is_only_shown_where_the_spec_says_so(void **state)
{
	struct flow_policy policy = with_drain();
	struct story s;

	(void)state;
	story_train_late(&s, &policy);
	story_at(&s, MIN(11), continued(CONTINUITY_FAILED, "step 1 after 500"));
	assert_false(s.flow.stop_requested);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_lets_a_training_save_first),
		cmocka_unit_test(a_drain_that_takes_too_long_becomes_a_stop),
		cmocka_unit_test(asked_twice_to_stop_it_saves_for_as_long_as_after_the_first_time),
		cmocka_unit_test(what_has_nothing_to_save_is_stopped_at_once),
		cmocka_unit_test(a_drain_outlives_its_driver),
		cmocka_unit_test(a_drain_between_attempts_ends_the_run),
		cmocka_unit_test(the_deadline_drains_and_refuses),
		cmocka_unit_test(a_training_is_told_in_time_where_that_is_wanted),
		cmocka_unit_test(never_before_half_of_a_limit),
		cmocka_unit_test(the_deadline_counts_in_every_phase_and_between_attempts),
		cmocka_unit_test(a_training_that_ends_well_after_its_deadline_has_succeeded),
		cmocka_unit_test(the_cost_cap_counts_what_jobs_held),
		cmocka_unit_test(without_a_price_there_is_no_cost_and_no_cap),
		cmocka_unit_test(the_queue_limit_counts_until_the_claim),
		cmocka_unit_test(the_start_limit_counts_from_the_claim_to_the_command),
		cmocka_unit_test(the_start_limit_leaves_the_check_up_out),
		cmocka_unit_test(a_limit_is_judged_after_the_attempt_was_looked_at),
		cmocka_unit_test(what_cannot_be_seen_for_too_long_is_left_as_it_is),
		cmocka_unit_test(what_is_sent_again_and_again_is_unseen_since_the_first_time),
		cmocka_unit_test(a_stop_does_not_wait_for_ever_for_what_cannot_be_seen),
		cmocka_unit_test(a_training_that_ignores_its_checkpoint_is_stopped),
		cmocka_unit_test(a_mismatch_is_only_shown_where_the_spec_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
