/* The checksums that S3 keeps, against values that AWS's own library (awscrt) made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "aws/s3/s3_request.h"

#define MIXED_BYTES (256 * 41 + 3)

static void make_mixed(char bytes[MIXED_BYTES])
{
	for (size_t i = 0; i < 256 * 41; i++)
		bytes[i] = (char)(i & 255);
	memcpy(bytes + 256 * 41, "xyz", 3);
}

static const struct {
	enum s3_algorithm algorithm;
	const char *of_digits, *of_nothing, *of_mixed;
} rows[] = {
	{ S3_CRC32, "y/Q5Jg==", "AAAAAA==", "nH75jQ==" },
	{ S3_CRC32C, "4waSgw==", "AAAAAA==", "XAAqfw==" },
	{ S3_CRC64NVME, "rosUhgp5mIg=", "AAAAAAAAAAA=", "LiABeC65Wk8=" },
	{ S3_SHA256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
	  "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
	  "LI0aw6FOhds1aaEj/c7C0863fEaswaecdpsBAFQniaU=" },
};

static int of_file(const struct s3_checksum *checksum, const char *bytes, size_t len)
{
	char path[] = "/tmp/stoker-unit-XXXXXX";
	AUTO(auto_close) int fd = mkstemp(path);
	int good;

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	good = s3_checksum_file(checksum, fd, len);
	/* A file that is shorter has it not. */
	assert_int_equal(s3_checksum_file(checksum, fd, len + 1), 0);
	return good;
}

static void assert_has(enum s3_algorithm algorithm, const char *value, uint64_t of_part,
		       const char *bytes, size_t len, int want)
{
	struct s3_checksum checksum = { .algorithm = algorithm, .of_part = of_part };

	snprintf(checksum.value, sizeof checksum.value, "%s", value);
	assert_int_equal(s3_checksum_bytes(&checksum, bytes, len), want);
	assert_int_equal(of_file(&checksum, bytes, len), want);
}

static void each_algorithm_comes_to_what_aws_says(void **state)
{
	char mixed[MIXED_BYTES];

	(void)state;
	make_mixed(mixed);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		assert_has(rows[i].algorithm, rows[i].of_digits, 0, "123456789", 9, 1);
		assert_has(rows[i].algorithm, rows[i].of_nothing, 0, "", 0, 1);
		assert_has(rows[i].algorithm, rows[i].of_mixed, 0, mixed, sizeof mixed, 1);
	}
}

static void one_bit_makes_another(void **state)
{
	char mixed[MIXED_BYTES];

	(void)state;
	make_mixed(mixed);
	mixed[5000] ^= 1;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_has(rows[i].algorithm, rows[i].of_mixed, 0, mixed, sizeof mixed, 0);
}

static void parts_have_a_checksum_of_their_checksums(void **state)
{
	static const char value[] = "Ko89dnwDXNORcfplsd0QxBYvIrRvhuE/MwR3oNFvqx0=-3";
	char mixed[MIXED_BYTES];

	(void)state;
	make_mixed(mixed);
	assert_has(S3_SHA256, value, 4096, mixed, sizeof mixed, 1);
	assert_has(S3_SHA256, value, 8192, mixed, sizeof mixed, 0);
	mixed[5000] ^= 1;
	assert_has(S3_SHA256, value, 4096, mixed, sizeof mixed, 0);
}

static struct s3_checksum read_from(const char *headers)
{
	AUTO(auto_free) char *text = mem_copy(headers);
	struct http_reply reply = { .headers = { text, strlen(text), 0, SIZE_MAX, false, false } };
	struct s3_checksum checksum;

	s3_checksum_read(&reply, &checksum);
	return checksum;
}

static void what_cannot_be_checked_is_not_known(void **state)
{
	struct s3_checksum checksum;

	(void)state;
	checksum = read_from("x-amz-checksum-crc32: y/Q5Jg==\nx-amz-checksum-type: FULL_OBJECT\n");
	assert_int_equal(checksum.algorithm, S3_CRC32);
	assert_string_equal(checksum.value, "y/Q5Jg==");
	checksum = read_from("x-amz-checksum-crc32: y/Q5Jg==-3\nx-amz-checksum-type: COMPOSITE\n");
	assert_int_equal(checksum.algorithm, S3_NO_CHECKSUM);
	checksum = read_from("x-amz-checksum-sha256: abc-3\n");
	assert_int_equal(checksum.algorithm, S3_NO_CHECKSUM);
	checksum = read_from("x-amz-checksum-sha256: abc-3\n" S3_PART_HEADER ": 4096\n");
	assert_int_equal(checksum.algorithm, S3_SHA256);
	assert_int_equal(checksum.of_part, 4096);
	checksum = read_from("x-amz-checksum-sha1: abc\nx-amz-checksum-type: FULL_OBJECT\n");
	assert_int_equal(checksum.algorithm, S3_NO_CHECKSUM);
	checksum = read_from("");
	assert_int_equal(checksum.algorithm, S3_NO_CHECKSUM);
	assert_int_equal(s3_checksum_bytes(&checksum, "x", 1), 1);
}

static void base64_pads(void **state)
{
	static const char *const want[] = { "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==" };
	char text[16];

	(void)state;
	for (size_t len = 0; len < STK_LENGTH(want); len++) {
		hash_base64("foob", len, text);
		assert_string_equal(text, want[len]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_algorithm_comes_to_what_aws_says),
		cmocka_unit_test(one_bit_makes_another),
		cmocka_unit_test(parts_have_a_checksum_of_their_checksums),
		cmocka_unit_test(what_cannot_be_checked_is_not_known),
		cmocka_unit_test(base64_pads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
