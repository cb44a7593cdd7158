/* The table of environment variables, asked by name. */
#include "jobs/base/variable.h"

#include "tests/unit/base/unit.h"

static void a_row_is_found_by_a_name_or_a_name_with_its_value(void **state)
{
	(void)state;
	assert_ptr_equal(variable_find("AWS_REGION"), &variable_rows[VAR_AWS_REGION]);
	assert_ptr_equal(variable_find("AWS_REGION=eu-west-1"), &variable_rows[VAR_AWS_REGION]);
	assert_null(variable_find("AWS_REGIO"));
	assert_null(variable_find("AWS_REGIONS"));
	assert_null(variable_find(""));
}

static void a_star_stands_for_all_that_begin_so(void **state)
{
	(void)state;
	assert_ptr_equal(variable_find("AWS_ENDPOINT_URL"), &variable_rows[VAR_AWS_ENDPOINT_URL]);
	assert_ptr_equal(variable_find("AWS_ENDPOINT_URL_S3=x"),
			 &variable_rows[VAR_AWS_ENDPOINT_URL_ANY]);
	assert_null(variable_find("AWS_ENDPOINT_URL_"));
}

static void what_is_lent_to_an_agent_is_not_passed_to_its_command(void **state)
{
	(void)state;
	for (int i = 0; i < VAR_COUNT; i++)
		if (variable_rows[i].uses & VAR_LENT)
			assert_false(variable_rows[i].uses & (VAR_PASSED | VAR_GIVEN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_found_by_a_name_or_a_name_with_its_value),
		cmocka_unit_test(a_star_stands_for_all_that_begin_so),
		cmocka_unit_test(what_is_lent_to_an_agent_is_not_passed_to_its_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
