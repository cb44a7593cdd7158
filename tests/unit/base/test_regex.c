/* The promises of regex.h: groups, bytes, refusals, and an end to every search. */
#include "jobs/base/text/regex.h"

#include "jobs/base/clock.h"
#include "tests/unit/base/unit.h"

static struct regex *compiled(const char *pattern)
{
	AUTO(err_freep) struct err *err = NULL;
	struct regex *re = NULL;

	regex_compile(pattern, &re, &err);
	assert_no_error(err);
	return re;
}

static void groups_have_their_offsets(void **state)
{
	static const char line[] = "{'loss': 6.25e-05, 'step': 40}";
	AUTO(regex_freep) struct regex *re = compiled("'(loss|lr)': ([0-9.]+)(e[-+0-9]+)?");
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	assert_int_equal(regex_groups(re), 3);
	assert_true(regex_find(re, line, strlen(line), 0, spans));
	assert_int_equal(spans[0].from, 1);
	assert_int_equal(spans[0].to, 17);
	assert_memory_equal(line + spans[1].from, "loss", spans[1].to - spans[1].from);
	assert_memory_equal(line + spans[2].from, "6.25", spans[2].to - spans[2].from);
	assert_true(spans[3].set);
}

static void a_group_that_took_no_part_is_not_set(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("(a)|(b)|(c)");
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	assert_true(regex_find(re, "b", 1, 0, spans));
	assert_false(spans[1].set);
	assert_true(spans[2].set);
	assert_false(spans[3].set);
	assert_int_equal(spans[1].from, 0);
	assert_int_equal(spans[1].to, 0);
}

static void the_search_begins_at_start(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("a");
	AUTO(regex_freep) struct regex *behind = compiled("(?<=x)a");
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	assert_true(regex_find(re, "axxa", 4, 1, spans));
	assert_int_equal(spans[0].from, 3);
	assert_false(regex_find(re, "axxa", 4, 4, spans));
	assert_false(regex_find(re, "axxa", 4, 5, spans));
	/* Text before the start can still be looked at. */
	assert_true(regex_find(behind, "xa", 2, 1, spans));
}

static void a_long_text_is_searched_to_its_end(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("needle=([0-9]+)$");
	AUTO(regex_freep) struct regex *from_start = compiled("^.*needle=([0-9]+)$");
	AUTO(auto_free) char *text = mem_alloc(60000);
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	/* The match lies at each place around the borders of the pieces that are searched at
	 * once. */
	for (size_t at = 1000; at < 60000; at += at % 1024 < 40 || at % 1024 > 1000 ? 1 : 37) {
		memset(text, 'n', 60000);
		memcpy(text + at - 9, "needle=12", 9);
		assert_true(regex_find(re, text, at, 0, spans));
		assert_int_equal(spans[0].from, at - 9);
		assert_int_equal(spans[0].to, at);
	}
	assert_true(regex_find(from_start, text, 59990, 0, spans) == false);
	memcpy(text + 59990 - 9, "needle=12", 9);
	assert_true(regex_find(from_start, text, 59990, 0, spans));
	assert_int_equal(spans[0].from, 0);
	assert_int_equal(regex_given_up(re) + regex_given_up(from_start), 0);
}

static void an_empty_match_is_a_match(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("x*");
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	assert_true(regex_find(re, "", 0, 0, spans));
	assert_true(spans[0].set);
	assert_true(regex_find(re, "abc", 3, 3, spans));
	assert_int_equal(spans[0].from, 3);
	assert_int_equal(spans[0].to, 3);
}

static void subjects_are_bytes(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("a(.)b");
	AUTO(regex_freep) struct regex *zero = compiled("\\x00([0-9])");
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	assert_true(regex_find(re,
			       "a\xff"
			       "b",
			       3, 0, spans));
	assert_true(regex_find(zero,
			       "a\0"
			       "7",
			       3, 0, spans));
	assert_int_equal(spans[1].from, 2);
}

static void bad_patterns_are_refused_with_reason_and_offset(void **state)
{
	static const struct {
		const char *pattern, *reason;
	} rows[] = {
		{ "abc(", "missing closing parenthesis (at offset 4)" },
		{ "[a", "missing terminating ]" },
		{ "*a", "quantifier does not follow a repeatable item" },
		{ "(?<n>a)(?<n>b)", "two named subpatterns" },
		{ "a\\Cb", "\\C" },
		{ "(*UTF)a", "disabled" },
		{ "(*UCP)a", "disabled" },
		{ "((((((((((((((((()))))))))))))))))", "17 groups, at most 16" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		struct regex *re = NULL;

		assert_int_equal(regex_compile(rows[i].pattern, &re, &err), -1);
		assert_null(re);
		assert_int_equal(err->code, EXIT_SPEC);
		assert_contains(err->message, rows[i].reason);
	}
}

static void sixteen_groups_and_the_longest_pattern_are_allowed(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("(((((((((((((((())))))))))))))))");
	AUTO(auto_free) char *longest = mem_zero(REGEX_PATTERN_MAX + 2, 1);
	AUTO(err_freep) struct err *err = NULL;
	struct regex_span spans[REGEX_GROUPS_MAX + 1];
	struct regex *long_re;

	(void)state;
	assert_int_equal(regex_groups(re), 16);
	assert_true(regex_find(re, "", 0, 0, spans));
	assert_true(spans[16].set);
	memset(longest, 'a', REGEX_PATTERN_MAX);
	long_re = compiled(longest);
	regex_freep(&long_re);
	longest[REGEX_PATTERN_MAX] = 'a';
	assert_int_equal(regex_compile(longest, &long_re, &err), -1);
	assert_contains(err->message, "4097 bytes");
}

static void too_many_groups_come_with_a_hint(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct regex *re = NULL;

	(void)state;
	regex_compile("((((((((((((((((()))))))))))))))))", &re, &err);
	assert_contains(err->hint, "(?:...)");
}

/* No search of a text of 64 KiB takes longer than this, sanitizers included. */
#define LONGEST_SEARCH_MS 60000

static void catastrophic_patterns_end(void **state)
{
	static const char *const patterns[] = {
		"(a+)+$",          "(a|aa)+$",     "(a*)*b",           "(.*)(.*)(.*)(.*)(.*)[^a!]$",
		"(a|b|ab)*(?=c)x", "((a*)*)*b\\1", "(?:a?){60}a{60}z", "^(?:(?:a+)+)+[^a]x",
		"(x?a)*(?R)?b",
	};
	AUTO(auto_free) char *text = mem_alloc(65536);
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	(void)state;
	memset(text, 'a', 65536);
	text[65535] = '!';
	for (size_t i = 0; i < STK_LENGTH(patterns); i++) {
		AUTO(regex_freep) struct regex *re = compiled(patterns[i]);
		struct mono began = clock_mono_now();

		assert_false(regex_find(re, text, 65536, 0, spans));
		assert_true(clock_mono_now().ms - began.ms < LONGEST_SEARCH_MS);
	}
}

/* Each starting point stays below the limit on steps; all together take minutes. */
static void dear_patterns_end_by_the_clock(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("(?:a|aa|aaa){9}[b-z]");
	AUTO(auto_free) char *text = mem_alloc(4 << 20);
	struct regex_span spans[REGEX_GROUPS_MAX + 1];
	struct mono began = clock_mono_now();

	(void)state;
	memset(text, 'a', 4 << 20);
	assert_false(regex_find(re, text, 4 << 20, 0, spans));
	assert_true(clock_mono_now().ms - began.ms < LONGEST_SEARCH_MS);
	assert_int_equal(regex_given_up(re), 1);
}

static void giving_up_is_counted(void **state)
{
	AUTO(regex_freep) struct regex *re = compiled("(a+)+$");
	struct regex_span spans[REGEX_GROUPS_MAX + 1];
	char text[40];

	(void)state;
	memset(text, 'a', sizeof text);
	assert_true(regex_find(re, text, sizeof text, 0, spans));
	assert_int_equal(regex_given_up(re), 0);
	text[39] = '!';
	assert_false(regex_find(re, text, sizeof text, 0, spans));
	assert_int_equal(regex_given_up(re), 1);
	assert_false(regex_find(re, "!", 1, 0, spans));
	assert_int_equal(regex_given_up(re), 1);
	/* A million steps are too many, a thousand are not. */
	assert_false(regex_find(re, text + 19, 21, 0, spans));
	assert_int_equal(regex_given_up(re), 2);
	assert_false(regex_find(re, text + 30, 10, 0, spans));
	assert_int_equal(regex_given_up(re), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_have_their_offsets),
		cmocka_unit_test(a_group_that_took_no_part_is_not_set),
		cmocka_unit_test(the_search_begins_at_start),
		cmocka_unit_test(a_long_text_is_searched_to_its_end),
		cmocka_unit_test(an_empty_match_is_a_match),
		cmocka_unit_test(subjects_are_bytes),
		cmocka_unit_test(bad_patterns_are_refused_with_reason_and_offset),
		cmocka_unit_test(sixteen_groups_and_the_longest_pattern_are_allowed),
		cmocka_unit_test(too_many_groups_come_with_a_hint),
		cmocka_unit_test(catastrophic_patterns_end),
		cmocka_unit_test(dear_patterns_end_by_the_clock),
		cmocka_unit_test(giving_up_is_counted),
	};

	return cmocka_run_group_tests_name("base/regex", tests, NULL, NULL);
}
