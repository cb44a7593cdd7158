/* The order of a sweep's runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/run/sweep/sweep_order.h"

#define COUNT 24

static void test_all_once(void **state)
{
	size_t order[COUNT];
	int seen[COUNT] = { 0 };

	(void)state;
	sweep_order("ladder", COUNT, order);
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(order[i] < COUNT);
		seen[order[i]]++;
	}
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(seen[i], 1);
}

static void test_by_id(void **state)
{
	size_t one[COUNT], again[COUNT], other[COUNT];

	(void)state;
	sweep_order("ladder", COUNT, one);
	sweep_order("ladder", COUNT, again);
	sweep_order("ladder-2", COUNT, other);
	assert_memory_equal(one, again, sizeof one);
	assert_memory_not_equal(one, other, sizeof one);
}

/* Each place takes each number about equally often. */
static void test_fair(void **state)
{
	int at_first[6] = { 0 };

	(void)state;
	for (int i = 0; i < 6000; i++) {
		char id[16];
		size_t order[6];

		snprintf(id, sizeof id, "s%d", i);
		sweep_order(id, 6, order);
		at_first[order[0]]++;
	}
	for (size_t i = 0; i < 6; i++)
		assert_in_range(at_first[i], 850, 1150);
}

static void test_few(void **state)
{
	size_t order[1] = { 7 };

	(void)state;
	sweep_order("x", 0, order);
	assert_int_equal(order[0], 7);
	sweep_order("x", 1, order);
	assert_int_equal(order[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_once),
		cmocka_unit_test(test_by_id),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
