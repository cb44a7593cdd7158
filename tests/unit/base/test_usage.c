/* Names of a node's figures: jobs/base/usage.h. */
#include "jobs/base/usage.h"

#include "unit.h"

static void each_figure_is_found_by_its_name_and_no_other_is(void **state)
{
	char name[USAGE_NAME];
	size_t figures = 0;

	(void)state;
	for (size_t i = 0; i < USAGE_END + 10; i++) {
		if (!usage_name(i, name))
			continue;
		assert_true(usage_is_reserved(name));
		assert_int_equal(usage_find(name), i);
		figures++;
	}
	assert_int_equal(figures, USAGE_FIGURES + 2 * USAGE_DEVICES_MAX);
	assert_true(usage_name(usage_full(7), name));
	assert_string_equal(name, "node/device-memory.7");
	assert_int_equal(usage_find("node/device.256"), SIZE_MAX);
	assert_int_equal(usage_find("node/"), SIZE_MAX);
	assert_int_equal(usage_find("cpu"), SIZE_MAX);
	assert_false(usage_is_reserved("loss"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_figure_is_found_by_its_name_and_no_other_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
