/* The promises of exitcode.h: the contract's codes, each once, in order. */
#include "jobs/base/exitcode.h"

#include "tests/unit/base/unit.h"

static void the_table_has_the_codes_of_the_contract_in_order(void **state)
{
	static const int want[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 75 };

	(void)state;
	assert_int_equal(exitcode_row_count, STK_LENGTH(want));
	for (size_t i = 0; i < exitcode_row_count; i++)
		assert_int_equal(exitcode_rows[i].code, want[i]);
}

static void names_are_unique_single_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < exitcode_row_count; i++) {
		const char *name = exitcode_rows[i].name;

		assert_true(*name != '\0');
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz"), strlen(name));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(name, exitcode_rows[j].name);
	}
}

static void meanings_are_one_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < exitcode_row_count; i++) {
		assert_true(strlen(exitcode_rows[i].meaning) > 5);
		assert_null(strpbrk(exitcode_rows[i].meaning, "\n\t"));
	}
}

static void a_row_is_found_by_its_code_alone(void **state)
{
	size_t found = 0;

	(void)state;
	for (int code = -300; code <= 300; code++) {
		const struct exit_row *row = exitcode_row_find(code);

		if (!row)
			continue;
		assert_int_equal(row->code, code);
		found++;
	}
	assert_int_equal(found, exitcode_row_count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_has_the_codes_of_the_contract_in_order),
		cmocka_unit_test(names_are_unique_single_words),
		cmocka_unit_test(meanings_are_one_line),
		cmocka_unit_test(a_row_is_found_by_its_code_alone),
	};

	return cmocka_run_group_tests_name("base/exitcode", tests, NULL, NULL);
}
