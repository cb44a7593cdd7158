/* Where calls go, and what goes over the wire: addresses, headers, bodies. */
#include "aws/auth/endpoint.h"

#include "aws/auth/signed_request.h"
#include "tests/unit/aws/world.h"

static char *address(const struct aws_call *call, const char *region)
{
	AUTO(endpoint_release) struct endpoint where = ENDPOINT_INIT;
	AUTO(err_freep) struct err *err = NULL;

	if (endpoint_find(&where, call, region, &err) < 0) {
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(err->hint);
		return err_format(err);
	}
	assert_non_null(strstr(where.url.text, where.path.text));
	return sb_take(&where.url);
}

static void assert_address(const struct aws_call *call, const char *region, const char *want)
{
	AUTO(auto_free) char *is = address(call, region);

	assert_string_equal(is, want);
}

static struct aws_call object(const char *bucket, const char *key)
{
	struct aws_call call = AWS_CALL_INIT(GET_OBJECT);

	call.bucket = bucket;
	call.key = key;
	return call;
}

static void a_bucket_is_in_the_host_where_its_name_can_be(void **state)
{
	static const struct {
		const char *bucket, *key, *region, *want;
	} rows[] = {
		{ "bucket", "a/b", "us-west-2", "https://bucket.s3.us-west-2.amazonaws.com/a/b" },
		{ "bucket", NULL, "us-east-1", "https://bucket.s3.us-east-1.amazonaws.com/" },
		{ "my.bucket", "k", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/my.bucket/k" },
		{ "Old_Bucket", NULL, "us-east-1",
		  "https://s3.us-east-1.amazonaws.com/Old_Bucket" },
		{ "-bucket", "k", "us-east-1", "https://s3.us-east-1.amazonaws.com/-bucket/k" },
		{ "a/../b", "k", "us-east-1", "https://s3.us-east-1.amazonaws.com/a%2F..%2Fb/k" },
		{ "bucket", "k", "cn-north-1", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k" },
		{ "bucket", "k", "us-gov-west-1",
		  "https://bucket.s3.us-gov-west-1.amazonaws.com/k" },
		{ "bucket", "k", "us-iso-east-1", "https://bucket.s3.us-iso-east-1.c2s.ic.gov/k" },
		{ "bucket", "k", "us-isob-east-1",
		  "https://bucket.s3.us-isob-east-1.sc2s.sgov.gov/k" },
		{ "bucket", "//a/./../b c+d=\xC3\xA9", "eu-west-1",
		  "https://bucket.s3.eu-west-1.amazonaws.com///a/./../b%20c%2Bd%3D%C3%A9" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct aws_call call = object(rows[i].bucket, rows[i].key);

		assert_address(&call, rows[i].region, rows[i].want);
	}
}

static void an_endpoint_of_the_users_has_the_bucket_in_the_path(void **state)
{
	struct aws_call call = object("bucket", "k");

	(void)state;
	setenv("AWS_ENDPOINT_URL", "http://LocalHost:80/base/", 1);
	aws_settings_forget();
	assert_address(&call, "eu-west-1", "http://localhost/base/bucket/k");
	setenv("AWS_ENDPOINT_URL_S3", "https://[::1]:8443", 1);
	aws_settings_forget();
	assert_address(&call, "eu-west-1", "https://[::1]:8443/bucket/k");
}

static void the_style_of_addresses_can_be_set(void **state)
{
	struct aws_call call = object("bucket", "k");

	write_shared(state, "config", "[default]\ns3 =\n  addressing_style = path\n");
	assert_address(&call, "eu-west-1", "https://s3.eu-west-1.amazonaws.com/bucket/k");
	write_shared(state, "config", "[default]\ns3 =\n  addressing_style = virtual\n");
	setenv("AWS_ENDPOINT_URL", "http://store.example:9000", 1);
	aws_settings_forget();
	assert_address(&call, "eu-west-1", "http://bucket.store.example:9000/k");
}

static void queries_are_encoded_and_subresources_stand_first(void **state)
{
	const struct sigv4_pair params[] = { { "prefix", "a b/&=+" },
					     { "bare", NULL },
					     { "e", "" } };
	struct aws_call call = AWS_CALL_INIT(LIST_OBJECTS), upload = AWS_CALL_INIT(CREATE_UPLOAD);

	(void)state;
	call.bucket = upload.bucket = "bucket";
	call.params = params;
	call.param_count = 3;
	upload.key = "k";
	assert_address(&call, "eu-west-1",
		       "https://bucket.s3.eu-west-1.amazonaws.com/?list-type=2&prefix="
		       "a%20b%2F%26%3D%2B&bare&e=");
	assert_address(&upload, "eu-west-1", "https://bucket.s3.eu-west-1.amazonaws.com/k?uploads");
}

static void what_is_no_region_or_endpoint_is_refused(void **state)
{
	static const char *const regions[] = {
		"", "evil.example/", "EU", "-x", "a b", "x\nHost: y"
	};
	static const char *const urls[] = { "localhost:80",    "ftp://x",     "http://",
					    "http://u:p@h",    "http://h/?q", "http://h x",
					    "http://h\r\nX: y" };
	struct aws_call call = object("bucket", "k");

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(regions); i++) {
		AUTO(auto_free) char *said = address(&call, regions[i]);

		assert_contains(said, "is not the name of an AWS region");
	}
	for (size_t i = 0; i < STK_LENGTH(urls); i++) {
		AUTO(auto_free) char *said = NULL;
		AUTO(err_freep) struct err *err = NULL;

		setenv("AWS_ENDPOINT_URL", urls[i], 1);
		aws_settings_forget();
		if (!aws_endpoint_configured("S3")) { /* refused before any client is made */
			assert_int_equal(aws_settings_check(&err), -1);
			continue;
		}
		said = address(&call, "eu-west-1");
		assert_contains(said, "is not a usable URL");
	}
}

/* --- requests that go out --- */

static const struct sigv4_identity who = { "AKID", "secret", "the-token" };

static const char *header(const struct http_request *request, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < request->header_count; i++)
		if (strcmp(request->headers[i].name, name) == 0) {
			assert_null(value); /* once */
			value = request->headers[i].value;
		}
	return value;
}

static void make(struct signed_request *out, const struct aws_call *call,
		 struct http_request *request)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sigv4_keys_freep) struct sigv4_keys *keys = sigv4_keys_new();

	signed_request_make(out, call, &err);
	assert_no_error(err);
	endpoint_find(&out->where, call, "eu-west-1", &err);
	assert_no_error(err);
	signed_request_sign(out, keys, &who, "eu-west-1", (struct utc){ 1440938160000 }, request);
}

static void an_object_goes_out_with_its_digest_in_both_forms(void **state)
{
	struct aws_call call = AWS_CALL_INIT(PUT_OBJECT);
	AUTO(signed_request_release) struct signed_request out = { 0 };
	struct http_request request;

	(void)state;
	call.bucket = "bucket";
	call.key = "k";
	call.body = "abc";
	call.body_len = 3;
	make(&out, &call, &request);
	assert_string_equal(request.method, "PUT");
	assert_string_equal(header(&request, "content-type"), "application/octet-stream");
	assert_string_equal(header(&request, "x-amz-content-sha256"),
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(header(&request, "x-amz-checksum-sha256"),
			    "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
	assert_string_equal(header(&request, "x-amz-date"), "20150830T123600Z");
	assert_string_equal(header(&request, "x-amz-security-token"), "the-token");
	assert_contains(
		header(&request, "authorization"),
		"SignedHeaders=content-type;host;x-amz-checksum-sha256;x-amz-content-sha256;"
		"x-amz-date;x-amz-security-token, ");
}

static void a_callers_checksum_and_content_type_are_kept(void **state)
{
	const struct sigv4_pair headers[] = { { "x-amz-checksum-crc32", "AAAAAA==" },
					      { "content-type", "text/plain" } };
	struct aws_call call = AWS_CALL_INIT(PUT_OBJECT);
	AUTO(signed_request_release) struct signed_request out = { 0 };
	struct http_request request;

	(void)state;
	call.bucket = "bucket";
	call.key = "k";
	call.headers = headers;
	call.header_count = 2;
	make(&out, &call, &request);
	assert_null(header(&request, "x-amz-checksum-sha256"));
	assert_string_equal(header(&request, "content-type"), "text/plain");
}

static void each_protocol_has_its_form(void **state)
{
	const struct sigv4_pair params[] = { { "RoleArn", "arn:aws:iam::1:role/a b" } };
	json_auto_t *json = json_pack("{s:s}", "Name", "/x");
	struct aws_call form = AWS_CALL_INIT(ASSUME_ROLE), target = AWS_CALL_INIT(GET_PARAMETER),
			empty = AWS_CALL_INIT(GET_PARAMETER);
	AUTO(signed_request_release) struct signed_request a = { 0 }, b = { 0 }, c = { 0 };
	struct http_request request;

	(void)state;
	form.params = params;
	form.param_count = 1;
	make(&a, &form, &request);
	assert_string_equal(request.url, "https://sts.eu-west-1.amazonaws.com/");
	assert_string_equal((const char *)request.body,
			    "Action=AssumeRole&Version=2011-06-15&RoleArn="
			    "arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%20b");
	assert_string_equal(header(&request, "content-type"),
			    "application/x-www-form-urlencoded; charset=utf-8");
	assert_null(header(&request, "x-amz-content-sha256"));
	target.json = json;
	make(&b, &target, &request);
	assert_string_equal(header(&request, "x-amz-target"), "AmazonSSM.GetParameter");
	assert_string_equal(header(&request, "content-type"), "application/x-amz-json-1.1");
	assert_string_equal((const char *)request.body, "{\"Name\":\"/x\"}");
	make(&c, &empty, &request);
	assert_string_equal((const char *)request.body, "{}");
}

static void a_file_is_digested_before_it_goes_out(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "file");
	struct aws_call call = AWS_CALL_INIT(UPLOAD_PART);
	AUTO(signed_request_release) struct signed_request out = { 0 }, cut = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_close) int fd = -1;
	struct http_request request;

	put(*state, "file", "..abc..");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	call.bucket = "bucket";
	call.key = "k";
	call.body_fd = fd;
	call.body_offset = 2;
	call.body_len = 3;
	make(&out, &call, &request);
	assert_string_equal(header(&request, "x-amz-content-sha256"),
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(request.body_fd, fd);
	assert_int_equal(request.body_offset, 2);
	call.body_len = 6;
	assert_int_equal(signed_request_make(&cut, &call, &err), -1);
	assert_contains(err->message, "shorter");
}

int main(void)
{
#define T(name) test_in_world(name)
	const struct CMUnitTest tests[] = {
		T(a_bucket_is_in_the_host_where_its_name_can_be),
		T(an_endpoint_of_the_users_has_the_bucket_in_the_path),
		T(the_style_of_addresses_can_be_set),
		T(queries_are_encoded_and_subresources_stand_first),
		T(what_is_no_region_or_endpoint_is_refused),
		T(an_object_goes_out_with_its_digest_in_both_forms),
		T(a_callers_checksum_and_content_type_are_kept),
		T(each_protocol_has_its_form),
		T(a_file_is_digested_before_it_goes_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
