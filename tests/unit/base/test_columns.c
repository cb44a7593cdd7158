/* The promises of jobs/base/text/columns.h. */
#include "jobs/base/text/columns.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void fits(const char *text, size_t max, bool utf8, const char *want, size_t columns)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	assert_int_equal(columns_fit(&out, text, strlen(text), max, utf8), columns);
	assert_string_equal(out.text, want);
}

static void widths_are_those_of_unicode_in_every_locale(void **state)
{
	(void)state;
	assert_string_equal(setlocale(LC_ALL, NULL), "C");
	assert_int_equal(columns_width("a", 1, true), 1);
	assert_int_equal(columns_width("é", 2, true), 1);
	assert_int_equal(columns_width("漢", 3, true), 2);
	assert_int_equal(columns_width("\U0001f600", 4, true), 2);
	assert_int_equal(columns_width("a\u0301", 3, true), 1);
	assert_int_equal(columns_width("a\u200d", 4, true), 1);
	assert_string_equal(setlocale(LC_ALL, NULL), "C");
}

static void what_fits_stays_whole(void **state)
{
	(void)state;
	fits("", 0, true, "", 0);
	fits("abc", 3, true, "abc", 3);
	fits("漢字", 4, true, "漢字", 4);
	fits("e\u0301te\u0301", 3, true, "e\u0301te\u0301", 3);
}

static void what_does_not_fit_ends_in_dots_and_never_in_half_a_character(void **state)
{
	(void)state;
	fits("abcd", 3, true, "ab…", 3);
	fits("abcd", 3, false, "...", 3);
	fits("abcdef", 5, false, "ab...", 5);
	fits("漢字漢", 5, true, "漢字…", 5);
	fits("漢字漢", 4, true, "漢…", 3);
	fits("漢", 1, true, "…", 1);
	fits("abcd", 0, true, "", 0);
	fits("abcd", 2, false, "", 0); /* no room for the dots */
}

static void what_steers_a_terminal_becomes_visible(void **state)
{
	(void)state;
	fits("a\x1b[2Jb", 20, true, "a\\x1b[2Jb", 9);
	fits("\u202eabc", 20, true, "\\u202eabc", 9);
	fits("\xc2\x9b", 20, true, "\\u009b", 6);
	fits("\xff", 20, true, "\\xff", 4);
	fits("\u0378", 20, true, "\\u0378", 6);
	fits("a\tb\nc", 20, true, "a b\\x0ac", 8);
	fits("\x1b[2J", 3, true, "…", 1); /* an escape is whole or not there */
}

static void without_utf8_all_is_ascii(void **state)
{
	(void)state;
	fits("é漢", 20, false, "\\u00e9\\u6f22", 12);
	fits("\U0001f600", 20, false, "\\U0001f600", 10);
}

static void marks_without_end_are_left_out(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT, out = SB_INIT;

	(void)state;
	sb_adds(&text, "a");
	for (int i = 0; i < 100000; i++)
		sb_adds(&text, "\u0301");
	sb_adds(&text, "b");
	assert_int_equal(columns_fit(&out, text.text, text.len, 10, true), 2);
	assert_true(out.len < 20);
	assert_int_equal(out.text[out.len - 1], 'b');
}

static void a_width_is_what_fitting_takes(void **state)
{
	(void)state;
	assert_int_equal(columns_width("a漢\x1b", 5, true), 7);
	assert_int_equal(columns_width("漢", 3, false), 6);
}

static void what_is_there_already_is_never_cut(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	(void)state;
	sb_adds(&out, "before ");
	assert_int_equal(columns_fit(&out, "abcd", 4, 1, true), 1);
	assert_string_equal(out.text, "before …");
}

static void wraps(const char *text, size_t room, size_t rows, const char *want)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	columns_wrap(&out, text, strlen(text), room, 2, rows, true);
	assert_string_equal(out.text, want);
}

static void long_text_is_broken_at_blanks(void **state)
{
	(void)state;
	wraps("one two three", 20, 3, "one two three");
	wraps("one two three", 8, 3, "one two\n  three");
	wraps("one two three", 7, 3, "one two\n  three");
	wraps("one two three four", 5, 2, "one\n  two …");
	wraps("abcdefghij", 4, 3, "abcd\n  efgh\n  ij");
	wraps("漢字漢字", 5, 3, "漢字\n  漢字");
	wraps("漢字", 1, 3, "…"); /* no room for one character */
	wraps("a    b", 2, 3, "a\n  b");
	wraps("", 5, 3, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths_are_those_of_unicode_in_every_locale),
		cmocka_unit_test(what_fits_stays_whole),
		cmocka_unit_test(what_does_not_fit_ends_in_dots_and_never_in_half_a_character),
		cmocka_unit_test(what_steers_a_terminal_becomes_visible),
		cmocka_unit_test(without_utf8_all_is_ascii),
		cmocka_unit_test(marks_without_end_are_left_out),
		cmocka_unit_test(a_width_is_what_fitting_takes),
		cmocka_unit_test(what_is_there_already_is_never_cut),
		cmocka_unit_test(long_text_is_broken_at_blanks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
