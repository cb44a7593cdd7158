/* What the flow keeps of each event, one event at a time: what is kept, what is reset, and the
 * borders between. The state before is written down, not played. */
#include "tests/unit/flow/story.h"

#include "jobs/base/mem.h"
#include "jobs/flow/internal.h"
#include "jobs/flow/rules.h"

static struct flow flow;

static void begin(enum phase phase)
{
	struct flow_policy policy = story_policy();

	policy.health_ms = MIN(10);
	policy.drain_ms = MIN(5);
	flow_init(&flow, &policy);
	flow.state = phase == PHASE_TRAIN ? FLOW_TRAIN : FLOW_PRECOMPILE;
	flow.phase = phase;
	flow.at.ms = MIN(60);
	flow.seed = 7;
}

static void a_new_driver_waits_anew_for_what_it_cannot_see(void **state)
{
	(void)state;
	for (int at = 0; at < FLOW_STATE_COUNT; at++) {
		struct event ev = took_over(3);
		bool may_have_job = state_has_attempts(at);

		begin(PHASE_TRAIN);
		flow.state = (enum flow_state)at;
		flow.leaving = flow.key_held = true;
		transition_driver(&flow, &ev);
		assert_int_equal(flow.unobserved_since.ms, may_have_job ? MIN(60) : 0);
		assert_int_equal(flow.epoch, 3);
		assert_false(flow.leaving || flow.key_held);
		ev = took_over(2);
		transition_driver(&flow, &ev);
		assert_int_equal(flow.epoch, 3);
	}
}

/* A graph key that does not fit is not known, which is better than another graph's. */
static void a_graph_key_is_kept_whole_or_not_at_all(void **state)
{
	struct event ev = checked(CACHE_WARM);
	char key[FLOW_KEY_MAX + 1];

	(void)state;
	memset(key, 'k', sizeof key);
	key[FLOW_KEY_MAX - 1] = '\0';
	EVENT_SET_STR(&ev, graph_key, key);
	begin(PHASE_TRAIN);
	transition_cache(&flow, &ev);
	assert_string_equal(flow.lock_key, key);
	key[FLOW_KEY_MAX - 1] = 'k';
	key[FLOW_KEY_MAX] = '\0';
	transition_cache(&flow, &ev);
	assert_string_equal(flow.lock_key, "");
}

static void a_verdict_on_the_cache_ends_the_order_to_compile(void **state)
{
	struct event ev = verified(1, true, "");

	(void)state;
	begin(PHASE_PRECOMPILE);
	flow.compile_forced = true;
	transition_verification(&flow, &ev);
	assert_false(flow.compile_forced);
	assert_true(flow.cache_proved);
}

/* Nothing of the attempt before is left: above all not its forecast, which would drain this one. */
static void an_intent_begins_from_nothing(void **state)
{
	struct event ev = about(EV_ATTEMPT_INTENDED, PHASE_TRAIN, 2);

	(void)state;
	begin(PHASE_TRAIN);
	flow.forecast.ends.ms = MIN(70);
	flow.forecast.times = flow.jit_graphs = flow.workers = 5;
	flow.claimed = flow.started = flow.saved = flow.chosen = flow.checked = flow.jit_reported =
		true;
	flow.submitted_at = flow.claimed_at = flow.unobserved_since = flow.until = flow.at;
	transition_intent(&flow, &ev);
	assert_int_equal(flow.forecast.ends.ms, 0);
	assert_int_equal(flow.forecast.times, 0);
	assert_int_equal(flow.jit_graphs, 0);
	assert_int_equal(flow.workers, 0);
	assert_false(flow.claimed || flow.started || flow.saved || flow.chosen || flow.checked ||
		     flow.jit_reported);
	assert_int_equal(flow.submitted_at.ms + flow.claimed_at.ms + flow.unobserved_since.ms +
				 flow.until.ms,
			 0);
	assert_string_equal(flow.job, "as-it-was-called");
	assert_string_equal(flow.nonce, "0123456789abcdefghjkmnpqrs");
	assert_string_equal(flow.resumed_from, "");
}

/* Names that the journal cannot hold whole are made again as any driver would make them. */
static void an_intent_with_endless_names_gets_those_of_the_run(void **state)
{
	struct event ev = about(EV_ATTEMPT_INTENDED, PHASE_TRAIN, 2);
	char endless[FLOW_URL_MAX + 1], nonce[FLOW_ID_MAX];

	(void)state;
	memset(endless, 'x', sizeof endless);
	endless[FLOW_URL_MAX] = '\0';
	EVENT_SET_STR(&ev, job, endless);
	EVENT_SET_STR(&ev, nonce, endless);
	EVENT_SET_STR(&ev, resumed_from, endless);
	begin(PHASE_TRAIN);
	transition_intent(&flow, &ev);
	flow_nonce(&flow, PHASE_TRAIN, 2, nonce);
	assert_string_equal(flow.job, "stk-r1-train-2");
	assert_string_equal(flow.nonce, nonce);
	assert_string_equal(flow.resumed_from, "");
}

/* A claim that is reported again, after the attempt was lost, does not begin limits.start again. */
static void the_first_claim_counts(void **state)
{
	struct event ev = about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1);

	(void)state;
	begin(PHASE_TRAIN);
	transition_claim(&flow, &ev);
	flow.at.ms = MIN(90);
	transition_claim(&flow, &ev);
	assert_true(flow.claimed);
	assert_int_equal(flow.claimed_at.ms, MIN(60));
}

/* Returns how long the check-up took that is reported so; -2: the member is absent. */
static int64_t checkup(int64_t since, int64_t finished)
{
	struct event ev = about(EV_HEALTH_CHECKED, PHASE_TRAIN, 1);

	ev.since = since;
	ev.finished = finished;
	if (since != -2)
		EVENT_SET(&ev, since, since);
	if (finished != -2)
		EVENT_SET(&ev, finished, finished);
	begin(PHASE_TRAIN);
	transition_health(&flow, &ev);
	assert_true(flow.checked);
	return flow.checkup_ms;
}

static void a_checkup_took_what_both_of_its_times_say(void **state)
{
	(void)state;
	assert_int_equal(checkup(1000, 61000), 60000);
	assert_int_equal(checkup(0, 5), 5);
	assert_int_equal(checkup(1000, 1000 + MIN(10) - 1), MIN(10) - 1);
	assert_int_equal(checkup(1000, 1000 + MIN(11)), MIN(10));
	assert_int_equal(checkup(61000, 1000), 0);
	assert_int_equal(checkup(-1, 5), 0);
	assert_int_equal(checkup(-2, 5), 0);
	assert_int_equal(checkup(1000, -2), 0);
	assert_int_equal(checkup(-2, -2), 0);
}

static void a_checkpoint_and_a_success_end_a_row_of_failures(void **state)
{
	struct event ev = checkpoint(1, 10, "u"), well = ended(PHASE_TRAIN, 1, CLASS_NONE);

	(void)state;
	for (int which = 0; which < 2; which++) {
		static const struct flow_budget none;
		struct flow_budget *budget = &flow.budget[PHASE_TRAIN];

		begin(PHASE_TRAIN);
		budget->failures = 4;
		budget->failures_without_checkpoint = budget->backoff_failures = 3;
		budget->causes[0].signature = budget->causes[FLOW_CAUSES - 1].signature = 1;
		flow.compile_exit = 70;
		flow.compile_failed = true;
		if (which == 0) {
			transition_checkpoint(&flow, &ev);
			assert_true(flow.saved);
		} else {
			transition_success(&flow, &well);
			assert_int_equal(flow.compile_exit, 0);
			assert_false(flow.compile_failed);
		}
		assert_int_equal(budget->failures, 4);
		assert_int_equal(budget->failures_without_checkpoint, 0);
		assert_int_equal(budget->backoff_failures, 0);
		assert_memory_equal(budget->causes, none.causes, sizeof none.causes);
	}
}

/* A machine that lost power loses entries that were not synced: the verdict of the driver that
 * takes over afterwards does not use up the one repeat, unless the compiler itself reported a
 * failure. */
static void a_driver_that_takes_over_before_the_verdict_grants_a_repeat(void **state)
{
	static const enum flow_state states[] = { FLOW_PLANNED, FLOW_PRECOMPILE, FLOW_VERIFY,
						  FLOW_TRAIN };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(states); i++)
		for (int failed = 0; failed < 2; failed++) {
			struct event ev = { .kind = EV_DRIVER_TOOK_OVER, .epoch = 2 };

			begin(PHASE_PRECOMPILE);
			flow.state = states[i];
			flow.incomplete_retried = true;
			flow.compile_failed = failed;
			transition_driver(&flow, &ev);
			assert_int_equal(flow.incomplete_retried,
					 states[i] != FLOW_VERIFY || failed);
			assert_int_equal(flow.epoch, 2);
		}
}

/* Compilers in parallel run out of memory together. An attempt that was cut short may leave entries
 * half written: the repeat after an incomplete cache is not spent on it. */
static void only_a_compiler_that_fails_in_phase_1_asks_for_fewer_at_once(void **state)
{
	(void)state;
	for (int class = 0; class < CLASS_COUNT; class ++)
		for (int phase = 0; phase < 2; phase++) {
			enum phase of = phase == 0 ? PHASE_PRECOMPILE : PHASE_TRAIN;
			struct event ev = ended(of, 1, (enum failure_class) class);

			begin(of);
			flow.incomplete_retried = true;
			transition_failure(&flow, &ev);
			assert_int_equal(flow.fewer_workers, phase == 0 && class == CLASS_COMPILE);
			assert_int_equal(flow.incomplete_retried, class == CLASS_COMPILE);
			assert_int_equal(flow.last_class, class);
			assert_int_equal(flow.budget[of].of_class[class], 1);
			assert_int_equal(flow.budget[of].backoff_failures, 1);
			assert_int_equal(flow.budget[of].failures, retry_rows[class].counts);
		}
}

static void the_exit_status_of_a_failed_compiler_is_kept(void **state)
{
	struct event ev = ended(PHASE_PRECOMPILE, 1, CLASS_COMPILE);

	(void)state;
	begin(PHASE_PRECOMPILE);
	transition_compile_failure(&flow, &ev);
	assert_int_equal(flow.compile_exit, -1);
	assert_true(flow.compile_failed);
	EVENT_SET(&ev, exit, 70);
	transition_compile_failure(&flow, &ev);
	assert_int_equal(flow.compile_exit, 70);
}

/* Returns from which step on checkpoints are not trusted after such a retry; INT64_MAX: all are. */
static int64_t below_after(enum phase phase, enum action action, int64_t step)
{
	struct event ev = event_of(EV_RETRY_SCHEDULED);

	EVENT_SET(&ev, until, MIN(61));
	EVENT_SET(&ev, action, action);
	begin(phase);
	flow.checkpoint_step = step;
	transition_retry(&flow, &ev);
	assert_int_equal(flow.until.ms, MIN(61));
	return flow.below;
}

static void a_training_falls_back_behind_its_checkpoint(void **state)
{
	(void)state;
	assert_int_equal(below_after(PHASE_TRAIN, ACTION_FALL_BACK, 50), 50);
	assert_int_equal(below_after(PHASE_TRAIN, ACTION_FALL_BACK, 0), 0);
	assert_true(below_after(PHASE_TRAIN, ACTION_FALL_BACK, -1) == INT64_MAX);
	assert_true(below_after(PHASE_TRAIN, ACTION_RETRY, 50) == INT64_MAX);
	assert_true(below_after(PHASE_PRECOMPILE, ACTION_FALL_BACK, 50) == INT64_MAX);
}

static struct event retry_at(int64_t until)
{
	struct event ev = event_of(EV_RETRY_SCHEDULED);

	EVENT_SET(&ev, until, until);
	EVENT_SET(&ev, action, ACTION_RETRY);
	return ev;
}

static void no_retry_waits_longer_than_the_longest_backoff(void **state)
{
	struct event ev = retry_at(MIN(64) - 1);

	(void)state;
	begin(PHASE_TRAIN);
	transition_retry(&flow, &ev);
	assert_int_equal(flow.until.ms, MIN(64) - 1);
	ev = retry_at(MIN(600));
	transition_retry(&flow, &ev);
	assert_int_equal(flow.until.ms, MIN(64));
}

/* A training may save before it ends: for as long as a drain may take, once it holds the claim. */
static void only_a_training_with_the_claim_may_save(void **state)
{
	struct event ev = stop("enough");

	(void)state;
	for (int which = 0; which < 4; which++) {
		begin(which == 1 ? PHASE_PRECOMPILE : PHASE_TRAIN);
		flow.claimed = which != 2;
		flow.policy.drain_ms = which == 3 ? 0 : 1;
		transition_stop(&flow, &ev);
		assert_int_equal(flow.drain_until.ms,
				 which == 0 ? MIN(60) + 1 + FLOW_DRAIN_MARGIN_MS : MIN(60));
		assert_true(flow.stop_requested);
		assert_string_equal(flow.stop_reason, "enough");
	}
}

/* The time for saving stays as the first request set it, and the first cause is the one told. */
static void a_second_stop_neither_restarts_nor_cuts_the_drain(void **state)
{
	struct event first = stop("first"), second = stop("second");

	(void)state;
	for (int room = 0; room < 2; room++) {
		int64_t until_ms = room ? MIN(62) : MIN(65) + FLOW_DRAIN_MARGIN_MS;

		begin(PHASE_TRAIN);
		flow.claimed = true;
		flow.recompile = room != 0;
		flow.drain_until.ms = MIN(62); /* it makes room already, since before */
		transition_stop(&flow, &first);
		assert_int_equal(flow.drain_until.ms, until_ms);
		flow.at.ms = MIN(61);
		transition_stop(&flow, &second);
		assert_int_equal(flow.drain_until.ms, until_ms);
		assert_string_equal(flow.stop_reason, "first");
	}
}

static void the_most_graphs_count(void **state)
{
	struct event ev = event_of(EV_JIT_COMPILED);

	(void)state;
	begin(PHASE_TRAIN);
	EVENT_SET(&ev, graphs, 5);
	transition_jit(&flow, &ev);
	EVENT_SET(&ev, graphs, 3);
	transition_jit(&flow, &ev);
	assert_int_equal(flow.jit_graphs, 5);
	EVENT_SET(&ev, graphs, 6);
	transition_jit(&flow, &ev);
	assert_int_equal(flow.jit_graphs, 6);
}

static void an_exceeded_budget_is_reported_once(void **state)
{
	struct event ev = event_of(EV_JIT_EXCEEDED);

	(void)state;
	begin(PHASE_TRAIN);
	transition_jit_stop(&flow, &ev);
	assert_true(flow.jit_reported && flow.stop_requested);
	assert_int_equal(flow.stop_cause, STOP_OVER_BUDGET);
}

/* Phase 1 that runs again has the whole budget, and no failure of the first time counts. */
static void phase_1_that_runs_again_begins_from_nothing(void **state)
{
	static const struct flow_budget none;
	struct event stopped = ended(PHASE_TRAIN, 1, CLASS_STOPPED);
	struct event failed = ended(PHASE_TRAIN, 1, CLASS_SPOT);

	(void)state;
	for (int which = 0; which < 2; which++) {
		begin(PHASE_TRAIN);
		memset(flow.budget, 1, sizeof flow.budget);
		memset(&flow.budget[PHASE_TRAIN], 0, sizeof flow.budget[PHASE_TRAIN]);
		flow.compile_failed = flow.compile_last = flow.cache_proved = flow.recompile = true;
		flow.fewer_workers = flow.incomplete_retried = true;
		transition_room(&flow, which == 0 ? &stopped : &failed);
		assert_memory_equal(&flow.budget[PHASE_PRECOMPILE], &none, sizeof none);
		assert_memory_not_equal(&flow.budget[PHASE_VERIFY], &none, sizeof none);
		assert_false(flow.compile_failed || flow.compile_last || flow.cache_proved ||
			     flow.recompile || flow.fewer_workers || flow.incomplete_retried);
		assert_true(flow.compile_forced);
		/* A stop makes room; anything else is a failure as well. */
		assert_int_equal(flow.budget[PHASE_TRAIN].of_class[CLASS_SPOT], which);
		assert_int_equal(flow.budget[PHASE_TRAIN].backoff_failures, which);
	}
}

/* Another run may have repaired the cache meanwhile: nothing is compiled by force. */
static void lost_graphs_are_looked_for_before_they_are_compiled(void **state)
{
	struct event ev = checked(CACHE_COLD);

	(void)state;
	begin(PHASE_TRAIN);
	flow.cache_proved = true;
	transition_lost_graphs(&flow, &ev);
	assert_false(flow.cache_proved || flow.compile_forced);
	assert_true(flow.key_waited);
	assert_int_equal(flow.cache, CACHE_COLD);
}

static struct event eta(double seconds)
{
	struct event ev = event_of(EV_TRAIN_PROGRESS);

	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, eta, seconds);
	return ev;
}

/* The same limit in a row is counted; a step without a forecast forecasts no limit. */
static void forecasts_of_one_limit_are_counted_in_a_row(void **state)
{
	struct event late = eta(3600), none = event_of(EV_TRAIN_PROGRESS);
	struct event risk = event_of(EV_RUN_AT_RISK);

	(void)state;
	begin(PHASE_TRAIN);
	flow.created.ms = 1;
	flow.policy.deadline_ms = MIN(90);
	for (int times = 1; times <= 3; times++) {
		transition_forecast(&flow, &late);
		assert_int_equal(flow.forecast.limit, LIMIT_DEADLINE);
		assert_int_equal(flow.forecast.times, times);
	}
	transition_forecast(&flow, &none);
	assert_int_equal(flow.forecast.limit, LIMIT_NONE);
	assert_int_equal(flow.forecast.times, 1);
	transition_forecast(&flow, &late);
	EVENT_SET(&risk, limit, LIMIT_DEADLINE);
	transition_risk(&flow, &risk);
	assert_int_equal(flow.forecast.limit, LIMIT_NONE);
	assert_int_equal(flow.forecast.times, 0);
	assert_int_equal(flow.forecast.reported, 1U << LIMIT_DEADLINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_driver_waits_anew_for_what_it_cannot_see),
		cmocka_unit_test(a_graph_key_is_kept_whole_or_not_at_all),
		cmocka_unit_test(a_verdict_on_the_cache_ends_the_order_to_compile),
		cmocka_unit_test(an_intent_begins_from_nothing),
		cmocka_unit_test(an_intent_with_endless_names_gets_those_of_the_run),
		cmocka_unit_test(the_first_claim_counts),
		cmocka_unit_test(a_checkup_took_what_both_of_its_times_say),
		cmocka_unit_test(a_checkpoint_and_a_success_end_a_row_of_failures),
		cmocka_unit_test(only_a_compiler_that_fails_in_phase_1_asks_for_fewer_at_once),
		cmocka_unit_test(a_driver_that_takes_over_before_the_verdict_grants_a_repeat),
		cmocka_unit_test(the_exit_status_of_a_failed_compiler_is_kept),
		cmocka_unit_test(a_training_falls_back_behind_its_checkpoint),
		cmocka_unit_test(no_retry_waits_longer_than_the_longest_backoff),
		cmocka_unit_test(only_a_training_with_the_claim_may_save),
		cmocka_unit_test(a_second_stop_neither_restarts_nor_cuts_the_drain),
		cmocka_unit_test(the_most_graphs_count),
		cmocka_unit_test(an_exceeded_budget_is_reported_once),
		cmocka_unit_test(phase_1_that_runs_again_begins_from_nothing),
		cmocka_unit_test(lost_graphs_are_looked_for_before_they_are_compiled),
		cmocka_unit_test(forecasts_of_one_limit_are_counted_in_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
