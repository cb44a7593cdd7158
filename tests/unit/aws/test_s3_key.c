/* Which keys of a bucket may become names of files, what an S3 URL says, and how S3
 * writes times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aws/s3/s3_request.h"

static void names_of_files_are_fit(void **state)
{
	static const char *const keys[] = { "a",         "a/b",
					    "a b/c+d=e", ".hidden",
					    "...",       "..a/b",
					    "a..",       "caf\xc3\xa9/\xf0\x9f\x9a\x82",
					    "%2e%2e" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(keys); i++)
		assert_null(s3_key_unsafe(keys[i], strlen(keys[i])));
}

static void what_would_lead_elsewhere_is_unfit(void **state)
{
	static const struct {
		const char *key, *why;
	} cases[] = {
		{ "", "is empty" },
		{ "/", "begins with a slash" },
		{ "/etc/passwd", "begins with a slash" },
		{ "a/", "ends with a slash" },
		{ "a//b", "has an empty part" },
		{ "..", "has a part '..'" },
		{ "../x", "has a part '..'" },
		{ "a/../x", "has a part '..'" },
		{ "a/..", "has a part '..'" },
		{ ".", "has a part '.'" },
		{ "a/./b", "has a part '.'" },
		{ "a\nb", "has a control byte" },
		{ "a\x7f", "has a control byte" },
		{ "\x1b[2J", "has a control byte" },
		{ "a\xff", "is not UTF-8" },
		{ "a\xc3", "is not UTF-8" },
	};
	char part[300], whole[1100];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(cases); i++)
		assert_string_equal(s3_key_unsafe(cases[i].key, strlen(cases[i].key)),
				    cases[i].why);
	assert_string_equal(s3_key_unsafe("a\0b", 3), "has a control byte");
	memset(part, 'p', sizeof part);
	assert_null(s3_key_unsafe(part, 255));
	assert_string_equal(s3_key_unsafe(part, 256), "has a part of more than 255 bytes");
	for (size_t i = 0; i < sizeof whole; i++)
		whole[i] = i % 10 == 9 ? '/' : 'w';
	assert_null(s3_key_unsafe(whole, 1024));
	assert_string_equal(s3_key_unsafe(whole, 1025), "is longer than 1024 bytes");
}

static void urls_name_bucket_and_prefix(void **state)
{
	static const struct {
		const char *url, *bucket, *prefix;
	} cases[] = {
		{ "s3://bucket", "bucket", "" },
		{ "s3://bucket/", "bucket", "" },
		{ "s3://my.bucket-1/a/b", "my.bucket-1", "a/b" },
		{ "s3://bucket/a b//", "bucket", "a b" },
		{ "s3:bucket/a", "bucket", "a" },
	};
	static const char *const wrong[] = { "s3://",    "s3://ab",        "s3:///key",
					     "s3://a b", "s3://-bucket",   "s3://bucket..x",
					     "s3:///",   "s3://b%41cket/k" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		AUTO(auto_free) char *bucket = NULL;
		AUTO(auto_free) char *prefix = NULL;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(s3_parse_url(cases[i].url, &bucket, &prefix, &err), 0);
		assert_string_equal(bucket, cases[i].bucket);
		assert_string_equal(prefix, cases[i].prefix);
	}
	for (size_t i = 0; i < STK_LENGTH(wrong); i++) {
		AUTO(auto_free) char *bucket = NULL;
		AUTO(auto_free) char *prefix = NULL;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(s3_parse_url(wrong[i], &bucket, &prefix, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(err->hint);
	}
}

static void times_are_read_as_s3_writes_them(void **state)
{
	static const int64_t at = 1795320306000; /* date -d @1795320306 */

	(void)state;
	assert_int_equal(s3_time("2026-11-22T04:05:06.000Z").ms, at);
	assert_int_equal(s3_time("2026-11-22T04:05:06.789Z").ms, at + 789);
	assert_int_equal(s3_time("2026-11-22T04:05:06Z").ms, at);
	assert_int_equal(s3_time("Sun, 22 Nov 2026 04:05:06 GMT").ms, at);
	assert_int_equal(s3_time("").ms, 0);
	assert_int_equal(s3_time("yesterday").ms, 0);
	assert_int_equal(s3_time("Sun, 22 Foo 2026 04:05:06 GMT").ms, 0);
	assert_int_equal(s3_time("2026-11-22T0x:05:06Z").ms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_files_are_fit),
		cmocka_unit_test(what_would_lead_elsewhere_is_unfit),
		cmocka_unit_test(urls_name_bucket_and_prefix),
		cmocka_unit_test(times_are_read_as_s3_writes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
