/* The promises of jobs/report/sparkline.h. */
#include "jobs/report/sparkline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void a_line_shows_the_shape(void **state)
{
	AUTO(sb_release) struct sb blocks = SB_INIT, ascii = SB_INIT;
	struct sparkline line = { 0 };

	(void)state;
	for (int i = 0; i < 8; i++)
		sparkline_add(&line, i);
	assert_int_equal(sparkline_draw(&line, 20, true, &blocks), 8);
	assert_string_equal(blocks.text, "▁▂▃▄▅▆▇█");
	assert_int_equal(sparkline_draw(&line, 8, false, &ascii), 8);
	assert_string_equal(ascii.text, "_.:-=+*#");
}

static void a_line_is_no_longer_than_its_room_and_shows_all_of_the_course(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	struct sparkline line = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		sparkline_add(&line, i < 50000 ? 1 : 2);
	assert_int_equal(sparkline_draw(&line, 10, false, &out), 10);
	assert_string_equal(out.text, "_____#####");
}

static void what_is_no_number_is_marked(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT, wild = SB_INIT;
	struct sparkline line = { 0 }, extreme = { 0 };

	(void)state;
	sparkline_add(&line, 1);
	sparkline_add(&line, NAN);
	sparkline_add(&line, 2);
	sparkline_add(&line, INFINITY);
	assert_int_equal(sparkline_draw(&line, 10, false, &out), 4);
	assert_string_equal(out.text, "_x#x");
	sparkline_add(&extreme, -1.7e308);
	sparkline_add(&extreme, 1.7e308);
	assert_int_equal(sparkline_draw(&extreme, 10, false, &wild), 2);
}

static void less_than_two_values_have_no_shape(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	struct sparkline line = { 0 };

	(void)state;
	sparkline_add(&line, 1);
	assert_int_equal(sparkline_draw(&line, 10, true, &out), 0);
	sparkline_add(&line, 1);
	assert_int_equal(sparkline_draw(&line, 1, true, &out), 0);
	assert_int_equal(sparkline_draw(&line, 10, true, &out), 2);
	assert_string_equal(out.text, "▁▁");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_shows_the_shape),
		cmocka_unit_test(a_line_is_no_longer_than_its_room_and_shows_all_of_the_course),
		cmocka_unit_test(what_is_no_number_is_marked),
		cmocka_unit_test(less_than_two_values_have_no_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
