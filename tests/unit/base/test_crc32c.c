/* The promise of jobs/base/crc32c.h: the check value of CRC-32C, and vectors of RFC 3720, B.4. */
#include "jobs/base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void it_is_castagnolis(void **state)
{
	unsigned char bytes[32];

	(void)state;
	assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c("", 0), 0);
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(crc32c(bytes, sizeof bytes), 0x8a9136aau);
	memset(bytes, 0xff, sizeof bytes);
	assert_int_equal(crc32c(bytes, sizeof bytes), 0x62a8ab43u);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(crc32c(bytes, sizeof bytes), 0x46dd794eu);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(it_is_castagnolis) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
