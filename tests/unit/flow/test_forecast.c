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

/* Of this limit, so far. */
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
			    "at its present pace the training ends 62 min after the deadline");
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
	assert_string_equal(why(&s),
			    "at its present pace it ends at 110.00 USD, allowed are 100.00 USD");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deadline_that_two_forecasts_miss_is_told_once),
		cmocka_unit_test(a_slow_first_step_alarms_nobody),
		cmocka_unit_test(the_cost_is_forecast_too_and_apart_from_the_deadline),
		cmocka_unit_test(a_run_without_limits_is_never_at_risk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
