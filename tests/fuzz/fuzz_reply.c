/*
 * What a service sends, in any protocol: the input is a digit for the protocol and one for
 * the status, then the headers, behind FUZZ_PART the body. It is
 * read as an error, as a success that may be none, and as XML.
 */
#include "tests/fuzz/fuzz.h"

#include "aws/auth/clock_skew.h"
#include "aws/http/response_class.h"
#include "aws/xml.h"

static const long statuses[] = { 200, 204, 301, 400, 403, 404, 409, 500, 503, 599 };

/* Every text of a fault ends where its room does, and a code holds nothing odd. */
static void check_fault(const struct fault *fault)
{
	MUST(memchr(fault->code, '\0', sizeof fault->code));
	MUST(memchr(fault->message, '\0', sizeof fault->message));
	MUST(memchr(fault->request_id, '\0', sizeof fault->request_id));
	MUST(memchr(fault->extended_id, '\0', sizeof fault->extended_id));
	MUST(memchr(fault->region, '\0', sizeof fault->region));
	MUST(fault->code[0]);
	for (const char *at = fault->code; *at; at++)
		MUST((*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
		     (*at >= 'a' && *at <= 'z') || strchr("._-", *at));
	MUST(fault_hint(fault)[0]);
}

static void judge(const struct aws_call *call, const struct http_reply *reply)
{
	const struct response_call of = { call, 2, "host", { "eu-west-1", "bucket", "k" } };
	AUTO(response_class_release) struct response_class response;
	AUTO(err_freep) struct err *err = NULL;

	response_class_of(call, reply, &response);
	MUST(response.what != RESPONSE_DONE || (reply->status >= 200 && reply->status < 300));
	if (response.what == RESPONSE_DONE)
		return;
	MUST(memchr(response.why, '\0', sizeof response.why));
	if (!response.unread)
		check_fault(&response.fault);
	MUST(response_class_error(&response, &of, &err) == -1);
	MUST(err && err->hint && strlen(err->message) < 4096);
}

struct seen {
	size_t count, bytes;
};

static bool count(void *arg, const char *path, const char *text, size_t len)
{
	struct seen *seen = arg;

	MUST(path[0] && text[len] == '\0');
	seen->count++;
	seen->bytes += len;
	return seen->count < 100000;
}

/* Reads the elements of a body, or an error. */
static void read_xml(struct span body)
{
	AUTO(auto_free) char *copy = span_copy(body);
	struct seen seen = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	int result = xml_parse(copy, body.len, "it", count, &seen, &err);

	MUST((result == 0) == (err == NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct aws_call calls[] = {
		{ .operation = AWS_LIST_OBJECTS, .bucket = "bucket", .body_fd = -1 },
		{ .operation = AWS_GET_OBJECT, .bucket = "bucket", .key = "k", .body_fd = -1 },
		{ .operation = AWS_GET_LOG_EVENTS, .body_fd = -1 },
		{ .operation = AWS_GET_CALLER_IDENTITY, .body_fd = -1 },
	};
	struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };
	struct span rest = { (const char *)data, size }, headers, body = { "", 0 };
	AUTO(sb_release) struct sb date = SB_INIT_MAX(64);
	AUTO(clock_skews_freep) struct clock_skews *clock_skews = clock_skews_new();
	const struct utc used = { -CLOCK_SKEW_MIN_MS };

	if (size < 2)
		return 0;
	reply.status = statuses[data[1] % STK_LENGTH(statuses)];
	rest.text += 2;
	rest.len -= 2;
	span_next(&rest, FUZZ_PART, &headers);
	if (rest.text)
		body = rest;
	sb_add(&reply.headers, headers.text, headers.len);
	sb_addc(&reply.headers, '\n');
	sb_add(&reply.body, body.text, body.len);
	reply.received = body.len;
	judge(&calls[data[0] % STK_LENGTH(calls)], &reply);
	if (http_header(&reply, "date", &date) &&
	    clock_skew_learn(clock_skews, "host", date.text, used, (struct utc){ 0 }))
		MUST(clock_skew_time(clock_skews, "host", (struct utc){ 0 }).ms >= 0);
	read_xml(body);
	http_reply_release(&reply);
	return 0;
}
