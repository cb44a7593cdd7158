/* When to try again, and what a server's Date says of our clock. */
#include "aws/http/retry.h"

#include "aws/auth/clock_skew.h"
#include "aws/date.h"
#include "tests/unit/base/unit.h"

static void delays_double_up_to_20_s_and_chance_takes_its_part(void **state)
{
	static const int64_t most[] = { 1000, 2000, 4000, 8000, 16000, 20000, 20000 };

	(void)state;
	for (int i = 0; i < (int)STK_LENGTH(most); i++) {
		assert_int_equal(retry_backoff_ms(i + 1, UINT32_MAX, -1), most[i]);
		assert_int_equal(retry_backoff_ms(i + 1, 0, -1), 0);
		assert_in_range(retry_backoff_ms(i + 1, UINT32_MAX / 2, -1), most[i] / 2 - 1,
				most[i] / 2);
	}
	assert_int_equal(retry_backoff_ms(1000000, UINT32_MAX, -1), 20000);
}

static void what_the_service_asks_for_is_honoured_within_5_s(void **state)
{
	(void)state;
	assert_int_equal(retry_backoff_ms(1, UINT32_MAX, 500), 1000);
	assert_int_equal(retry_backoff_ms(1, UINT32_MAX, 3000), 3000);
	assert_int_equal(retry_backoff_ms(1, UINT32_MAX, 60000), 6000);
	assert_int_equal(retry_backoff_ms(1, 0, INT64_MAX), 5000);
}

static void the_quota_is_spent_by_retries_and_earned_by_successes(void **state)
{
	struct retry_quota quota = RETRY_QUOTA_INIT;
	int retries = 0;

	(void)state;
	while (retry_pay(&quota, false) == 5)
		retries++;
	assert_int_equal(retries, 100);
	assert_int_equal(retry_pay(&quota, false), 0);
	for (int i = 0; i < 7; i++)
		retry_earn(&quota, 0);
	assert_int_equal(retry_pay(&quota, true), 0); /* after a timeout it costs 10 */
	assert_int_equal(retry_pay(&quota, false), 5);
	retry_earn(&quota, 5);
	retry_earn(&quota, 10);
	assert_int_equal(retry_pay(&quota, true), 10);
	for (int i = 0; i < 1000; i++)
		retry_earn(&quota, 10);
	assert_int_equal(quota.left, 500);
}

static void attempts_are_three_unless_set(void **state)
{
	(void)state;
	assert_int_equal(retry_attempts(NULL, false), 3);
	assert_int_equal(retry_attempts(NULL, true), 5);
	assert_int_equal(retry_attempts("1", true), 1);
	assert_int_equal(retry_attempts("7", false), 7);
	assert_int_equal(retry_attempts("0", false), 3);
	assert_int_equal(retry_attempts("-1", false), 3);
	assert_int_equal(retry_attempts("many", false), 3);
	assert_int_equal(retry_attempts("99999999999", false), 100);
}

static void dates_of_http_are_read_and_nothing_else(void **state)
{
	static const char *const none[] = { "",
					    "now",
					    "Sun, 06 Nov 1994 08:49:37 CET",
					    "Sun, 06 Nov 1994 8:49:37 GMT",
					    "Sun, 06 ovD 1994 08:49:37 GMT",
					    "Sun, 41 Nov 1994 08:49:37 GMT",
					    "Sunday, 06-Nov-94 08:49:37 GMT" };
	AUTO(clock_skews_freep) struct clock_skews *clock_skews = clock_skews_new();
	const struct utc used = { 0 };

	(void)state;
	assert_true(
		clock_skew_learn(clock_skews, "a", "Sun, 06 Nov 1994 08:49:37 GMT", used, used));
	assert_int_equal(clock_skew_time(clock_skews, "a", used).ms, 784111777000);
	assert_true(
		clock_skew_learn(clock_skews, "a", "Thu, 29 Feb 2024 00:00:00 GMT", used, used));
	assert_int_equal(clock_skew_time(clock_skews, "a", used).ms, 1709164800000);
	for (size_t i = 0; i < STK_LENGTH(none); i++)
		assert_false(clock_skew_learn(clock_skews, "a", none[i], used, used));
}

static void dates_of_iso_8601_are_read_in_the_forms_of_all_tools(void **state)
{
	static const char *const same[] = {
		"2026-11-22T12:00:00Z",      "2026-11-22T12:00:00z",     "2026-11-22T12:00:00",
		"2026-11-22 12:00:00UTC",    "2026-11-22T12:00:00.000Z", "2026-11-22T12:00:00,0Z",
		"2026-11-22T13:00:00+01:00", "2026-11-22T10:30:00-0130", "2026-11-22T12:00:00+0000",
	};
	static const char *const none[] = { "",
					    "now",
					    "2026-11-22",
					    "2026-11-22T12:00",
					    "2026-02-30T12:00:00Z",
					    "2026-11-22X12:00:00Z",
					    "2026-11-22T12:00:00 and more",
					    "2026-11-22T12:00:00+",
					    "2026-11-22T12:00:00Z+01:00" };
	struct utc at;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(same); i++) {
		assert_true(aws_date_iso(same[i], &at));
		assert_int_equal(at.ms, 1795348800000);
	}
	assert_true(aws_date_iso("2026-11-22T12:00:00.25Z", &at));
	assert_int_equal(at.ms, 1795348800250);
	for (size_t i = 0; i < STK_LENGTH(none); i++)
		assert_false(aws_date_iso(none[i], &at));
}

static void a_hosts_clock_is_believed_if_ours_is_far_off(void **state)
{
	const char *date = "Sun, 06 Nov 1994 08:49:37 GMT";
	AUTO(clock_skews_freep) struct clock_skews *clock_skews = clock_skews_new();
	struct utc theirs = { 784111777000 }, near = { theirs.ms - 100000 },
		   far = { theirs.ms + 3600000 };

	(void)state;
	assert_false(clock_skew_learn(clock_skews, "a", date, near, near));
	assert_false(clock_skew_learn(clock_skews, "a", "nonsense", far, far));
	assert_int_equal(clock_skew_time(clock_skews, "a", far).ms, far.ms);
	assert_true(clock_skew_learn(clock_skews, "a", date, far, far));
	assert_int_equal(clock_skew_time(clock_skews, "a", far).ms, theirs.ms);
	assert_int_equal(clock_skew_time(clock_skews, "b", far).ms, far.ms);
	/* Signed with what was learnt, and refused all the same: not the clock's fault. */
	assert_false(clock_skew_learn(clock_skews, "a", date, theirs, far));
	/* Our clock is set right meanwhile. */
	assert_true(clock_skew_learn(clock_skews, "a", date, (struct utc){ theirs.ms - 3600000 },
				     theirs));
	assert_int_equal(clock_skew_time(clock_skews, "a", theirs).ms, theirs.ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_double_up_to_20_s_and_chance_takes_its_part),
		cmocka_unit_test(what_the_service_asks_for_is_honoured_within_5_s),
		cmocka_unit_test(the_quota_is_spent_by_retries_and_earned_by_successes),
		cmocka_unit_test(attempts_are_three_unless_set),
		cmocka_unit_test(dates_of_http_are_read_and_nothing_else),
		cmocka_unit_test(dates_of_iso_8601_are_read_in_the_forms_of_all_tools),
		cmocka_unit_test(a_hosts_clock_is_believed_if_ours_is_far_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
