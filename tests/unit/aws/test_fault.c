/* How refusals are read in every protocol, judged, and told to a person. */
#include "aws/http/fault.h"

#include "aws/http/response_class.h"
#include "tests/unit/base/unit.h"

/* A reply with this status, these headers ("name: value\n" lines) and body. */
static struct http_reply *reply_of(long status, const char *headers, const char *body)
{
	struct http_reply *reply = mem_zero(1, sizeof *reply);

	reply->status = status;
	reply->body = reply->headers = SB_INIT;
	sb_adds(&reply->headers, headers);
	sb_adds(&reply->body, body);
	reply->received = strlen(body);
	return reply;
}

static void reply_freep(struct http_reply **reply)
{
	if (*reply)
		http_reply_release(*reply);
	free(*reply);
}

static void codes_and_messages_are_found_in_every_form(void **state)
{
	static const struct {
		enum aws_protocol protocol;
		const char *headers, *body, *code, *message, *id;
	} rows[] = {
		{ PROTOCOL_JSON, "x-amzn-RequestId: r-1\n",
		  "{\"__type\":\"com.amazonaws.logs#ThrottlingException\",\"message\":\"slow\"}",
		  "ThrottlingException", "slow", "r-1" },
		{ PROTOCOL_JSON, "", "{\"__type\":\"AccessDeniedException\",\"Message\":\"no\"}",
		  "AccessDeniedException", "no", "" },
		{ PROTOCOL_REST_JSON,
		  "x-amzn-errortype: ClientException:http://internal.example/x\n",
		  "{\"message\":\"bad\"}", "ClientException", "bad", "" },
		{ PROTOCOL_REST_JSON, "", "{\"code\":\"Some\",\"message\":\"m\"}", "Some", "m",
		  "" },
		{ PROTOCOL_REST_JSON, "",
		  "{\"error\":\"invalid_grant\",\"error_description\":\"expired\"}",
		  "invalid_grant", "expired", "" },
		{ PROTOCOL_QUERY, "",
		  "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>ExpiredToken</Code>"
		  "<Message>gone</Message></Error><RequestId>r-2</RequestId></ErrorResponse>",
		  "ExpiredToken", "gone", "r-2" },
		{ PROTOCOL_QUERY, "",
		  "<Response><Errors><Error><Code>A.b</Code><Message>m</Message></Error></Errors>"
		  "<RequestID>r-3</RequestID></Response>",
		  "A.b", "m", "r-3" },
		{ PROTOCOL_S3, "",
		  "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>m</Message>"
		  "<Key>k</Key><RequestId>r-4</RequestId><HostId>h</HostId></Error>",
		  "NoSuchKey", "m", "r-4" },
		{ PROTOCOL_S3, "x-amz-request-id: r-5\n", "<Error><Code>Cut</Code><Message>m</Me",
		  "Cut", "", "r-5" },
		{ PROTOCOL_S3, "x-amz-request-id: r-6\n", "", "403", "", "r-6" },
		{ PROTOCOL_S3, "", "<html><body>Sign in</body></html>", "403", "", "" },
		{ PROTOCOL_JSON, "", "<html>", "403", "", "" },
		{ PROTOCOL_JSON, "", "{\"__type\":[1],\"message\":{}}", "403", "", "" },
		{ PROTOCOL_JSON, "", "{\"__type\":\"\\u001b[2JEvil\",\"message\":\"m\"}", "403",
		  "m", "" },
		{ PROTOCOL_JSON, "", "{\"__type\":\"Go od\\nx\"}", "Go", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(reply_freep)
		struct http_reply *reply = reply_of(403, rows[i].headers, rows[i].body);
		struct fault fault;

		fault_read(rows[i].protocol, reply, &fault);
		assert_string_equal(fault.code, rows[i].code);
		assert_string_equal(fault.message, rows[i].message);
		assert_string_equal(fault.request_id, rows[i].id);
		assert_int_equal(fault.status, 403);
	}
}

static void the_region_of_a_bucket_comes_from_the_header_or_the_body(void **state)
{
	AUTO(reply_freep)
	struct http_reply *header =
		reply_of(301, "x-amz-bucket-region: eu-west-1\nx-amz-id-2: second\n", "");
	AUTO(reply_freep)
	struct http_reply *body = reply_of(
		400, "",
		"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-2</Region>"
		"</Error>");
	struct fault fault;

	(void)state;
	fault_read(PROTOCOL_S3, header, &fault);
	assert_string_equal(fault.region, "eu-west-1");
	assert_string_equal(fault.extended_id, "second");
	fault_read(PROTOCOL_S3, body, &fault);
	assert_string_equal(fault.region, "eu-west-2");
}

static void what_is_too_long_is_cut(void **state)
{
	AUTO(sb_release) struct sb body = SB_INIT;
	AUTO(reply_freep) struct http_reply *reply = NULL, *huge = NULL;
	struct fault fault;

	(void)state;
	sb_adds(&body, "<Error><Code>");
	for (int i = 0; i < 5000; i++)
		sb_addc(&body, 'C');
	sb_adds(&body, "</Code><Message>");
	for (int i = 0; i < 50000; i++)
		sb_addc(&body, 'm');
	sb_adds(&body, "</Message></Error>");
	reply = reply_of(400, "", body.text);
	fault_read(PROTOCOL_S3, reply, &fault);
	assert_int_equal(strlen(fault.code), sizeof fault.code - 1);
	assert_int_equal(strlen(fault.message), sizeof fault.message - 1);
	for (int i = 0; i < 1 << 20; i++)
		sb_addc(&body, ' ');
	huge = reply_of(400, "", body.text);
	fault_read(PROTOCOL_S3, huge, &fault);
	assert_string_equal(fault.code, "400");
}

static void a_code_is_judged_by_the_table_and_else_by_the_status(void **state)
{
	static const struct {
		long status;
		const char *code;
		enum fault_kind want;
	} rows[] = {
		{ 400, "ThrottlingException", FAULT_THROTTLE },
		{ 503, "SlowDown", FAULT_THROTTLE },
		{ 400, "RequestTimeout", FAULT_TRANSIENT },
		{ 500, "InternalError", FAULT_TRANSIENT },
		{ 500, "Unheard", FAULT_TRANSIENT },
		{ 502, "502", FAULT_TRANSIENT },
		{ 504, "504", FAULT_TRANSIENT },
		{ 501, "NotImplemented", FAULT_FINAL },
		{ 429, "429", FAULT_THROTTLE },
		{ 403, "RequestTimeTooSkewed", FAULT_CLOCK },
		{ 403, "SignatureDoesNotMatch", FAULT_CLOCK },
		{ 400, "ExpiredToken", FAULT_EXPIRED },
		{ 403, "AccessDenied", FAULT_DENIED },
		{ 409, "ConditionalRequestConflict", FAULT_FINAL },
		{ 404, "404", FAULT_FINAL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct fault fault = { .status = rows[i].status };

		snprintf(fault.code, sizeof fault.code, "%s", rows[i].code);
		assert_int_equal(fault_kind(&fault), rows[i].want);
		assert_true(strlen(fault_hint(&fault)) > 10);
	}
}

static void no_code_has_two_rows(void **state)
{
	static const char *const codes[] = {
#define FAULT(code, kind, hint) code,
#include "aws/http/faults.def"
#undef FAULT
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(codes); i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(codes[i], codes[j]);
}

static void an_error_or_half_a_document_with_status_200_is_found_out(void **state)
{
	static const struct {
		const char *body, *code; /* NULL: it is what it says */
	} rows[] = {
		{ "<ListBucketResult><Name>Error</Name></ListBucketResult>", NULL },
		{ "\n  <?xml version=\"1.0\"?>\n\n<Done xmlns=\"x\"><A/></Done >\n", NULL },
		{ "<Done/>", NULL },
		{ "<Done a=\"b\" />\n", NULL },
		{ "<Errors></Errors>", NULL },
		{ "   <?xml version=\"1.0\"?> <Error><Code>InternalError</Code></Error>",
		  "InternalError" },
		{ "<Error><Code>NoSuchUpload</Code>", "NoSuchUpload" },
		{ "", "IncompleteReply" },
		{ "   ", "IncompleteReply" },
		{ "<Done><A>x</A>", "IncompleteReply" },
		{ "<Done><A>x</A></Don", "IncompleteReply" },
		{ "<Done><A/>", "IncompleteReply" },
		{ "<Done", "IncompleteReply" },
		{ "<?xml", "IncompleteReply" },
		{ "OK", "IncompleteReply" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(reply_freep) struct http_reply *reply = reply_of(200, "", rows[i].body);
		struct fault fault;

		if (fault_in_disguise(reply, &fault) != (rows[i].code != NULL))
			fail_msg("taken for the other: %s", rows[i].body);
		if (!rows[i].code)
			continue;
		assert_string_equal(fault.code, rows[i].code);
		assert_int_equal(fault.status, 500);
	}
}

static void a_verdict_says_whether_to_try_again_and_what_may_have_happened(void **state)
{
	static const struct {
		enum http_failure failure;
		long status;
		const char *body;
		int what;
		bool timeout, unknown;
	} rows[] = {
		{ HTTP_OK, 200, "{}", RESPONSE_DONE, false, false },
		{ HTTP_OK, 200, "", RESPONSE_DONE, false, false },
		{ HTTP_OK, 200, "{\"a\":", RESPONSE_RETRY, false, true },
		{ HTTP_OK, 500, "", RESPONSE_RETRY, false, true },
		{ HTTP_OK, 400, "{\"__type\":\"ThrottlingException\"}", RESPONSE_RETRY, false,
		  false },
		{ HTTP_OK, 400, "{\"__type\":\"ValidationException\"}", RESPONSE_FINAL, false,
		  false },
		{ HTTP_UNREACHABLE, 0, "", RESPONSE_RETRY, false, false },
		{ HTTP_TIMEOUT, 0, "", RESPONSE_RETRY, true, true },
		{ HTTP_BROKEN, 0, "", RESPONSE_RETRY, false, true },
		{ HTTP_TLS, 0, "", RESPONSE_FINAL, false, false },
		{ HTTP_TOO_LARGE, 200, "", RESPONSE_FINAL, false, true },
		{ HTTP_REFUSED, 0, "", RESPONSE_FINAL, false, true },
	};
	struct aws_call call = AWS_CALL_INIT(GET_SECRET_VALUE);
	const struct response_call of = { &call, 3, "host:1", { "eu-west-1", NULL, NULL } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(reply_freep)
		struct http_reply *reply = reply_of(rows[i].status, "", rows[i].body);
		AUTO(response_class_release) struct response_class response;
		AUTO(err_freep) struct err *err = NULL;

		reply->failure = rows[i].failure;
		snprintf(reply->why, sizeof reply->why, "reasons");
		response_class_of(&call, reply, &response);
		assert_int_equal(response.what, rows[i].what);
		assert_int_equal(response.timeout, rows[i].timeout);
		assert_int_equal(response.effect_unknown, rows[i].unknown);
		if (response.what == RESPONSE_DONE)
			continue;
		assert_int_equal(response_class_error(&response, &of, &err), -1);
		assert_int_equal(err->code,
				 rows[i].what == RESPONSE_RETRY ? EXIT_UNREACHABLE : EXIT_REFUSED);
		assert_non_null(err->hint);
		assert_contains(err->message, "secretsmanager GetSecretValue");
	}
}

static void an_error_has_all_that_a_person_needs(void **state)
{
	AUTO(reply_freep)
	struct http_reply *reply =
		reply_of(403, "x-amz-request-id: R1\nx-amz-id-2: X2\n",
			 "<Error><Code>AccessDenied</Code><Message>Not you</Message></Error>");
	struct aws_call call = AWS_CALL_INIT(PUT_OBJECT);
	struct response_call of = { &call, 1, "host:9", { "eu-west-1", NULL, NULL } };
	AUTO(response_class_release) struct response_class response;
	AUTO(err_freep) struct err *err = NULL, *lost = NULL;

	(void)state;
	call.bucket = "b";
	call.key = "k/x";
	response_class_of(&call, reply, &response);
	response_class_error(&response, &of, &err);
	assert_string_equal(err->message, "s3 PutObject of 's3://b/k/x' was refused: AccessDenied: "
					  "Not you (HTTP 403, request R1, X2)");
	assert_contains(err->hint, "administrator");
	reply->failure = HTTP_TIMEOUT;
	snprintf(reply->why, sizeof reply->why, "nothing came for 60 s");
	response_class_of(&call, reply, &response);
	of.attempts = 3;
	response_class_error(&response, &of, &lost);
	assert_string_equal(lost->message,
			    "s3 PutObject of 's3://b/k/x': no usable reply from 'host:9' in 3 "
			    "attempts: nothing came for 60 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_and_messages_are_found_in_every_form),
		cmocka_unit_test(the_region_of_a_bucket_comes_from_the_header_or_the_body),
		cmocka_unit_test(what_is_too_long_is_cut),
		cmocka_unit_test(a_code_is_judged_by_the_table_and_else_by_the_status),
		cmocka_unit_test(no_code_has_two_rows),
		cmocka_unit_test(an_error_or_half_a_document_with_status_200_is_found_out),
		cmocka_unit_test(a_verdict_says_whether_to_try_again_and_what_may_have_happened),
		cmocka_unit_test(an_error_has_all_that_a_person_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
