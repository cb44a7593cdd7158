/* The promises of jobs/base/text/number_pattern.h and pattern_text.h: numbers are found whole, and
 * what is known of a pattern without a search is true. */
#include "jobs/base/text/number_pattern.h"

#include "jobs/base/text/pattern_text.h"
#include "jobs/base/text/regex.h"
#include "unit.h"

#include <math.h>

/* Returns the number that the pattern reads from the text, as a reader of metrics does; NOTHING: no
 * number. */
#define NOTHING (-12345.0)

static double read_by(const char *pattern, const char *text)
{
	AUTO(auto_free) char *whole = number_pattern_whole(pattern);
	AUTO(regex_freep) struct regex *regex = NULL;
	AUTO(err_freep) struct err *err = NULL;
	double value;

	assert_int_equal(regex_compile(whole ? whole : pattern, &regex, &err), 0);
	return regex_number(regex, text, strlen(text), &value) ? value : NOTHING;
}

static void numbers_are_found_whole(void **state)
{
	static const struct {
		const char *pattern, *text;
		double value;
	} rows[] = {
		{ "loss: ([0-9.]+)", "loss: 6.25e-05,", 6.25e-05 },
		{ "loss: ([0-9.]+)", "loss: -0.1", -0.1 },
		{ "loss: ([0-9.]+)", "loss: +3", 3 },
		{ "loss: ([0-9.]+)", "loss: -6.25E+05]", -6.25e5 },
		{ "loss: ([0-9.]+)", "loss: nan, lr: 1", NAN },
		{ "loss: ([0-9.]+)", "loss: NaN", NAN },
		{ "loss: ([0-9.]+)", "loss: -inf", -INFINITY },
		{ "loss: ([0-9.]+)", "loss: Infinity", INFINITY },
		{ "loss: ([0-9.]+)", "loss: info", NOTHING },
		{ "loss: ([0-9.]+)", "loss: nano", NOTHING },
		{ "loss: ([0-9.]+)", "loss: none", NOTHING },
		{ "'loss': ([0-9\\.]+)", "{'loss': -0.1, 'grad_norm': nan}", -0.1 },
		{ "'grad_norm': ([0-9\\.]+)", "{'loss': -0.1, 'grad_norm': nan}", NAN },
		{ "loss.*?([0-9.]+)", "loss = -0.1", -0.1 },
		{ "loss[^0-9]*([0-9.]+)", "loss = 0.1", 0.1 },
		{ "loss (\\d+\\.\\d+)", "loss -0.5", -0.5 },
		{ "loss (\\d+\\.\\d+)", "loss nan", NAN },
		{ "loss (?<v>\\d*\\.?\\d*)", "loss -.5e-3", -0.5e-3 },
		{ "loss (\\S+)", "loss 6.25e-05", 6.25e-05 },
		{ "loss=([-+0-9.eE]+)", "loss=-1e-3", -1e-3 },
		/* A hyphen that only looks like a sign is none. */
		{ "epoch-([0-9]+)", "epoch-12", 12 },
		{ "epoch.*?([0-9]+)", "epoch-12", 12 },
		{ "of ([0-9]+)", "3 of 12-15", 12 },
		{ "/([0-9]+)", "3/12", 12 },
		{ "step ([0-9]+)/", "step 3/12", 3 },
		/* Numbers that are read by other rules are left as they are. */
		{ "\\Qloss(\\E([0-9.]+)", "loss(1.5", 1.5 },
		{ "(?x) loss \\s ([0-9.]+) # the loss", "loss 1.5", 1.5 },
		{ "loss ([a-z]+)", "loss abc", NOTHING },
		{ "(?i)LOSS ([0-9.]+)|err ([0-9.]+)", "loss -2", -2 },
		{ "(?:a|b) ([0-9.]+)", "b -2", -2 },
		{ "[(]([0-9.]+)[)]", "(-2)", -2 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		double value = read_by(rows[i].pattern, rows[i].text);

		if (isnan(rows[i].value) ? !isnan(value) : value != rows[i].value)
			fail_msg("%s in '%s': %g", rows[i].pattern, rows[i].text, value);
	}
}

static void what_a_pattern_loses_is_said(void **state)
{
	static const struct {
		const char *pattern, *words;
	} rows[] = {
		{ "loss: ([0-9.]+)", "cuts 6.25e-05 to 6.25 and loses -0.1 and nan" },
		{ "loss: ([-+]?[0-9.]+)", "cuts 6.25e-05 to 6.25" },
		{ "loss: ([0-9.e]+)", "cuts 6.25e-05 to 6.25e and loses -0.1 and nan" },
		{ "loss: ([0-9.eE+-]+)", NULL },
		{ "loss: (\\S+)", NULL },
		{ "step ([0-9]+)", NULL },
		{ "no group", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *words = number_pattern_cuts(rows[i].pattern);

		if (!rows[i].words)
			assert_null(words);
		else
			assert_string_equal(words ? words : "", rows[i].words);
	}
}

static void a_match_begins_with_its_prefix(void **state)
{
	static const struct {
		const char *pattern, *prefix;
	} rows[] = {
		{ "loss: ([0-9.]+)", "loss: " },
		{ "^step: ([0-9]+)", "step: " },
		{ "\\blr=(\\S+)", "lr=" },
		{ "grad_norm[:=] ?([0-9.]+)", "grad_norm" },
		{ "\\[epoch ([0-9]+)\\]", "[epoch " },
		{ "los?s ([0-9]+)", "lo" },
		{ "los*s", "lo" },
		{ "los{2}", "lo" },
		{ "los+", "los" },
		{ "a|loss ([0-9]+)", "" },
		{ "loss (?:a|b)", "loss " },
		{ "loss [|]", "loss " },
		{ "loss \\| ([0-9]+)", "loss | " },
		{ "(?i)loss ([0-9]+)", "" },
		{ "loss (?x) a", "" },
		{ "\\Qa|b\\E", "" },
		{ "\\d+ loss", "" },
		{ ".loss", "" },
		{ "12345678901234567890123456789012345", "12345678901234567890123456789012" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		char prefix[PATTERN_TEXT_PREFIX];
		size_t len = pattern_text_prefix(rows[i].pattern, prefix);

		if (len != strlen(rows[i].prefix) || memcmp(prefix, rows[i].prefix, len) != 0)
			fail_msg("%s: '%.*s'", rows[i].pattern, (int)len, prefix);
	}
}

/* A search that begins at the prefix finds what one from the begin finds. */
static void a_prefix_changes_no_search(void **state)
{
	static const struct {
		const char *pattern, *text;
		size_t start, from; /* SIZE_MAX: nothing is found */
	} rows[] = {
		{ "^loss ([0-9]+)", "a loss 1", 0, SIZE_MAX },
		{ "^loss ([0-9]+)", "loss 1", 0, 0 },
		{ "(?m)^loss ([0-9]+)", "a\nloss 1", 0, 2 },
		{ "\\bloss ([0-9]+)", "aloss 1 loss 2", 0, 8 },
		{ "loss ([0-9]+)", "loss x loss 2 loss 3", 0, 7 },
		{ "loss ([0-9]+)", "loss 1 loss 2", 1, 7 },
		{ "loss ([0-9]+)", "loss", 0, SIZE_MAX },
		{ "loss", "xloss", 5, SIZE_MAX },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(regex_freep) struct regex *regex = NULL;
		AUTO(err_freep) struct err *err = NULL;
		struct regex_span spans[REGEX_GROUPS_MAX + 1];
		bool found;

		assert_int_equal(regex_compile(rows[i].pattern, &regex, &err), 0);
		found = regex_find(regex, rows[i].text, strlen(rows[i].text), rows[i].start, spans);
		assert_int_equal(found, rows[i].from != SIZE_MAX);
		if (found)
			assert_int_equal(spans[0].from, rows[i].from);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_found_whole),
		cmocka_unit_test(what_a_pattern_loses_is_said),
		cmocka_unit_test(a_match_begins_with_its_prefix),
		cmocka_unit_test(a_prefix_changes_no_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
