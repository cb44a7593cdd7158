/* Several runs with one graph key: one precompiles, the others wait for it. */
#include "tests/unit/flow/story.h"

static struct event waiting(void)
{
	return key_event(EV_CACHE_WAITING);
}

static struct event claimed(void)
{
	return key_event(EV_CACHE_CLAIMED);
}

/* A cold cache, and another run is at it. */
static void begin_waiting(struct story *s, const struct flow_policy *policy)
{
	story_begin(s, policy);
	s->key_holder = "other";
	story_at(s, MIN(1), checked(CACHE_COLD));
	story_at(s, MIN(1), waiting());
}

static void the_second_waits_and_trains_on_what_the_first_has_filled(void **state)
{
	struct flow_policy policy = story_policy();
	struct ledger_view view;
	struct story s;

	(void)state;
	begin_waiting(&s, &policy);
	story_wait(&s, MIN(20));
	story_at(&s, MIN(30), checked(CACHE_WARM));
	STORY(&s, "00:00 new -> planned\n"
		  "00:00   check the cache\n"
		  "00:01 planned -> precompile\n"
		  "00:01   claim the graph key, and look again\n"
		  "00:30 precompile -> train\n"
		  "00:30   record attempt.intended train 1\n"
		  "00:30 train 1 intended\n"
		  "00:30   submit stk-r1-train-1\n");
	assert_int_equal(s.flow.attempts[PHASE_PRECOMPILE], 0);
	assert_true(s.flow.cache_proved);
	assert_false(s.flow.key_waited);
	ledger_at(&s.flow.ledger, (struct utc){ MIN(30) }, &view);
	assert_int_equal(view.ms[BIN_VERIFY], MIN(1));
	assert_int_equal(view.ms[BIN_QUEUE], MIN(29));
	assert_int_equal(view.held_total_ms, 0);
}

static void where_the_first_fails_the_second_goes_on_with_its_own_phase_1(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	begin_waiting(&s, &policy);
	s.key_holder = NULL;
	story_wait(&s, MIN(30));
	assert_int_equal(s.flow.attempt_state, ATTEMPT_INTENDED);
	assert_int_equal(s.flow.phase, PHASE_PRECOMPILE);
	assert_false(s.flow.key_waited);
	story_replays(&s);
}

static void it_may_wait_for_one_after_the_other(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	begin_waiting(&s, &policy);
	story_at(&s, MIN(10), waiting());
	assert_int_equal(s.effects.count, 1);
	assert_int_equal(s.effects.list[0].kind, EFFECT_CLAIM_KEY);
	assert_true(s.effects.list[0].recheck);
	/* Still cold says nothing. */
	story_at(&s, MIN(11), checked(CACHE_COLD));
	assert_int_equal(s.effects.list[0].kind, EFFECT_CLAIM_KEY);
	story_replays(&s);
}

static void a_stop_ends_a_run_that_waits(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	begin_waiting(&s, &policy);
	s.len = 0;
	story_at(&s, MIN(5), stop("enough"));
	STORY(&s, "00:05 precompile -> ending\n"
		  "00:05   record run.ended stopped 6: stopped on request: enough\n"
		  "00:05 ending -> ended\n"
		  "00:05   done\n");
}

static void the_deadline_holds_for_a_run_that_waits(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	policy.deadline_ms = MIN(59);
	memset(&s, 0, sizeof s);
	flow_init(&s.flow, &policy);
	s.key_holder = "other";
	story_at(&s, MIN(1), created()); /* 0 would be never */
	story_at(&s, MIN(1), checked(CACHE_COLD));
	story_at(&s, MIN(1), waiting());
	story_wait(&s, MIN(60) - 1);
	assert_int_equal(s.flow.state, FLOW_PRECOMPILE);
	story_wait(&s, MIN(60));
	assert_int_equal(s.flow.state, FLOW_ENDED);
	assert_int_equal(s.flow.exit_code, 5);
}

static void each_attempt_of_phase_1_is_claimed_for_anew(void **state)
{
	struct flow_policy policy = story_policy();
	struct story s;

	(void)state;
	story_begin(&s, &policy);
	story_at(&s, MIN(1), checked(CACHE_COLD));
	s.key_holder = "other";
	story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_HARDWARE_NODE));
	story_wait(&s, MIN(10));
	assert_int_equal(s.effects.list[0].kind, EFFECT_CLAIM_KEY);
	assert_false(s.effects.list[0].recheck);
	/* Somebody has taken it for dead meanwhile. */
	story_at(&s, MIN(10), waiting());
	assert_true(s.effects.list[0].recheck);
	story_at(&s, MIN(20), claimed());
	assert_int_equal(s.flow.attempt_state, ATTEMPT_INTENDED);
	assert_int_equal(s.flow.attempt, 2);
	story_replays(&s);
}

static void a_new_driver_claims_again_before_it_begins(void **state)
{
	struct flow_policy policy = story_policy();
	struct event ev = claimed();
	struct flow flow;

	(void)state;
	flow_init(&flow, &policy);
	flow.state = FLOW_PRECOMPILE;
	flow_apply(&flow, &ev);
	assert_true(flow.key_held);
	ev = took_over(2);
	flow_apply(&flow, &ev);
	assert_false(flow.key_held);
}

static void where_the_lock_is_in_doubt_a_warm_cache_does_not_count(void **state)
{
	struct flow_policy policy = story_policy();
	struct event ev = checked(CACHE_WARM);
	struct effects effects;
	struct flow flow;

	(void)state;
	flow_init(&flow, &policy);
	flow.state = FLOW_PRECOMPILE;
	flow.compile_forced = flow.key_waited = true;
	flow_effects(&flow, (struct utc){ 0 }, &effects);
	assert_int_equal(effects.list[0].kind, EFFECT_CLAIM_KEY);
	assert_false(effects.list[0].recheck);
	assert_int_equal(flow_rule_find(&flow, &ev), -1);
}

static void a_run_knows_its_claim_and_no_other(void **state)
{
	struct flow_policy policy = story_policy();
	char mine[FLOW_ID_MAX], again[FLOW_ID_MAX], other[FLOW_ID_MAX];
	struct flow flow;

	(void)state;
	flow_init(&flow, &policy);
	flow.seed = 7;
	flow_key_nonce(&flow, mine);
	flow.state = FLOW_VERIFY;
	flow.epoch = 3;
	flow_key_nonce(&flow, again);
	flow.seed = 8; /* the same id elsewhere */
	flow_key_nonce(&flow, other);
	assert_string_equal(mine, again);
	assert_string_not_equal(mine, other);
}

static void it_is_kept_until_the_verdict(void **state)
{
	struct flow flow = { .state = FLOW_NEW };

	(void)state;
	for (enum flow_state s = FLOW_NEW; s < FLOW_STATE_COUNT; s++) {
		flow.state = s;
		assert_int_equal(flow_keeps_key(&flow), s == FLOW_PRECOMPILE || s == FLOW_VERIFY);
	}
}

/* ---- a lock of one graph, that another job has left behind ---------------------- */

static void a_verdict_that_waiting_is_in_vain_ends_phase_1_at_once(void **state)
{
	struct flow_policy policy = story_policy();
	struct event ev = verified(1, false, "locked");

	(void)state;
	EVENT_SET(&ev, action, ACTION_STOP);
	for (int trains = 0; trains < 2; trains++) {
		struct story s;

		policy.train_on_incomplete = trains;
		story_begin(&s, &policy);
		story_at(&s, MIN(1), checked(CACHE_COLD));
		story_at(&s, MIN(2), ended(PHASE_PRECOMPILE, 1, CLASS_NONE));
		story_at(&s, MIN(3), ev);
		assert_int_equal(s.flow.attempts[PHASE_PRECOMPILE], 1);
		assert_int_equal(s.flow.state, trains ? FLOW_TRAIN : FLOW_ENDED);
		story_replays(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_waits_and_trains_on_what_the_first_has_filled),
		cmocka_unit_test(where_the_first_fails_the_second_goes_on_with_its_own_phase_1),
		cmocka_unit_test(it_may_wait_for_one_after_the_other),
		cmocka_unit_test(a_stop_ends_a_run_that_waits),
		cmocka_unit_test(the_deadline_holds_for_a_run_that_waits),
		cmocka_unit_test(each_attempt_of_phase_1_is_claimed_for_anew),
		cmocka_unit_test(a_new_driver_claims_again_before_it_begins),
		cmocka_unit_test(where_the_lock_is_in_doubt_a_warm_cache_does_not_count),
		cmocka_unit_test(a_run_knows_its_claim_and_no_other),
		cmocka_unit_test(it_is_kept_until_the_verdict),
		cmocka_unit_test(a_verdict_that_waiting_is_in_vain_ends_phase_1_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
