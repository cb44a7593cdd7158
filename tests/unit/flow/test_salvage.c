/*
 * A run whose journal lost events. Nothing is submitted before it is known what is under way: a job
 * that the journal forgot still runs, and would be paid for twice.
 */
#include "tests/unit/flow/story.h"

#include "jobs/base/exitcode.h"
#include "jobs/flow/internal.h"
#include "tests/unit/flow/ledger_book.h"

static struct event salvaged(void)
{
	struct event ev = event_of(EV_JOURNAL_SALVAGED);

	for (int id = 0; id < EVF_COUNT; id++)
		if ((event_rows[EV_JOURNAL_SALVAGED].required >> id & 1) != 0)
			ev.present |= FIELD_SET_OF(id);
	ev.reason = "x";
	return ev;
}

static struct event settled(void)
{
	struct event ev = event_of(EV_JOURNAL_SETTLED);

	ev.present = event_rows[EV_JOURNAL_SETTLED].required;
	ev.reason = "x";
	return ev;
}

static struct flow flow;
static struct effects effects;

static bool asks_to_settle_alone(void)
{
	flow_effects(&flow, flow.at, &effects);
	return effects.count == 1 && effects.list[0].kind == EFFECT_SETTLE;
}

static void place(enum flow_state state, enum attempt_state attempt_state)
{
	struct flow_policy policy = story_policy();

	flow_init(&flow, &policy);
	flow.at.ms = 1000;
	flow.state = state;
	flow.attempt_state = attempt_state;
	flow.phase = state == FLOW_PRECOMPILE ? PHASE_PRECOMPILE : PHASE_TRAIN;
	flow.attempt = flow.attempts[PHASE_TRAIN] = flow.attempts[PHASE_PRECOMPILE] = 2;
}

static void after_damage_the_engine_is_asked_and_nothing_else_is_done(void **state)
{
	(void)state;
	for (int in = FLOW_PLANNED; in < FLOW_ENDED; in++) {
		struct event damage = salvaged(), known = settled();

		place((enum flow_state)in, ATTEMPT_NONE);
		assert_false(asks_to_settle_alone());
		flow_apply(&flow, &damage);
		assert_int_equal(flow.state, in);
		assert_true(asks_to_settle_alone());
		flow_apply(&flow, &known);
		assert_false(asks_to_settle_alone());
	}
	/* A run that has ended has nothing to settle. */
	place(FLOW_ENDED, ATTEMPT_NONE);
	flow.unsettled = true;
	assert_false(asks_to_settle_alone());
}

/* The end that was journalled behind the damage is journalled again as it was. */
static void an_end_behind_the_damage_is_the_end(void **state)
{
	struct event ev = salvaged();

	(void)state;
	for (int bits = 0; bits < 4; bits++) {
		ev = salvaged();
		ev.state = OUTCOME_FAILED;
		ev.exit_code = EXIT_RUN_FAILED;
		if (bits & 1)
			EVENT_SET(&ev, state, OUTCOME_FAILED);
		if (bits & 2)
			EVENT_SET(&ev, exit_code, EXIT_RUN_FAILED);
		ev.class = CLASS_COMM;
		ev.evidence = "unset";
		place(FLOW_TRAIN, ATTEMPT_RUNNING);
		flow_apply(&flow, &ev);
		assert_int_equal(flow.state == FLOW_ENDING, bits == 3);
	}
	assert_int_equal(flow.outcome, OUTCOME_FAILED);
	assert_int_equal(flow.exit_code, EXIT_RUN_FAILED);
	assert_int_equal(flow.end_class, CLASS_NONE);
	assert_string_equal(flow.end_reason, "");
	/* what is under way is found out before that, too */
	assert_true(asks_to_settle_alone());
	EVENT_SET(&ev, class, CLASS_COMM);
	EVENT_SET_STR(&ev, evidence, "why");
	place(FLOW_TRAIN, ATTEMPT_RUNNING);
	flow_apply(&flow, &ev);
	assert_int_equal(flow.end_class, CLASS_COMM);
	assert_string_equal(flow.end_reason, "why");
}

/* The newest attempt on the engine is the run's own, if the journal has none of it. */
static void an_attempt_that_the_journal_lost_is_looked_for(void **state)
{
	static const enum phase phases[] = { PHASE_TRAIN, PHASE_PRECOMPILE };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (int64_t attempt = 1; attempt < 6; attempt++)
			for (int with = 0; with < 2; with++) {
				struct event ev = about(EV_ATTEMPT_INTENDED, phases[i], attempt);

				EVENT_SET_STR(&ev, graph_key, "k1");
				place(FLOW_PLANNED, with ? ATTEMPT_RUNNING : ATTEMPT_NONE);
				flow_apply(&flow, &ev);
				assert_int_equal(flow.state, FLOW_PLANNED); /* not unless damaged */
				flow.unsettled = true;
				flow.cache_proved = i != 0;
				flow_apply(&flow, &ev);
				if (attempt <= 2) {
					assert_int_equal(flow.state, FLOW_PLANNED);
					continue;
				}
				assert_int_equal(flow.state, i ? FLOW_PRECOMPILE : FLOW_TRAIN);
				assert_int_equal(flow.attempt_state, ATTEMPT_UNCERTAIN);
				assert_int_equal(flow.phase, phases[i]);
				assert_int_equal(flow.attempt, attempt);
				/* the attempts between, and the open one, had machines */
				assert_int_equal(flow.machines, attempt - 3 + with);
				/* its cache was proved before it was intended */
				assert_int_equal(flow.cache_proved, i == 0);
				assert_string_equal(flow.lock_key, i == 0 ? "k1" : "");
				assert_false(flow.stop_requested);
			}
	/* without a phase 1 there is no cache to prove */
	place(FLOW_PLANNED, ATTEMPT_NONE);
	flow.unsettled = true;
	flow.policy.compiles = false;
	{
		struct event ev = about(EV_ATTEMPT_INTENDED, PHASE_TRAIN, 3);

		flow_apply(&flow, &ev);
	}
	assert_false(flow.cache_proved);
	assert_string_equal(flow.nonce, "0123456789abcdefghjkmnpqrs");
}

static void the_attempt_after_the_one_that_is_known_may_be_of_the_same_phase(void **state)
{
	struct event ev = about(EV_ATTEMPT_INTENDED, PHASE_TRAIN, 3);

	(void)state;
	place(FLOW_TRAIN, ATTEMPT_RUNNING);
	flow.unsettled = true;
	flow_apply(&flow, &ev);
	assert_int_equal(flow.state, FLOW_TRAIN);
	assert_int_equal(flow.attempt, 3);
	assert_int_equal(flow.attempt_state, ATTEMPT_UNCERTAIN);
}

static void a_run_that_is_ending_ends_an_attempt_that_is_found(void **state)
{
	struct event ev = about(EV_ATTEMPT_INTENDED, PHASE_TRAIN, 3);

	(void)state;
	place(FLOW_ENDING, ATTEMPT_NONE);
	flow.unsettled = true;
	flow_apply(&flow, &ev);
	assert_int_equal(flow.state, FLOW_TRAIN);
	assert_true(flow.stop_requested);
	assert_int_equal(flow.drain_until.ms, flow.at.ms);
}

/* Nobody can say any more what the lost time was spent on; what the attempt held is paid. */
static void lost_time_is_unknown_and_what_was_held_is_paid(void **state)
{
	struct ledger_view view;
	struct book b;

	(void)state;
	begin_training(&b); /* its machines since 2000 */
	add(&b, 4000, progress(1, 11));
	add(&b, 6000, salvaged());
	assert_int_equal(bin(&b, BIN_UNKNOWN), 2000);
	assert_int_equal(bin(&b, BIN_STEPS), 1000);
	/* another attempt is found: the end of the first is lost */
	add(&b, 7000, intended(PHASE_TRAIN, 2, -1));
	assert_int_equal(bin(&b, BIN_QUEUE), 900 + 1000);
	add(&b, 8000, settled());
	ledger_at(&b.ledger, (struct utc){ 9000 }, &view);
	assert_int_equal(view.paid_ms, 4000);
	assert_int_equal(view.held_total_ms, 4000);
	add(&b, 9000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	add(&b, 10000, ended(PHASE_TRAIN, 2, CLASS_COMM));
	ledger_at(&b.ledger, (struct utc){ 10000 }, &view);
	assert_int_equal(view.paid_ms, 5000);
	/* once it is settled, an attempt under way is not begun again */
	add(&b, 11000, intended(PHASE_TRAIN, 3, -1));
	add(&b, 12000, intended(PHASE_TRAIN, 4, -1));
	assert_int_equal(b.ledger.attempt, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_damage_the_engine_is_asked_and_nothing_else_is_done),
		cmocka_unit_test(an_end_behind_the_damage_is_the_end),
		cmocka_unit_test(an_attempt_that_the_journal_lost_is_looked_for),
		cmocka_unit_test(the_attempt_after_the_one_that_is_known_may_be_of_the_same_phase),
		cmocka_unit_test(a_run_that_is_ending_ends_an_attempt_that_is_found),
		cmocka_unit_test(lost_time_is_unknown_and_what_was_held_is_paid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
