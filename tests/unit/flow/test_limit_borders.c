/* Limits at their borders: the millisecond, the cent and the state at which each begins to hold,
 * and what is said of it. The state is written down, not played. */
#include "tests/unit/flow/story.h"

#include "jobs/flow/internal.h"

#define CREATED MIN(60)
#define PRICE   0.001 /* USD a millisecond: 3,600 USD an hour */

static struct flow flow;

/* A training that runs and holds the claim, at minute 60; nothing is limited, nothing was paid. */
static void begin(void)
{
	struct flow_policy policy = story_policy();

	flow_init(&flow, &policy);
	flow.state = FLOW_TRAIN;
	flow.phase = PHASE_TRAIN;
	flow.attempt = 3;
	flow.attempt_state = ATTEMPT_RUNNING;
	flow.claimed = flow.started = true;
	flow.created.ms = flow.at.ms = CREATED;
	flow.ledger.stage = STAGE_OVER; /* what was paid is then what is written down */
}

static void paid(double usd)
{
	flow.policy.price_per_ms = PRICE;
	flow.ledger.billed_ms = (int64_t)(usd / PRICE + 0.5);
}

static enum run_limit reached_at(int64_t ms)
{
	return limit_reached(&flow, (struct utc){ ms });
}

static const char *text(enum run_limit limit)
{
	static char ret[200];

	memset(ret, '#', sizeof ret);
	limit_text(&flow, limit, ret, sizeof ret);
	return ret;
}

static void a_foreign_time_is_kept_between_two_of_the_journal(void **state)
{
	struct utc from = { 100 }, to = { 200 };

	(void)state;
	assert_int_equal(flow_between(99, from, to).ms, 100);
	assert_int_equal(flow_between(101, from, to).ms, 101);
	assert_int_equal(flow_between(199, from, to).ms, 199);
	assert_int_equal(flow_between(201, from, to).ms, 200);
}

/* Each limit counts its own stretch, and only in some states of the attempt. */
static void a_limit_of_an_attempt_counts_in_its_states_alone(void **state)
{
	(void)state;
	for (int at = 0; at < FLOW_STATE_COUNT; at++)
		for (int attempt = 0; attempt < ATTEMPT_STATE_COUNT; attempt++)
			for (int started = 0; started < 2; started++) {
				bool has = state_has_attempts(at);
				bool unseen =
					attempt == ATTEMPT_LOST || attempt == ATTEMPT_UNCERTAIN;
				enum run_limit due = LIMIT_NONE;

				begin();
				flow.state = (enum flow_state)at;
				flow.attempt_state = (enum attempt_state)attempt;
				flow.started = started != 0;
				flow.submitted_at = flow.claimed_at = flow.unobserved_since =
					flow.at;
				flow.policy.queue_ms = flow.policy.start_ms = 5;
				flow.policy.unreachable_ms = 5;
				if (has && attempt == ATTEMPT_SUBMITTED)
					due = LIMIT_QUEUE;
				else if (has && attempt == ATTEMPT_RUNNING && !started)
					due = LIMIT_START;
				else if (has && unseen)
					due = LIMIT_UNREACHABLE;
				assert_int_equal(reached_at(CREATED + 4), LIMIT_NONE);
				assert_int_equal(reached_at(CREATED + 5), due);
				assert_true(limit_next_ms(&flow) ==
					    (due == LIMIT_NONE ? INT64_MAX : CREATED + 5));
			}
}

static void a_limit_of_one_millisecond_is_one(void **state)
{
	(void)state;
	begin();
	flow.policy.deadline_ms = 1;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	assert_int_equal(reached_at(CREATED + 1), LIMIT_DEADLINE);
	flow.created.ms = 1;
	assert_int_equal(reached_at(2), LIMIT_DEADLINE);
}

/* Limits so far away that their end cannot be told are never reached. */
static void an_endless_limit_is_none(void **state)
{
	(void)state;
	begin();
	flow.policy.deadline_ms = INT64_MAX - CREATED;
	assert_true(limit_next_ms(&flow) == INT64_MAX);
	flow.policy.deadline_ms = INT64_MAX - CREATED + 1;
	assert_true(limit_next_ms(&flow) == INT64_MAX);
	assert_int_equal(reached_at(CREATED + 1), LIMIT_NONE);
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.policy.deadline_ms = INT64_MAX - CREATED - 1;
	assert_true(limit_next_ms(&flow) == INT64_MAX - 1);
}

/* The check-up of the nodes does not count against limits.start, and makes none where none is. */
static void a_checkup_moves_the_start_and_makes_no_limit(void **state)
{
	(void)state;
	begin();
	flow.started = false;
	flow.claimed_at = flow.at;
	flow.policy.health_ms = 50;
	assert_true(limit_next_ms(&flow) == INT64_MAX);
	flow.policy.start_ms = 1;
	assert_int_equal(limit_next_ms(&flow), CREATED + 51);
	flow.checked = true;
	flow.checkup_ms = 20;
	assert_int_equal(limit_next_ms(&flow), CREATED + 21);
	/* Another limit is not moved. */
	flow.attempt_state = ATTEMPT_SUBMITTED;
	flow.submitted_at = flow.at;
	flow.policy.queue_ms = 10;
	assert_int_equal(limit_next_ms(&flow), CREATED + 10);
}

static void the_next_limit_is_the_first_of_all(void **state)
{
	(void)state;
	begin();
	flow.policy.deadline_ms = 500;
	flow.policy.unreachable_ms = 300;
	flow.attempt_state = ATTEMPT_LOST;
	flow.unobserved_since = flow.at;
	assert_int_equal(limit_next_ms(&flow), CREATED + 300);
	assert_int_equal(reached_at(CREATED + 300), LIMIT_UNREACHABLE);
	flow.policy.unreachable_ms = 700;
	assert_int_equal(limit_next_ms(&flow), CREATED + 500);
	assert_int_equal(reached_at(CREATED + 699), LIMIT_DEADLINE);
}

static void what_is_to_end_needs_no_other_reason(void **state)
{
	(void)state;
	begin();
	flow.stop_requested = true;
	flow.policy.deadline_ms = flow.policy.unreachable_ms = 5;
	flow.policy.cost_usd = 1;
	paid(2);
	assert_int_equal(reached_at(CREATED + 5), LIMIT_NONE);
	flow.attempt_state = ATTEMPT_LOST;
	flow.unobserved_since = flow.at;
	assert_int_equal(reached_at(CREATED + 5), LIMIT_UNREACHABLE);
}

/* ---- money ---- */

static void money_is_limited_where_a_limit_and_a_price_are_known(void **state)
{
	(void)state;
	begin();
	flow.policy.cost_usd = 0.5;
	paid(0.499);
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	paid(0.5);
	assert_int_equal(reached_at(CREATED), LIMIT_COST);
	flow.policy.cost_usd = 0;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	flow.policy.cost_usd = -1;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	flow.policy.cost_usd = 0.5;
	flow.policy.price_per_ms = 0;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	flow.policy.price_per_ms = -0.5;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
}

/* Within the last minute before the money is spent, up to half of it, no training begins. */
static void a_training_is_told_before_the_money_is_spent(void **state)
{
	(void)state;
	begin();
	flow.policy.cost_usd = 100;
	flow.policy.lead_ms = 10000; /* 10 USD */
	paid(89.999);
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	paid(90);
	assert_int_equal(reached_at(CREATED), LIMIT_COST);
	assert_string_equal(
		text(LIMIT_COST),
		"the training was asked to save 10 s before the machines have cost 100.00 USD");
	flow.policy.lead_ms = 90000; /* more than half */
	paid(49.999);
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	paid(50);
	assert_int_equal(reached_at(CREATED), LIMIT_COST);
	/* Precompiling saves nothing, so it is told nothing in advance. */
	flow.state = FLOW_PRECOMPILE;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	assert_string_equal(text(LIMIT_COST), "the machines have cost 100.00 USD");
}

static void a_forecast_of_cost_needs_a_limit_and_a_price(void **state)
{
	(void)state;
	begin();
	flow.policy.cost_usd = 0.5;
	paid(0.25);
	flow.forecast.ends.ms = CREATED + 250;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.forecast.ends.ms++;
	assert_int_equal(limit_forecast(&flow), LIMIT_COST);
	flow.forecast.reported = 1U << LIMIT_COST;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.forecast.reported = 0;
	flow.policy.cost_usd = 0;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.policy.cost_usd = -0.5;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.policy.cost_usd = 0.5;
	flow.policy.price_per_ms = 0;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.ledger.billed_ms = -10000000;
	flow.policy.price_per_ms = -PRICE;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
}

/* ---- forecasts ---- */

static int64_t ends(double eta)
{
	struct event ev = event_of(EV_TRAIN_PROGRESS);

	EVENT_SET(&ev, eta, eta);
	return flow_training_ends((struct utc){ 1000 }, &ev).ms;
}

static void a_forecast_needs_a_valid_time_left(void **state)
{
	struct event none = event_of(EV_TRAIN_PROGRESS);

	(void)state;
	assert_int_equal(flow_training_ends((struct utc){ 1000 }, &none).ms, 0);
	none.eta = 5; /* not said */
	assert_int_equal(flow_training_ends((struct utc){ 1000 }, &none).ms, 0);
	assert_int_equal(ends(0), 1000);
	assert_int_equal(ends(0.5), 1500);
	assert_int_equal(ends(-0.5), 0);
	assert_int_equal(ends(-2), 0);
	assert_int_equal(ends(999999999), 1000 + INT64_C(999999999000));
	assert_int_equal(ends(1e9), 0);
	assert_int_equal(ends(NAN), 0);
}

static void the_deadline_is_forecast_to_the_millisecond(void **state)
{
	(void)state;
	begin();
	flow.policy.deadline_ms = 1;
	flow.forecast.ends.ms = CREATED + 1;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
	flow.forecast.ends.ms = CREATED + 2;
	assert_int_equal(limit_forecast(&flow), LIMIT_DEADLINE);
	/* A forecast of money says nothing about time. */
	flow.policy.deadline_ms = 0;
	assert_int_equal(limit_forecast(&flow), LIMIT_NONE);
}

/* Returns when the training, whose forecast is the end at `ends`, is told before a deadline in ten
 * hours with a lead of one. */
static int64_t told_at(int64_t ends, bool reported)
{
	flow.policy.deadline_ms = MIN(600);
	flow.policy.lead_ms = MIN(60);
	flow.forecast.ends.ms = ends;
	flow.forecast.reported = reported ? 1U << LIMIT_DEADLINE : 0;
	return limit_next_ms(&flow);
}

/* A training that ends within the lead is let; one that should have ended before is not believed.
 */
static void a_training_may_end_within_the_lead(void **state)
{
	const int64_t deadline = CREATED + MIN(600), lead = deadline - MIN(60);

	(void)state;
	begin();
	assert_int_equal(told_at(0, false), lead);
	assert_int_equal(told_at(1, false), lead);
	assert_int_equal(told_at(lead - 1, false), lead);
	assert_int_equal(told_at(lead, false), deadline);
	assert_int_equal(told_at(deadline, false), deadline);
	assert_int_equal(told_at(deadline + 1, false), deadline);
	assert_int_equal(told_at(deadline + 1, true), lead);
	/* Nobody is let end who is not there. */
	flow.claimed = false;
	assert_int_equal(told_at(deadline, false), lead);
	flow.claimed = true;
	for (int at = 0; at < ATTEMPT_STATE_COUNT; at++) {
		bool is_there =
			at == ATTEMPT_SUBMITTED || at == ATTEMPT_RUNNING || at == ATTEMPT_LOST;

		flow.attempt_state = (enum attempt_state)at;
		assert_int_equal(told_at(deadline, false), is_there ? deadline : lead);
	}
}

/* A forecast at the beginning of all time is one. */
static void a_forecast_is_known_from_its_first_millisecond(void **state)
{
	(void)state;
	begin();
	flow.created.ms = flow.at.ms = 0;
	flow.policy.deadline_ms = 10;
	flow.policy.lead_ms = 5;
	flow.created.ms = 1;
	flow.policy.cost_usd = 4 * PRICE;
	paid(0);
	flow.at.ms = 0;
	flow.forecast.ends.ms = 2; /* half of the money: within its lead of two */
	assert_int_equal(limit_reached(&flow, (struct utc){ 0 }), LIMIT_NONE);
	paid(2 * PRICE);
	assert_int_equal(limit_reached(&flow, (struct utc){ 0 }), LIMIT_NONE);
	flow.forecast.ends.ms = 0;
	assert_int_equal(limit_reached(&flow, (struct utc){ 0 }), LIMIT_COST);
}

static void a_training_may_end_within_the_lead_of_its_money(void **state)
{
	(void)state;
	begin();
	flow.policy.cost_usd = 100;
	flow.policy.lead_ms = 10000;
	paid(95);
	flow.forecast.ends.ms = CREATED + 4000; /* 99 USD */
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	paid(90);
	flow.forecast.ends.ms = CREATED; /* 90 USD, the beginning of the lead */
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	flow.forecast.ends.ms = CREATED - 1;
	assert_int_equal(reached_at(CREATED), LIMIT_COST);
	/* More than there is: it is told once that was reported. */
	flow.forecast.ends.ms = CREATED + 10001;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
	flow.forecast.reported = 1U << LIMIT_COST;
	assert_int_equal(reached_at(CREATED), LIMIT_COST);
	flow.forecast.reported = 1U << LIMIT_DEADLINE;
	assert_int_equal(reached_at(CREATED), LIMIT_NONE);
}

/* ---- texts ---- */

static void lengths_are_told_in_the_largest_whole_unit(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{ 7 * MIN(1440), "the run was created 7 d ago" },
		{ MIN(1440) + MIN(60), "the run was created 25 h ago" },
		{ MIN(90), "the run was created 90 min ago" },
		{ 90000, "the run was created 90 s ago" },
		{ 90001, "the run was created 90001 ms ago" },
	};

	(void)state;
	begin();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		flow.policy.deadline_ms = rows[i].ms;
		assert_string_equal(text(LIMIT_DEADLINE), rows[i].text);
	}
}

static void each_limit_says_what_was_reached(void **state)
{
	(void)state;
	begin();
	flow.policy.queue_ms = flow.policy.start_ms = flow.policy.unreachable_ms = MIN(5);
	flow.policy.cost_usd = 12.5;
	assert_string_equal(text(LIMIT_QUEUE), "train 3 has waited for 5 min in the queue");
	assert_string_equal(text(LIMIT_START),
			    "train 3 has its machines for 5 min and its command has not begun");
	assert_string_equal(text(LIMIT_UNREACHABLE), "train 3 could not be seen for 5 min");
	assert_string_equal(text(LIMIT_COST), "the machines have cost 12.50 USD");
	assert_string_equal(text(LIMIT_NONE), "");
	assert_string_equal(text(LIMIT_COUNT), "");
}

/* A lead of one millisecond is one; other limits have none. */
static void a_lead_is_told_with_the_limit_that_has_one(void **state)
{
	(void)state;
	begin();
	flow.policy.cost_usd = 100;
	flow.policy.deadline_ms = MIN(600);
	flow.policy.queue_ms = MIN(5);
	flow.policy.lead_ms = 1;
	flow.policy.price_per_ms = PRICE;
	assert_string_equal(text(LIMIT_DEADLINE),
			    "the training was asked to save 1 ms before the run's time is over");
	assert_string_equal(text(LIMIT_QUEUE), "train 3 has waited for 5 min in the queue");
	flow.attempt_state = ATTEMPT_BACKOFF;
	flow.policy.lead_ms = MIN(60);
	assert_string_equal(text(LIMIT_DEADLINE),
			    "no training starts in the last 1 h before the run's time is over");
}

/* Returns how late the training is said to end that is `ms` late. */
static const char *lateness(int64_t ms)
{
	static char said[200];

	begin();
	flow.policy.deadline_ms = MIN(1);
	flow.forecast.ends.ms = CREATED + MIN(1) + ms;
	flow.forecast.limit = LIMIT_DEADLINE;
	limit_forecast_text(&flow, said, sizeof said);
	assert_int_equal(strncmp(said, "at the present pace the training ends ", 38), 0);
	return said + 38;
}

static void a_forecast_is_told_as_an_estimate(void **state)
{
	(void)state;
	assert_string_equal(lateness(1), "1 s after the deadline");
	assert_string_equal(lateness(1000), "1 s after the deadline");
	assert_string_equal(lateness(1001), "2 s after the deadline");
	assert_string_equal(lateness(119001), "120 s after the deadline");
	assert_string_equal(lateness(119999), "120 s after the deadline");
	assert_string_equal(lateness(120000), "2 min after the deadline");
	assert_string_equal(lateness(149999), "2 min after the deadline");
	assert_string_equal(lateness(150000), "3 min after the deadline");
	assert_string_equal(lateness(7169999), "119 min after the deadline");
	assert_string_equal(lateness(7170000), "120 min after the deadline");
	assert_string_equal(lateness(7199999), "120 min after the deadline");
	assert_string_equal(lateness(7200000), "2.0 h after the deadline");
	assert_string_equal(lateness(9 * MIN(60) + MIN(30)), "9.5 h after the deadline");
}

static void a_forecast_of_cost_says_both_sums(void **state)
{
	char said[200];

	(void)state;
	begin();
	flow.policy.cost_usd = 10;
	paid(8);
	flow.forecast.ends.ms = CREATED + 4500;
	flow.forecast.limit = LIMIT_COST;
	limit_forecast_text(&flow, said, sizeof said);
	assert_string_equal(said,
			    "at the present pace the run ends at 12.50 USD, allowed are 10.00 USD");
	/* Nothing is known to be paid if there is no price. */
	flow.policy.price_per_ms = 0;
	limit_forecast_text(&flow, said, sizeof said);
	assert_string_equal(said,
			    "at the present pace the run ends at 0.00 USD, allowed are 10.00 USD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_time_is_kept_between_two_of_the_journal),
		cmocka_unit_test(a_limit_of_an_attempt_counts_in_its_states_alone),
		cmocka_unit_test(a_limit_of_one_millisecond_is_one),
		cmocka_unit_test(an_endless_limit_is_none),
		cmocka_unit_test(a_checkup_moves_the_start_and_makes_no_limit),
		cmocka_unit_test(the_next_limit_is_the_first_of_all),
		cmocka_unit_test(what_is_to_end_needs_no_other_reason),
		cmocka_unit_test(money_is_limited_where_a_limit_and_a_price_are_known),
		cmocka_unit_test(a_training_is_told_before_the_money_is_spent),
		cmocka_unit_test(a_forecast_of_cost_needs_a_limit_and_a_price),
		cmocka_unit_test(a_forecast_needs_a_valid_time_left),
		cmocka_unit_test(the_deadline_is_forecast_to_the_millisecond),
		cmocka_unit_test(a_training_may_end_within_the_lead),
		cmocka_unit_test(a_forecast_is_known_from_its_first_millisecond),
		cmocka_unit_test(a_training_may_end_within_the_lead_of_its_money),
		cmocka_unit_test(lengths_are_told_in_the_largest_whole_unit),
		cmocka_unit_test(each_limit_says_what_was_reached),
		cmocka_unit_test(a_lead_is_told_with_the_limit_that_has_one),
		cmocka_unit_test(a_forecast_is_told_as_an_estimate),
		cmocka_unit_test(a_forecast_of_cost_says_both_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
