/* Unquoted scalars by the core schema of YAML 1.2, and numbers with units. */
#include "tests/unit/spec/spec_fixture.h"

#include <math.h>

#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/fields/units.h"

static void plain_scalars_are_what_yaml_1_2_says(void **state)
{
	static const struct {
		const char *text;
		enum scalar_kind kind;
	} rows[] = {
		{ "", SCALAR_NULL },      { "~", SCALAR_NULL },          { "null", SCALAR_NULL },
		{ "NULL", SCALAR_NULL },  { "nUll", SCALAR_TEXT },       { "none", SCALAR_TEXT },
		{ "true", SCALAR_BOOL },  { "FALSE", SCALAR_BOOL },      { "tRue", SCALAR_TEXT },
		{ "yes", SCALAR_TEXT },   { "no", SCALAR_TEXT },         { "on", SCALAR_TEXT },
		{ "y", SCALAR_TEXT },     { "0", SCALAR_INT },           { "-12", SCALAR_INT },
		{ "+3", SCALAR_INT },     { "012", SCALAR_INT },         { "0o17", SCALAR_INT },
		{ "0o18", SCALAR_TEXT },  { "0x1F", SCALAR_INT },        { "0xG", SCALAR_TEXT },
		{ "0x", SCALAR_TEXT },    { "1_000", SCALAR_TEXT },      { "1,000", SCALAR_TEXT },
		{ "-", SCALAR_TEXT },     { "+", SCALAR_TEXT },          { ".", SCALAR_TEXT },
		{ "1.", SCALAR_REAL },    { ".5", SCALAR_REAL },         { "-1.5e-3", SCALAR_REAL },
		{ "3e4", SCALAR_REAL },   { "3e", SCALAR_TEXT },         { "1.2.3", SCALAR_TEXT },
		{ ".inf", SCALAR_REAL },  { "-.INF", SCALAR_REAL },      { ".nan", SCALAR_REAL },
		{ "+.nan", SCALAR_TEXT }, { "inf", SCALAR_TEXT },        { "nan", SCALAR_TEXT },
		{ "12:30", SCALAR_TEXT }, { "2026-11-21", SCALAR_TEXT }, { "1 2", SCALAR_TEXT },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (scalar_kind(rows[i].text) != rows[i].kind)
			fail_msg("'%s' is %d", rows[i].text, (int)scalar_kind(rows[i].text));
}

static void numbers_keep_their_value_or_say_that_they_do_not_fit(void **state)
{
	int64_t value;

	(void)state;
	assert_true(scalar_int("9223372036854775807", &value) && value == INT64_MAX);
	assert_true(scalar_int("-9223372036854775808", &value) && value == INT64_MIN);
	assert_false(scalar_int("9223372036854775808", &value));
	assert_true(scalar_int("0o17", &value) && value == 15);
	assert_true(scalar_int("0x1F", &value) && value == 31);
	assert_true(scalar_int("010", &value) && value == 10);
	assert_true(scalar_real("0x10") == 16.0);
	assert_true(isinf(scalar_real("-.inf")) && scalar_real("-.inf") < 0);
	assert_true(isnan(scalar_real(".NaN")));
	assert_true(scalar_is_octal_like("-012") && !scalar_is_octal_like("0"));
	assert_false(scalar_is_octal_like("0x1"));
}

static void json_numbers_are_told_from_other_numbers(void **state)
{
	static const char *const good[] = { "0", "-1", "1.50", "3e-4", "1E+5" };
	static const char *const bad[] = { "+1", "01", ".5", "1.", "0x1", "1e", "-", "" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(good); i++)
		assert_true(scalar_is_json_number(good[i]));
	for (size_t i = 0; i < STK_LENGTH(bad); i++)
		assert_false(scalar_is_json_number(bad[i]));
}

static void percentages_are_exact(void **state)
{
	int64_t value;

	(void)state;
	assert_true(units_parse(FIELD_PERCENT, "0.1%", &value) && value == 100);
	assert_true(units_parse(FIELD_PERCENT, "100%", &value) && value == 100000);
	assert_false(units_parse(FIELD_PERCENT, "5", &value));
	assert_false(units_parse(FIELD_PERCENT, "%", &value));
	assert_false(units_parse(FIELD_PERCENT, "-1%", &value));
	assert_false(units_parse(FIELD_PERCENT, "nan%", &value));
	assert_false(units_parse(FIELD_PERCENT, "1%%", &value));
}

static void other_units_get_the_right_one_as_cure(void **state)
{
	static const struct {
		enum field_type type;
		const char *text, *cure;
	} rows[] = {
		{ FIELD_DURATION, "5min", "write 5m" },
		{ FIELD_DURATION, "1.5 Hours", "write 1.5h" },
		{ FIELD_DURATION, "7", "add a unit: 7s, 7m or 7h" },
		{ FIELD_DURATION, "1h30m", "use one unit: 90m, not 1h30m" },
		{ FIELD_DURATION, "soon", "for example: 2h" },
		{ FIELD_SIZE, "8G", "write 8GiB" },
		{ FIELD_SIZE, "8gb", "write 8GiB" },
		{ FIELD_PERCENT, "5", "add a percent sign: 5%" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *cure = units_hint(rows[i].type, rows[i].text, "2h");

		assert_string_equal(cure, rows[i].cure);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_scalars_are_what_yaml_1_2_says),
		cmocka_unit_test(numbers_keep_their_value_or_say_that_they_do_not_fit),
		cmocka_unit_test(json_numbers_are_told_from_other_numbers),
		cmocka_unit_test(percentages_are_exact),
		cmocka_unit_test(other_units_get_the_right_one_as_cure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
