/* The promises of jobs/base/text/when.h. */
#include "jobs/base/text/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "jobs/base/mem.h"

static struct utc at(const char *text)
{
	struct utc ret = { 0 };

	assert_true(clock_utc_parse(text, &ret));
	return ret;
}

static void ages_have_one_unit(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} rows[] = {
		{ 0, "0s" },     { 59, "59s" },           { 60, "1m" },
		{ 3599, "59m" }, { 3600, "1h" },          { 86399, "23h" },
		{ 86400, "1d" }, { 500 * 86400, "500d" }, { -10, "0s" },
	};
	const struct utc now = at("2026-11-29T12:00:00.000Z");
	char text[WHEN_TEXT];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct utc then = { now.ms - rows[i].seconds * 1000 };

		assert_string_equal(when_age(then, now, text), rows[i].text);
	}
}

static void a_terminal_has_local_time_and_a_date_on_another_day(void **state)
{
	static const struct {
		const char *at, *now, *text;
	} rows[] = {
		{ "2026-11-29T12:03:41.999Z", "2026-11-29T13:00:00.000Z", "14:03:41" },
		{ "2026-11-29T21:59:59.000Z", "2026-11-29T22:00:00.000Z", "Nov 29 23:59:59" },
		{ "2026-11-29T22:00:00.000Z", "2026-11-29T21:59:59.000Z", "Nov 30 00:00:00" },
		{ "2026-01-05T03:00:00.000Z", "2026-11-29T22:00:00.000Z", "Jan 5 05:00:00" },
		{ "2025-12-31T21:00:00.000Z", "2026-12-31T21:00:00.000Z", "2025-12-31 23:00:00" },
	};
	char text[WHEN_TEXT];

	(void)state;
	setenv("TZ", "XYZ-2", 1);
	tzset();
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_string_equal(when_instant(at(rows[i].at), at(rows[i].now), true, text),
				    rows[i].text);
}

static void elsewhere_it_is_utc_whole(void **state)
{
	const struct utc then = at("2026-11-29T12:03:41.999Z");
	char text[WHEN_TEXT];

	(void)state;
	setenv("TZ", "XYZ-2", 1);
	tzset();
	assert_string_equal(when_instant(then, then, false, text), "2026-11-29T12:03:41Z");
	assert_string_equal(when_text("2026-11-29T12:03:41.000Z", false, text),
			    "2026-11-29T12:03:41Z");
	assert_string_equal(when_text("tomorrow", true, text), "tomorrow");
	assert_string_equal(when_text(NULL, true, text), "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ages_have_one_unit),
		cmocka_unit_test(a_terminal_has_local_time_and_a_date_on_another_day),
		cmocka_unit_test(elsewhere_it_is_utc_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
