/* The promises of jobs/cache/kinds/output_scan.h: which lines are steps, and which of them are
 * progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/mem.h"
#include "jobs/cache/kinds/output_scan.h"

#define LIMIT_MS 60000

static struct output_scan scan;
static struct stall stall;

static int set_up(void **state)
{
	json_auto_t *metrics = json_pack("[{s:s,s:s}]", "name", "step", "regex", "step ([0-9]+)");
	struct err *err = NULL;

	(void)state;
	assert_int_equal(output_scan_init(&scan, metrics, NULL, &err), 0);
	scan.stall = &stall;
	stall_init(&stall, STALL_FIXED, LIMIT_MS, true, (struct mono){ 0 });
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	output_scan_release(&scan);
	scan = (struct output_scan){ 0 };
	return 0;
}

static void hear(int64_t at_ms, const char *text)
{
	output_scan_pass(&scan, (struct mono){ at_ms }, text, strlen(text));
}

static bool is_silent(int64_t at_ms)
{
	struct stall_silence verdict;

	return stall_check(&stall, (struct mono){ at_ms }, &verdict);
}

static void only_a_larger_step_is_progress_once_a_step_was_seen(void **state)
{
	(void)state;
	hear(1000, "step 19\nstep 20\n");
	hear(30000, "step 20\nstep 3\nstep 4\nanything else\n");
	assert_int_equal(scan.first_step, 19);
	assert_int_equal(scan.last_step, 20);
	for (int64_t at_ms = 10000; at_ms <= 61000; at_ms += 10000)
		assert_false(is_silent(at_ms));
	assert_true(is_silent(61001));
}

static void lines_end_at_a_carriage_return_too(void **state)
{
	(void)state;
	hear(1000, "step 1\rstep 2\r\nste");
	assert_int_equal(scan.last_step, 2);
	hear(2000, "p 3");
	assert_int_equal(scan.last_step, 2);
	hear(3000, "\n");
	assert_int_equal(scan.last_step, 3);
	assert_int_equal(scan.first_step, 1);
	assert_int_equal(stall.last.ms, 3000);
}

static void what_is_no_number_of_a_step_is_none(void **state)
{
	(void)state;
	hear(1000, "step 99999999999999999999\nstep x\nfootstep\n");
	assert_false(scan.stepped);
	assert_int_equal(scan.bytes, strlen("step 99999999999999999999\nstep x\nfootstep\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_a_larger_step_is_progress_once_a_step_was_seen,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_end_at_a_carriage_return_too, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_number_of_a_step_is_none, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
