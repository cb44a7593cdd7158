/* The promises of clock.h: one text per moment, and back. */
#include "jobs/base/clock.h"

#include "tests/unit/base/unit.h"

static void known_moments_have_known_texts(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ 951782400001, "2000-02-29T00:00:00.001Z" },
		{ 1700000000123, "2023-11-14T22:13:20.123Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
		{ -62167219200000, "0000-01-01T00:00:00.000Z" },
		{ -61000000000000, "0036-12-26T11:33:20.000Z" },
	};
	char text[UTC_TEXT];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct utc back = { 42 };

		assert_string_equal(clock_utc_format((struct utc){ rows[i].ms }, text),
				    rows[i].text);
		assert_true(clock_utc_parse(rows[i].text, &back));
		assert_int_equal(back.ms, rows[i].ms);
	}
}

static void every_moment_survives_the_round_trip(void **state)
{
	char text[UTC_TEXT];
	struct utc back;

	(void)state;
	/* A step that is no multiple of a day, an hour or a second. */
	for (int64_t ms = -62167219200000; ms < 253402300800000; ms += INT64_C(7919) * 86399937) {
		assert_true(clock_utc_parse(clock_utc_format((struct utc){ ms }, text), &back));
		assert_int_equal(back.ms, ms);
	}
}

static void years_that_have_no_text_become_the_epoch(void **state)
{
	static const int64_t rows[] = { INT64_MIN, INT64_MAX, 253402300800000, -62167219200001 };
	char text[UTC_TEXT];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_string_equal(clock_utc_format((struct utc){ rows[i] }, text),
				    "1970-01-01T00:00:00.000Z");
}

static void other_forms_are_refused(void **state)
{
	static const char *const rows[] = {
		"",
		"2026-11-21",
		"2026-11-21T11:36:00Z",
		"2026-11-21T11:36:00.123",
		"2026-11-21T11:36:00.123z",
		"2026-11-21 11:36:00.123Z",
		"2026-11-21T11:36:00.123Z ",
		"2026-11-21T11:36:00.123+",
		"+026-11-21T11:36:00.123Z",
		" 026-11-21T11:36:00.123Z",
		"2026- 1-21T11:36:00.123Z",
		"2026-13-21T11:36:00.123Z",
		"2026-00-21T11:36:00.123Z",
		"2026-02-29T11:36:00.123Z",
		"2026-02-30T11:36:00.123Z",
		"2026-11-00T11:36:00.123Z",
		"2026-11-21T24:00:00.000Z",
		"2026-11-21T11:60:00.000Z",
		"2026-11-21T11:36:61.000Z",
		"2026-11-21T11:36:00.-12Z",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct utc at = { 42 };

		if (clock_utc_parse(rows[i], &at))
			fail_msg("accepted '%s'", rows[i]);
		assert_int_equal(at.ms, 42);
	}
}

static void monotonic_time_never_goes_back(void **state)
{
	struct mono before = clock_mono_now();

	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct mono now = clock_mono_now();

		assert_true(now.ms >= before.ms);
		before = now;
	}
	assert_true(clock_utc_now().ms > 1700000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_moments_have_known_texts),
		cmocka_unit_test(every_moment_survives_the_round_trip),
		cmocka_unit_test(years_that_have_no_text_become_the_epoch),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(monotonic_time_never_goes_back),
	};

	return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
