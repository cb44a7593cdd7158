/* The promises of sigv4.h: AWS's published vectors, and the corners of the two path rules. */
#include "aws/auth/sigv4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aws/auth/sigv4_canonical.h"
#include "tests/unit/aws/sigv4_vectors.h"

#define AT     ((struct utc){ INT64_C(1440938160000) }) /* 2015-08-30T12:36:00Z */
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

static struct sigv4_keys *keys;
static struct sigv4_signed result;

static int setup(void **state)
{
	(void)state;
	keys = sigv4_keys_new();
	result = SIGV4_SIGNED_INIT;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sigv4_keys_freep(&keys);
	sigv4_signed_release(&result);
	return 0;
}

static struct sigv4_identity example(void)
{
	return (struct sigv4_identity){ .access_key = "AKIDEXAMPLE", .secret_key = SECRET };
}

/* A request without a body, of a service with plain rules. */
static struct sigv4_request plain(const char *path, const char *query)
{
	static char empty[SHA256_HEX];

	hash_sha256_hex("", 0, empty);
	return (struct sigv4_request){
		.method = "GET",
		.host = "example.amazonaws.com",
		.path = path,
		.query = query,
		.payload = empty,
		.region = "us-east-1",
		.service = "service",
	};
}

static struct sigv4_request of_vector(const struct vector *vector, char payload[SHA256_HEX])
{
	struct sigv4_request request = plain(vector->path, vector->query);

	request.method = vector->method;
	hash_sha256_hex(vector->body, strlen(vector->body), payload);
	request.payload = payload;
	request.headers = vector->headers;
	while (vector->headers[request.header_count].name)
		request.header_count++;
	return request;
}

static void published_vectors_hold_in_the_header(void **state)
{
	char payload[SHA256_HEX], want[512];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(vectors); i++) {
		struct sigv4_identity who = example();
		struct sigv4_request request = of_vector(&vectors[i], payload);

		who.token = vectors[i].token;
		sigv4_sign(keys, &who, &request, AT, &result);
		if (strcmp(result.signature, vectors[i].signature) != 0)
			fail_msg("%s: this was signed:\n%s", vectors[i].name,
				 result.canonical.text);
		assert_string_equal(result.date, "20150830T123600Z");
		snprintf(want, sizeof want, ", Signature=%s", vectors[i].signature);
		assert_non_null(strstr(result.authorization.text, want));
	}
}

static void published_vectors_hold_in_the_query(void **state)
{
	AUTO(sb_release) struct sb query = SB_INIT;
	AUTO(sb_release) struct sb canonical = SB_INIT;
	char payload[SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(vectors); i++) {
		struct sigv4_identity who = example();
		struct sigv4_request request = of_vector(&vectors[i], payload);
		const char *signature;

		if (request.header_count > 0 && /* its header says what the header variant signs */
		    strcmp(request.headers[request.header_count - 1].name,
			   "X-Amz-Content-Sha256") == 0)
			request.header_count--;
		who.token = vectors[i].token;
		sb_clear(&query);
		sigv4_presign(keys, &who, &request, AT, 3600, &canonical, &query);
		signature = strstr(query.text, "&X-Amz-Signature=");
		assert_non_null(signature);
		if (strcmp(signature + strlen("&X-Amz-Signature="), vectors[i].presigned) != 0)
			fail_msg("%s: this was signed:\n%s\n%s", vectors[i].name, canonical.text,
				 signature);
	}
}

static void published_paths_of_s3_are_signed_as_they_are_sent(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(raw_paths); i++) {
		AUTO(auto_free) char *want = mem_format("GET\n%s\n\n", raw_paths[i][1]);
		struct sigv4_identity who = example();
		struct sigv4_request request = plain(raw_paths[i][1], "");

		request.is_s3 = true;
		sigv4_sign(keys, &who, &request, AT, &result);
		if (strncmp(result.canonical.text, want, strlen(want)) != 0)
			fail_msg("%s: %s", raw_paths[i][0], result.canonical.text);
	}
}

static void the_whole_of_a_signed_request_is_as_documented(void **state)
{
	static const struct sigv4_pair headers[] = {
		{ "X-Amz-Meta-A-B", "two" }, { "x-amz-meta-a", " o  n\te " },
		{ "User-Agent", "stoker" },  { "Range", "bytes=0-9" },
		{ "X-AMZ-META-A", "again" }, { "x-amz-content-sha256", "of somebody else" },
		{ "Host", "elsewhere" },
	};
	struct sigv4_identity who = example();
	AUTO(auto_free) char *want = NULL;
	struct sigv4_request request =
		plain("/bucket/a%20b/..//c%3Dd", "uploads&prefix=x%2Fy&a=2&a=1");

	(void)state;
	request.is_s3 = true;
	request.service = "s3";
	request.host = "127.0.0.1:9000";
	request.headers = headers;
	request.header_count = STK_LENGTH(headers);
	request.payload = SIGV4_UNSIGNED;
	who.token = "to/ken=";
	sigv4_sign(keys, &who, &request, AT, &result);
	assert_string_equal(result.canonical.text,
			    "GET\n"
			    "/bucket/a%20b/..//c%3Dd\n"
			    "a=1&a=2&prefix=x%2Fy&uploads=\n"
			    "host:127.0.0.1:9000\n"
			    "range:bytes=0-9\n"
			    "x-amz-content-sha256:UNSIGNED-PAYLOAD\n"
			    "x-amz-date:20150830T123600Z\n"
			    "x-amz-meta-a:o n e,again\n"
			    "x-amz-meta-a-b:two\n"
			    "x-amz-security-token:to/ken=\n"
			    "\n"
			    "host;range;x-amz-content-sha256;x-amz-date;"
			    "x-amz-meta-a;x-amz-meta-a-b;x-amz-security-token\n"
			    "UNSIGNED-PAYLOAD");
	want = mem_format(
		"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/s3/aws4_request, "
		"SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-meta-a;"
		"x-amz-meta-a-b;x-amz-security-token, Signature=%s",
		result.signature);
	assert_string_equal(result.authorization.text, want);
}

static void assert_path(const char *path, bool is_s3, const char *want)
{
	AUTO(sigv4_canonical_release) struct canonical canonical = CANONICAL_INIT;
	AUTO(sb_release) struct sb got = SB_INIT;

	sigv4_canonical_path(&canonical, path, is_s3, &got);
	assert_string_equal(got.text, want);
}

static void a_path_is_encoded_twice_but_not_for_s3(void **state)
{
	(void)state;
	assert_path("/a%20b/c%3Dd", false, "/a%2520b/c%253Dd");
	assert_path("/a%20b/c%3Dd", true, "/a%20b/c%3Dd");
	assert_path("", false, "/");
	assert_path("", true, "/");
	assert_path("/..", false, "/");
	assert_path("/../../x/", false, "/x/");
	assert_path("/x/./", false, "/x/");
	assert_path("/x/..//", false, "/");
	assert_path("/x/...", false, "/x/...");
	assert_path("/.x/..y", false, "/.x/..y");
	assert_path("/a/b/../c", false, "/a/c");
}

static void assert_query(const char *query, const char *want)
{
	AUTO(sigv4_canonical_release) struct canonical canonical = CANONICAL_INIT;
	AUTO(sb_release) struct sb got = SB_INIT;

	sigv4_canonical_query(&canonical, query, &got);
	assert_string_equal(got.text, want);
}

static void a_query_is_sorted_by_what_is_sent(void **state)
{
	(void)state;
	assert_query("", "");
	assert_query("uploads", "uploads=");
	assert_query("b&a", "a=&b=");
	assert_query("a-b=1&a=2", "a=2&a-b=1");
	assert_query("a=2&a=10&a", "a=&a=10&a=2");
	assert_query("a%2F=1&a=1&A=1", "A=1&a=1&a%2F=1");
	assert_query("k==&k=", "k=&k==");
	assert_query("b=1&", "=&b=1");
	assert_query("9=1&8=1&7=1&6=1&5=1&4=1&3=1&2=1&1=1&9a=1&8a=1&7a=1&6a=1&5a=1&4a=1&3a=1&2a=1",
		     "1=1&2=1&2a=1&3=1&3a=1&4=1&4a=1&5=1&5a=1&6=1&6a=1&7=1&7a=1&8=1&8a=1&9=1&9a=1");
}

static void every_byte_that_is_not_plain_is_encoded(void **state)
{
	AUTO(sb_release) struct sb got = SB_INIT;
	char bytes[256];

	(void)state;
	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	sigv4_encode(&got, bytes, sizeof bytes, true);
	/* 66 unreserved ones and the slash stand for themselves, the others take three. */
	assert_int_equal(got.len, 67 + 3 * (256 - 67));
	assert_non_null(strstr(got.text, "%00%01"));
	assert_non_null(strstr(got.text, "%2B%2C-./0123456789%3A"));
	assert_non_null(strstr(got.text, "%5E_%60abc"));
	assert_non_null(strstr(got.text, "xyz%7B%7C%7D~%7F%80"));
	sb_clear(&got);
	sigv4_encode(&got, "a/b", 3, false);
	assert_string_equal(got.text, "a%2Fb");
}

/* Twice the days, regions and services that are kept: none may get another's key. */
static void a_key_is_found_again_only_for_its_own_scope_and_secret(void **state)
{
	char first[40][SHA256_HEX], region[40][16], secret[40][8];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 40; i++) {
			struct sigv4_identity who = example();
			struct sigv4_request request = plain("/", "");
			struct utc at = { AT.ms + (int64_t)(i % 3) * 86400000 };

			snprintf(region[i], sizeof region[i], "r-%zu", i / 9);
			snprintf(secret[i], sizeof secret[i], "s-%zu", i / 3 % 3);
			request.region = region[i];
			who.secret_key = secret[i];
			sigv4_sign(keys, &who, &request, at, &result);
			if (round == 0)
				memcpy(first[i], result.signature, SHA256_HEX);
			else
				assert_string_equal(result.signature, first[i]);
		}
	}
	for (size_t i = 0; i < 40; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(first[i], first[k]);
}

static void a_date_is_right_on_the_edges_of_days_and_years(void **state)
{
	static const struct {
		int64_t ms;
		const char *want;
	} rows[] = {
		{ 0, "19700101T000000Z" },
		{ INT64_C(951782399999), "20000228T235959Z" },
		{ INT64_C(951782400000), "20000229T000000Z" },
		{ INT64_C(253402300799999), "99991231T235959Z" },
	};
	struct sigv4_identity who = example();
	struct sigv4_request request = plain("/", "");

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		sigv4_sign(keys, &who, &request, (struct utc){ rows[i].ms }, &result);
		assert_string_equal(result.date, rows[i].want);
	}
}

static void a_presigned_url_tells_token_last_and_hides_the_secret(void **state)
{
	AUTO(sb_release) struct sb query = SB_INIT;
	struct sigv4_identity who = example();
	AUTO(auto_free) char *want = NULL;
	struct sigv4_request request = plain("/b/k", "response-content-type=a%2Fb");

	(void)state;
	request.is_s3 = true;
	request.service = "s3";
	who.token = "a/b+c=";
	sigv4_presign(keys, &who, &request, AT, 60, NULL, &query);
	assert_true(query.len > SHA256_HEX - 1);
	want = mem_copy_n(query.text, query.len - (SHA256_HEX - 1));
	assert_string_equal(want, "response-content-type=a%2Fb&X-Amz-Algorithm=AWS4-HMAC-SHA256"
				  "&X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fs3%2F"
				  "aws4_request&X-Amz-Date=20150830T123600Z&X-Amz-Expires=60"
				  "&X-Amz-SignedHeaders=host&X-Amz-Security-Token=a%2Fb%2Bc%3D"
				  "&X-Amz-Signature=");
	assert_null(strstr(query.text, "wJalr"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors_hold_in_the_header),
		cmocka_unit_test(published_vectors_hold_in_the_query),
		cmocka_unit_test(published_paths_of_s3_are_signed_as_they_are_sent),
		cmocka_unit_test(the_whole_of_a_signed_request_is_as_documented),
		cmocka_unit_test(a_path_is_encoded_twice_but_not_for_s3),
		cmocka_unit_test(a_query_is_sorted_by_what_is_sent),
		cmocka_unit_test(every_byte_that_is_not_plain_is_encoded),
		cmocka_unit_test(a_key_is_found_again_only_for_its_own_scope_and_secret),
		cmocka_unit_test(a_date_is_right_on_the_edges_of_days_and_years),
		cmocka_unit_test(a_presigned_url_tells_token_last_and_hides_the_secret),
	};

	return cmocka_run_group_tests_name("aws/sigv4", tests, setup, teardown);
}
