/*
 * What a service sends, in any protocol: the input is a digit for the protocol and one for
 * the status, then the headers, behind FUZZ_PART the body, which FUZZ_CUT may divide. It is
 * read as an error, as a success that may be none, and as XML in its pieces.
 */
#include "tests/fuzz/fuzz.h"

#include "aws/skew.h"
#include "aws/verdict.h"
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
	AUTO(verdict_release) struct verdict verdict;
	AUTO(err_freep) struct err *err = NULL;

	verdict_of(call, reply, &verdict);
	MUST(verdict.what != VERDICT_DONE || (reply->status >= 200 && reply->status < 300));
	if (verdict.what == VERDICT_DONE)
		return;
	MUST(memchr(verdict.why, '\0', sizeof verdict.why));
	if (!verdict.unread)
		check_fault(&verdict.fault);
	MUST(verdict_error(&verdict, call, "host", 2, &err) == -1);
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

/* In one piece and in its pieces: the same elements, or no XML. */
static void read_xml(struct span body)
{
	AUTO(auto_free) char *whole = mem_alloc(body.len + 1);
	struct seen once = { 0 }, pieces = { 0 };
	AUTO(xml_freep) struct xml *xml = xml_new(count, &pieces);
	AUTO(err_freep) struct err *err = NULL, *other = NULL;
	struct span rest = body, piece;
	size_t len = 0;
	int result = 0;

	while (span_next(&rest, FUZZ_CUT, &piece)) {
		AUTO(auto_free) char *copy = span_copy(piece);

		memcpy(whole + len, piece.text ? piece.text : "", piece.len);
		len += piece.len;
		if (result == 0)
			result = xml_feed(xml, copy, piece.len, !rest.text, "it", &err);
	}
	MUST(xml_parse(whole, len, "it", count, &once, &other) == result);
	MUST((result == 0) == (err == NULL));
	if (result == 0)
		MUST(once.count == pieces.count && once.bytes == pieces.bytes);
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
	struct utc at;

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
	if (http_header(&reply, "date", &date) && http_date_parse(date.text, &at))
		MUST(at.ms >= 0);
	read_xml(body);
	http_reply_release(&reply);
	return 0;
}
