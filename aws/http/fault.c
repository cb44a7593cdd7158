/* Error replies of services: see fault.h. */
#include "aws/http/fault.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/xml.h"
#include "jobs/base/text/js.h"

/* A longer body is not an error message. */
#define BODY_MAX ((size_t)256 << 10)

struct fault_row {
	const char *code;
	enum fault_kind kind;
	const char *hint;
};

static const struct fault_row rows[] = {
#define FAULT(code, kind, hint) { code, FAULT_##kind, hint },
#include "aws/http/faults.def"
#undef FAULT
};

static const struct fault_row *row_of(const char *code)
{
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (strcmp(rows[i].code, code) == 0)
			return &rows[i];
	return NULL;
}

enum fault_kind fault_kind(const struct fault *fault)
{
	const struct fault_row *row = row_of(fault->code);

	if (row)
		return row->kind;
	switch (fault->status) {
	case 429: /* from a gateway in front of the service (RFC 6585) */
		return FAULT_THROTTLE;
	case 500:
	case 502:
	case 503:
	case 504:
		return FAULT_TRANSIENT;
	default:
		return FAULT_FINAL;
	}
}

const char *fault_hint(const struct fault *fault)
{
	const struct fault_row *row = row_of(fault->code);

	if (row)
		return row->hint;
	switch (fault->status) {
	case 400:
		return "check the request's names and values, and that the credentials are still "
		       "valid";
	case 401:
		return "check the credentials in use: AWS_ACCESS_KEY_ID, AWS_PROFILE, --profile";
	case 403:
		return "check that the identity in use may do this, and this machine's clock";
	case 404:
		return "check the name, and the region";
	case 407:
		return "the proxy requires a login: check HTTPS_PROXY";
	case 412:
		return "another writer was first: read the object again";
	default:
		break;
	}
	if (fault->status >= 300 && fault->status < 400)
		return "check the endpoint and the region: redirects are not followed";
	if (fault->status >= 500 || fault->status == 429)
		return "the service has a problem of its own: try again later";
	return "look up the code in the service's API reference";
}

/* ---- reading ---- */

static void keep(char *to, size_t room, const char *text, size_t len)
{
	if (len >= room)
		len = room - 1;
	memcpy(to, text, len);
	to[len] = '\0';
}

/* Keeps "ThrottlingException" of "com.amazonaws.x#ThrottlingException:http://…". */
static void keep_code(struct fault *fault, const char *text, size_t len)
{
	const char *hash = memchr(text, '#', len);
	size_t end = 0;

	if (hash) {
		len -= (size_t)(hash + 1 - text);
		text = hash + 1;
	}
	while (end < len && (isalnum((unsigned char)text[end]) || strchr("._-", text[end])) &&
	       text[end])
		end++;
	if (end)
		keep(fault->code, sizeof fault->code, text, end);
}

static void keep_header(const struct http_reply *reply, const char *name, char *to, size_t room)
{
	AUTO(sb_release) struct sb value = SB_INIT_MAX(2048);

	if (!to[0] && http_header(reply, name, &value))
		keep(to, room, value.text, value.len);
}

static void read_headers(const struct http_reply *reply, struct fault *ret)
{
	AUTO(sb_release) struct sb type = SB_INIT_MAX(512);

	if (http_header(reply, "x-amzn-errortype", &type))
		keep_code(ret, type.text, type.len);
	keep_header(reply, "x-amz-request-id", ret->request_id, sizeof ret->request_id);
	keep_header(reply, "x-amzn-requestid", ret->request_id, sizeof ret->request_id);
	keep_header(reply, "x-amz-id-2", ret->extended_id, sizeof ret->extended_id);
	keep_header(reply, "x-amz-bucket-region", ret->region, sizeof ret->region);
}

static void read_json(const struct sb *body, struct fault *ret)
{
	json_auto_t *object = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	const char *code, *message;

	if (js_parse(body->text, body->len, "an error", &object, &ignored) < 0)
		return;
	code = js_str(object, "__type");
	if (!code)
		code = js_str(object, "code");
	if (!code)
		code = js_str(object, "Code");
	if (!code)
		code = js_str(object, "error"); /* OAuth's name, used by SSO's tokens */
	if (code && !ret->code[0])
		keep_code(ret, code, strlen(code));
	message = js_str(object, "message");
	if (!message)
		message = js_str(object, "Message");
	if (!message)
		message = js_str(object, "error_description");
	if (message)
		keep(ret->message, sizeof ret->message, message, strlen(message));
}

static bool ends_with(const char *path, const char *end)
{
	size_t len = strlen(path), end_len = strlen(end);

	return len >= end_len && strcmp(path + len - end_len, end) == 0 &&
	       (len == end_len || path[len - end_len - 1] == '/');
}

static bool on_element(void *arg, const char *path, const char *text, size_t len)
{
	struct fault *fault = arg;

	if (ends_with(path, "Error/Code")) {
		fault->code[0] = '\0';
		keep_code(fault, text, len);
	} else if (ends_with(path, "Error/Message")) {
		keep(fault->message, sizeof fault->message, text, len);
	} else if (ends_with(path, "Error/Region") && !fault->region[0]) {
		keep(fault->region, sizeof fault->region, text, len);
	} else if (ends_with(path, "Error/HostId") && !fault->extended_id[0]) {
		keep(fault->extended_id, sizeof fault->extended_id, text, len);
	} else if ((ends_with(path, "RequestId") || ends_with(path, "RequestID")) &&
		   !fault->request_id[0]) {
		keep(fault->request_id, sizeof fault->request_id, text, len);
	}
	return true;
}

static void read_xml(const struct sb *body, struct fault *ret)
{
	AUTO(err_freep) struct err *ignored = NULL;

	/* A body that is cut off is read as far as it goes. */
	(void)xml_parse(body->text, body->len, "an error", on_element, ret, &ignored);
}

void fault_read(enum aws_protocol protocol, const struct http_reply *reply, struct fault *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->status = reply->status;
	read_headers(reply, ret);
	if (reply->body.len && reply->body.len <= BODY_MAX) {
		if (protocol == PROTOCOL_S3 || protocol == PROTOCOL_QUERY)
			read_xml(&reply->body, ret);
		else
			read_json(&reply->body, ret);
	}
	if (!ret->code[0])
		snprintf(ret->code, sizeof ret->code, "%ld", reply->status);
}

/* ---- errors with status 200 ---- */

/* Returns the length of the root element's name, as far as it is in the body. */
static size_t root_name(const struct sb *body, const char **ret)
{
	const char *at = body->text, *end = body->text + body->len;

	while (at < end) {
		if (isspace((unsigned char)*at) || (unsigned char)*at == 0xEF ||
		    (unsigned char)*at == 0xBB || (unsigned char)*at == 0xBF) {
			at++; /* white space, byte order mark */
		} else if (*at == '<' && at + 1 < end && (at[1] == '?' || at[1] == '!')) {
			at = memchr(at, '>', (size_t)(end - at));
			if (!at)
				return 0;
			at++;
		} else {
			break;
		}
	}
	if (at >= end || *at != '<')
		return 0;
	*ret = ++at;
	while (at < end && !isspace((unsigned char)*at) && *at != '>' && *at != '/')
		at++;
	return (size_t)(at - *ret);
}

/* True if the document is complete: it ends with the end of its root element. */
static bool is_whole(const struct sb *body, const char *name, size_t name_len)
{
	const char *text = body->text;
	size_t end = body->len;

	while (end && isspace((unsigned char)text[end - 1]))
		end--;
	if (!end || text[--end] != '>')
		return false;
	while (end && isspace((unsigned char)text[end - 1]))
		end--;
	if (end && text[end - 1] == '/') /* an empty root: no other tag began in it */
		return memchr(name, '<', (size_t)(text + end - name)) == NULL;
	return end >= name_len + 2 && memcmp(text + end - name_len, name, name_len) == 0 &&
	       memcmp(text + end - name_len - 2, "</", 2) == 0;
}

bool fault_in_disguise(const struct http_reply *reply, struct fault *ret)
{
	const char *name = NULL;
	size_t len = root_name(&reply->body, &name);
	bool is_error = len == 5 && memcmp(name, "Error", 5) == 0;

	if (len && !is_error && is_whole(&reply->body, name, len))
		return false;
	fault_read(PROTOCOL_S3, reply, ret);
	if (!is_error) {
		snprintf(ret->code, sizeof ret->code, "IncompleteReply");
		snprintf(ret->message, sizeof ret->message,
			 reply->body.len ? "the received document is cut off"
					 : "the expected document is empty");
	}
	ret->status = 500;
	return true;
}
