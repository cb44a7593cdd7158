/* Requests in steps with a service's limits. */
#include "aws/http/rate_limit.h"

#include "aws/operation.h"
#include "tests/unit/aws/world.h"

static void the_first_go_at_once_and_the_rest_evenly(void **state)
{
	const struct rate_limit_rate rate = { 10, 3 };
	struct rate_limit pace = { 0 };

	(void)state;
	assert_int_equal(rate_limit_place(&pace, &rate, 5000), 0);
	assert_int_equal(rate_limit_place(&pace, &rate, 5000), 0);
	assert_int_equal(rate_limit_place(&pace, &rate, 5000), 0);
	assert_int_equal(rate_limit_place(&pace, &rate, 5000), 100);
	assert_int_equal(rate_limit_place(&pace, &rate, 5000), 200);
	/* A later request waits for those before it. */
	assert_int_equal(rate_limit_place(&pace, &rate, 5150), 150);
	/* After a pause as many go at once as at first, and no more. */
	assert_int_equal(rate_limit_place(&pace, &rate, 60000), 0);
	assert_int_equal(rate_limit_place(&pace, &rate, 60000), 0);
	assert_int_equal(rate_limit_place(&pace, &rate, 60000), 0);
	assert_int_equal(rate_limit_place(&pace, &rate, 60000), 100);
}

static void no_second_has_more_than_the_rate_and_the_burst(void **state)
{
	(void)state;
	for (enum aws_operation op = 0; op < AWS_OPERATION_COUNT; op++) {
		const struct rate_limit_rate *rate = operation_rate(op);
		struct rate_limit pace = { 0 };
		int64_t at[200];

		if (rate->a_second <= 0)
			continue;
		for (int i = 0; i < 200; i++)
			at[i] = 1000 + rate_limit_place(&pace, rate, 1000);
		for (int i = 0, j = 0; i < 200; i++) {
			while (at[i] - at[j] >= 1000)
				j++;
			assert_true(i - j + 1 <= (int)rate->a_second + rate->burst);
		}
		/* 200 take their time, and no more than that. */
		assert_in_range(at[199] - at[0], (200 - rate->burst) * 1000 / rate->a_second - 1,
				200 * 1000 / rate->a_second);
	}
}

static void what_has_no_rate_goes_as_it_comes(void **state)
{
	struct rate_limit pace = { 0 };

	(void)state;
	assert_true(operation_rate(AWS_GET_OBJECT)->a_second == 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(rate_limit_place(&pace, operation_rate(AWS_GET_OBJECT), 7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_go_at_once_and_the_rest_evenly),
		cmocka_unit_test(no_second_has_more_than_the_rate_and_the_burst),
		cmocka_unit_test(what_has_no_rate_goes_as_it_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
