/* The promises of jobs/series/event_file.h: the very bytes that TensorBoard 2.21.0's own writer
 * makes (tensorboard.summary.writer.event_file_writer.EventFileWriter, TF stub) of the same values.
 */
#include "jobs/series/event_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/hash.h"

static void equals(const struct sb *bytes, const char *wanted)
{
	char hex[400];

	assert_true(bytes->len * 2 < sizeof hex);
	hash_hex_lower(bytes->text, bytes->len, hex);
	assert_string_equal(hex, wanted);
}

static void a_file_begins_with_its_version(void **state)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;

	(void)state;
	event_file_begin(&bytes, (struct utc){ 1795936446667 });
	equals(&bytes,
	       "1800000000000000a37f4b220921b0aa2ff4c2da411a0d627261696e2e4576656e743a32183aae24");
}

static void a_scalar_has_time_step_tag_and_value(void **state)
{
	AUTO(sb_release) struct sb bytes = SB_INIT, not_a_number = SB_INIT;

	(void)state;
	event_file_scalar(&bytes, (struct utc){ 1795936446667 }, 300000, "loss", 0.1);
	equals(&bytes, "1c00000000000000c8c1951d0921b0aa2ff4c2da4110e0a7122a0d0a0b0a046c6f737315cdc"
		       "ccc3d0fcfb82f");
	event_file_scalar(&not_a_number, (struct utc){ 1795936446667 }, 0, "loss", NAN);
	equals(&not_a_number,
	       "1800000000000000a37f4b220921b0aa2ff4c2da412a0d0a0b0a046c6f7373150000c07f9553c7dc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_begins_with_its_version),
		cmocka_unit_test(a_scalar_has_time_step_tag_and_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
