/* The promises of text.h: escapes, numbers, sizes, durations, distances, run ids. */
#include "jobs/base/text/text.h"

#include <locale.h>
#include <math.h>

#include "tests/unit/base/unit.h"

static void assert_escaped(const char *text, size_t len, bool keep_newlines, const char *want)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	text_escape(&out, text, len, keep_newlines);
	assert_string_equal(out.text, want);
}

static void ordinary_text_passes_unchanged(void **state)
{
	static const char *const rows[] = {
		"",
		"plain, with a tab\tand a \\ backslash",
		"Grüße, 世界, עברית, العربية, 😀",
		"\xc2\xa0\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
		"\xf4\x8f"
		"\xbf\xbf",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		assert_true(text_is_utf8(rows[i], strlen(rows[i])));
		assert_escaped(rows[i], strlen(rows[i]), false, rows[i]);
	}
}

static void controls_become_visible(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "\x1b[31mred\x07", "\\x1b[31mred\\x07" },
		{ "a\rb\nc", "a\\x0db\\x0ac" },
		{ "\x7f", "\\x7f" },
		{ "\xc2\x80\xc2\x9b"
		  "31m\xc2\x9f",
		  "\\u0080\\u009b31m\\u009f" },
		{ "\x9b"
		  "31m",
		  "\\x9b31m" },
		{ "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f" },
		{ "\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029" },
		{ "\xe2\x80\xaa\xe2\x80\xae", "\\u202a\\u202e" },
		{ "\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069" },
		{ "\xef\xbb\xbf", "\\ufeff" },
		{ "\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xaa", "\xe2\x80\x8d\xe2\x80\xaf\xe2\x81\xaa" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_escaped(rows[i].text, strlen(rows[i].text), false, rows[i].want);
	assert_escaped("a\0b", 3, false, "a\\x00b");
	assert_escaped("a\nb\r\n", 5, true, "a\nb\\x0d\n");
}

static void malformed_utf8_becomes_visible_byte_by_byte(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "\x80", "\\x80" },
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xc0\xaf", "\\xc0\\xaf" },                   /* overlong / */
		{ "\xc1\xbf", "\\xc1\\xbf" },                   /* overlong */
		{ "\xe0\x9f\xbf", "\\xe0\\x9f\\xbf" },          /* overlong */
		{ "\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf" }, /* overlong */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80" },
		{ "\xc3", "\\xc3" }, /* cut off */
		{ "\xe4\xb8", "\\xe4\\xb8" },
		{ "\xf0\x9f\x98", "\\xf0\\x9f\\x98" },
		{ "\xc3(", "\\xc3(" },
		{ "\xe4\xb8(", "\\xe4\\xb8(" },
		{ "\xe4\xe4\xb8\x96", "\\xe4\xe4\xb8\x96" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		assert_false(text_is_utf8(rows[i].text, strlen(rows[i].text)));
		assert_escaped(rows[i].text, strlen(rows[i].text), true, rows[i].want);
	}
}

/* The length is cut inside a character: what follows must not be looked at. */
static void nothing_is_read_past_the_length(void **state)
{
	static const char text[] = "\xf0\x9f\x98\x80";
	uint32_t code;
	double value;

	(void)state;
	for (size_t len = 0; len <= 4; len++) {
		AUTO(auto_free) char *exact = mem_alloc(len);

		memcpy(exact, text, len);
		assert_int_equal(text_utf8(exact, len, &code), len == 4 ? 4 : 0);
		assert_int_equal(text_is_utf8(exact, len), len == 0 || len == 4);
	}
	assert_int_equal(code, 0x1f600);
	for (size_t len = 0; len <= 9; len++) {
		AUTO(auto_free) char *exact = mem_alloc(len);

		memcpy(exact, "-1.25e+10", len);
		text_float(exact, len, &value);
		memcpy(exact, "+infinity", len);
		text_float(exact, len, &value);
	}
}

static void every_code_point_is_read_as_it_is_written(void **state)
{
	(void)state;
	for (uint32_t want = 0; want <= 0x10ffff; want++) {
		char s[4];
		size_t size;
		uint32_t got = 0;

		if (want < 0x80) {
			s[0] = (char)want;
			size = 1;
		} else if (want < 0x800) {
			s[0] = (char)(0xc0 | want >> 6);
			s[1] = (char)(0x80 | (want & 63));
			size = 2;
		} else if (want < 0x10000) {
			s[0] = (char)(0xe0 | want >> 12);
			s[1] = (char)(0x80 | (want >> 6 & 63));
			s[2] = (char)(0x80 | (want & 63));
			size = 3;
		} else {
			s[0] = (char)(0xf0 | want >> 18);
			s[1] = (char)(0x80 | (want >> 12 & 63));
			s[2] = (char)(0x80 | (want >> 6 & 63));
			s[3] = (char)(0x80 | (want & 63));
			size = 4;
		}
		if (want >= 0xd800 && want <= 0xdfff) {
			assert_int_equal(text_utf8(s, size, &got), 0);
		} else {
			assert_int_equal(text_utf8(s, size, &got), size);
			assert_int_equal(got, want);
		}
	}
}

static void numbers_are_read_in_full(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		double want;
	} rows[] = {
		{ "0", 1, 0 },
		{ "6.25e-05", 8, 6.25e-05 },
		{ "6.25e-05,", 8, 6.25e-05 },
		{ "-1.5E+3x", 7, -1500 },
		{ "+7", 2, 7 },
		{ ".5", 2, 0.5 },
		{ "-.5", 3, -0.5 },
		{ "5.", 2, 5 },
		{ "1.2.3", 3, 1.2 },
		{ "3e", 1, 3 },
		{ "3e+", 1, 3 },
		{ "3e+x", 1, 3 },
		{ "0x10", 1, 0 },
		{ "1e400", 5, INFINITY },
		{ "1e-400", 6, 0 },
		{ "inf", 3, INFINITY },
		{ "-Infinity", 9, -INFINITY },
		{ "INF,", 3, INFINITY },
		{ "1,5", 1, 1 },
		{ "9007199254740993", 16, 9007199254740992.0 },
		{ "0.1000000000000000055511151231257827021181583404541015625", 57, 0.1 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		double value = 42;

		assert_int_equal(text_float(rows[i].text, strlen(rows[i].text), &value),
				 rows[i].len);
		if (!(value == rows[i].want))
			fail_msg("'%s' became %g", rows[i].text, value);
	}
}

static void nan_is_a_number_here(void **state)
{
	double value = 42;

	(void)state;
	assert_int_equal(text_float("nan", 3, &value), 3);
	assert_true(isnan(value));
	value = 42;
	assert_int_equal(text_float("-NaN)", 5, &value), 4);
	assert_true(isnan(value));
}

static void what_is_no_number_has_no_length(void **state)
{
	static const char *const rows[] = { "",    "x",    ".",     "-",       "+-1", "e5",   "-e5",
					    ".e5", "info", "nanny", "infinit", " 1",  "inf_a" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		double value = 42;

		assert_int_equal(text_float(rows[i], strlen(rows[i]), &value), 0);
		assert_true(value == 42);
	}
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
	double value = 0;

	(void)state;
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
		skip();
	assert_int_equal(text_float("1.5", 3, &value), 3);
	setlocale(LC_NUMERIC, "C");
	assert_true(value == 1.5);
}

static void durations_have_units(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: refused */
	} rows[] = {
		{ "0", 0 },
		{ "90s", 90000 },
		{ "250ms", 250 },
		{ "2h", 7200000 },
		{ "7d", 604800000 },
		{ "1w", 604800000 },
		{ "3m", 180000 },
		{ "1.5h", 5400000 },
		{ "0.1s", 100 },
		{ "0.0005s", 1 },
		{ "0.0004s", 0 },
		{ "1.9999999999999999999999s", 2000 },
		{ "007s", 7000 },
		{ "9223372036854775807ms", INT64_MAX },
		{ "9223372036854775808ms", -1 },
		{ "18446744073709551616ms", -1 },
		{ "15250284453w", -1 },
		{ "15250284452w", 15250284452 * 604800000 },
		{ "", -1 },
		{ "5", -1 },
		{ "00", -1 },
		{ "0.0", -1 },
		{ "s", -1 },
		{ "-5s", -1 },
		{ "+5s", -1 },
		{ " 5s", -1 },
		{ "5 s", -1 },
		{ "5s ", -1 },
		{ "5S", -1 },
		{ "5sec", -1 },
		{ "5.s", -1 },
		{ ".5s", -1 },
		{ "1.5.5s", -1 },
		{ "1e3s", -1 },
		{ "1h30m", -1 },
		{ "0x10s", -1 },
		{ "inf", -1 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		int64_t ms = -1;

		if (text_duration(rows[i].text, &ms) != (rows[i].want >= 0) || ms != rows[i].want)
			fail_msg("'%s' became %lld", rows[i].text, (long long)ms);
	}
}

static void sizes_have_units(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t want;
	} rows[] = {
		{ "0", true, 0 },
		{ "1000000", true, 1000000 },
		{ "12B", true, 12 },
		{ "64KB", true, 64000 },
		{ "1MB", true, 1000000 },
		{ "1GB", true, 1000000000 },
		{ "2TB", true, 2000000000000 },
		{ "1KiB", true, 1024 },
		{ "512 MiB", true, 536870912 },
		{ "8GiB", true, 8589934592 },
		{ "1.5TiB", true, 1649267441664 },
		{ "0.1KiB", true, 102 },
		{ "18446744073709551615", true, UINT64_MAX },
		{ "16777215.999999TiB", true, UINT64_C(18446744073708452104) },
		{ "18446744073709551616", false, 0 },
		{ "16777216TiB", false, 0 },
		{ "1.5", false, 0 },
		{ "1.5B", false, 0 },
		{ "", false, 0 },
		{ "8 ", false, 0 },
		{ "8  GiB", false, 0 },
		{ " 8GiB", false, 0 },
		{ "8GiB ", false, 0 },
		{ "8gib", false, 0 },
		{ "8G", false, 0 },
		{ "GiB", false, 0 },
		{ "-1", false, 0 },
		{ "1e3", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		uint64_t bytes = 0;

		if (text_size(rows[i].text, &bytes) != rows[i].good || bytes != rows[i].want)
			fail_msg("'%s' became %llu", rows[i].text, (unsigned long long)bytes);
	}
}

static void durations_and_sizes_are_written_for_people(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} times[] = {
		{ 0, "0 ms" },           { 340, "340 ms" },
		{ 999, "999 ms" },       { 1000, "1.0 s" },
		{ 2149, "2.1 s" },       { 59999, "59.9 s" },
		{ 60000, "1m 00s" },     { 65000, "1m 05s" },
		{ 3599999, "59m 59s" },  { 3600000, "1h 00m" },
		{ 86399999, "23h 59m" }, { 86400000, "1d 00h" },
		{ -65000, "-1m 05s" },   { INT64_MIN, "-106751991167d 07h" },
	};
	static const struct {
		uint64_t bytes;
		const char *want;
	} sizes[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 1048575, "1023.9 KiB" },
		{ 8589934592, "8.0 GiB" },
		{ UINT64_MAX, "15.9 EiB" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(times); i++) {
		AUTO(auto_free) char *text = text_format_duration(times[i].ms);

		assert_string_equal(text, times[i].want);
	}
	for (size_t i = 0; i < STK_LENGTH(sizes); i++) {
		AUTO(auto_free) char *text = text_format_bytes(sizes[i].bytes);

		assert_string_equal(text, sizes[i].want);
	}
}

static void distances_count_edits_and_swaps(void **state)
{
	static const struct {
		const char *a, *b;
		size_t want;
	} rows[] = {
		{ "", "", 0 },
		{ "", "abc", 3 },
		{ "same", "same", 0 },
		{ "retires", "retries", 1 },
		{ "engin", "engine", 1 },
		{ "kitten", "sitting", 3 },
		{ "ab", "ba", 1 },
		{ "ca", "abc", 3 }, /* optimal string alignment */
		{ "abcd", "badc", 2 },
		{ "checkpoint", "chekcpoints", 2 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		assert_int_equal(text_distance(rows[i].a, rows[i].b, SIZE_MAX), rows[i].want);
		for (size_t limit = 0; limit < 8; limit++) {
			size_t want = rows[i].want <= limit ? rows[i].want : limit + 1;

			assert_int_equal(text_distance(rows[i].a, rows[i].b, limit), want);
			assert_int_equal(text_distance(rows[i].b, rows[i].a, limit), want);
		}
	}
}

static void beginnings_are_compared(void **state)
{
	(void)state;
	assert_true(text_starts("s3://bucket", "s3://"));
	assert_true(text_starts("x", ""));
	assert_false(text_starts("s3:", "s3://"));
	assert_false(text_starts("", "x"));
}

static void run_ids_rise_and_are_valid(void **state)
{
	char before[RUN_ID_LEN + 1] = "", id[RUN_ID_LEN + 1];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		text_run_id_new(id);
		assert_int_equal(strlen(id), RUN_ID_LEN);
		assert_int_equal(strspn(id, "0123456789abcdefghjkmnpqrstvwxyz"), RUN_ID_LEN);
		if (strcmp(before, id) >= 0)
			fail_msg("'%s' came after '%s'", id, before);
		memcpy(before, id, sizeof id);
	}
	assert_true(text_run_id_valid(id));
}

static void ids_of_people_are_checked(void **state)
{
	static const char *const good[] = { "a", "7", "nightly-2026-11-21", "a--b-",
					    "abcdefghijklmnopqrstuvwxyz0123456789abcd" };
	static const char *const bad[] = { "",
					   "-a",
					   "A",
					   "a_b",
					   "a b",
					   "a/b",
					   "..",
					   "a.b",
					   "a\n",
					   "\xc3\xa9",
					   "@last",
					   "a\x7f",
					   "abcdefghijklmnopqrstuvwxyz0123456789abcde" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(good); i++)
		assert_true(text_run_id_valid(good[i]));
	for (size_t i = 0; i < STK_LENGTH(bad); i++)
		assert_false(text_run_id_valid(bad[i]));
}

static void a_login_in_a_url_is_seen(void **state)
{
	static const char *const with[] = { "http://me:word@proxy:3128", "postgres://u:p@h/db",
					    "a http://x/ and https://token@host", "://@",
					    "me:word@proxy:3128" };
	static const char *const without[] = { "",
					       "me@host",
					       "the me:word@host",
					       "host:22/a@b",
					       "http://proxy:3128",
					       "https://host/a@b",
					       "https://host?x=a@b",
					       "https://host mail@host",
					       "://" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(with); i++)
		assert_true(text_has_login(with[i]));
	for (size_t i = 0; i < STK_LENGTH(without); i++)
		assert_false(text_has_login(without[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_login_in_a_url_is_seen),
		cmocka_unit_test(ordinary_text_passes_unchanged),
		cmocka_unit_test(controls_become_visible),
		cmocka_unit_test(malformed_utf8_becomes_visible_byte_by_byte),
		cmocka_unit_test(nothing_is_read_past_the_length),
		cmocka_unit_test(every_code_point_is_read_as_it_is_written),
		cmocka_unit_test(numbers_are_read_in_full),
		cmocka_unit_test(nan_is_a_number_here),
		cmocka_unit_test(what_is_no_number_has_no_length),
		cmocka_unit_test(numbers_do_not_depend_on_the_locale),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(durations_and_sizes_are_written_for_people),
		cmocka_unit_test(distances_count_edits_and_swaps),
		cmocka_unit_test(beginnings_are_compared),
		cmocka_unit_test(run_ids_rise_and_are_valid),
		cmocka_unit_test(ids_of_people_are_checked),
	};

	return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
