/* Body, address, headers and signature of a call: see signed_request.h. */
#include "aws/auth/signed_request.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

#define OWN_HEADERS 7 /* number of headers that signed_request_sign() may add */

static void make_form(struct signed_request *ret)
{
	const struct operation_row *operation = operation_row(ret->call->operation);
	const struct sigv4_pair first[] = {
		{ "Action", operation->name },
		{ "Version", operation_service_row(operation->service)->prefix },
	};
	struct sb form = SB_INIT_SECRET;

	endpoint_params(&form, first, STK_LENGTH(first));
	endpoint_params(&form, ret->call->params, ret->call->param_count);
	ret->body_len = form.len;
	ret->body = ret->made = sb_take(&form);
}

int signed_request_make(struct signed_request *ret, const struct aws_call *call, struct err **err)
{
	const struct operation_row *operation = operation_row(call->operation);
	enum aws_protocol protocol = operation_service_row(operation->service)->protocol;

	ret->call = call;
	ret->where = ENDPOINT_INIT;
	ret->signature = SIGV4_SIGNED_INIT;
	ret->token = SB_INIT_SECRET;
	ret->target = SB_INIT;
	ret->body = call->body;
	ret->body_len = call->body_len;
	if (protocol == PROTOCOL_QUERY) {
		make_form(ret);
	} else if (call->json || protocol == PROTOCOL_JSON) {
		ret->body = ret->made = call->json ? js_line(call->json) : mem_copy("{}");
		ret->body_len = strlen(ret->made);
	}
	if (call->body_sha256)
		memcpy(ret->payload, call->body_sha256, SHA256_HEX);
	else if (ret->body || !ret->body_len)
		hash_sha256_hex(ret->body ? ret->body : "", (size_t)ret->body_len, ret->payload);
	else if (hash_sha256_range(call->body_fd, call->body_offset, call->body_len, ret->payload,
				   err) < 0)
		return -1;
	if (operation->flags & OPERATION_CHECKSUM)
		hash_sha256_base64(ret->payload, ret->checksum);
	for (size_t i = 0; i < call->header_count; i++)
		if (text_starts(call->headers[i].name, "x-amz-checksum-"))
			ret->checksum[0] = '\0'; /* the caller has one */
	return 0;
}

void signed_request_release(struct signed_request *ret)
{
	if (ret->made)
		explicit_bzero(ret->made, (size_t)ret->body_len); /* tokens of web identities */
	free(ret->made);
	free(ret->headers);
	if (!ret->call)
		return;
	endpoint_release(&ret->where);
	sigv4_signed_release(&ret->signature);
	sb_release(&ret->token);
	sb_release(&ret->target);
}

static void add(struct signed_request *signing, const char *name, const char *value)
{
	signing->headers[signing->header_count++] = (struct sigv4_pair){ name, value };
}

static bool is_given(const struct aws_call *call, const char *name)
{
	for (size_t i = 0; i < call->header_count; i++)
		if (strcmp(call->headers[i].name, name) == 0)
			return true;
	return false;
}

/* Adds the headers that the signer does not add itself. */
static void add_plain_headers(struct signed_request *signing)
{
	const struct aws_call *call = signing->call;
	const struct operation_row *operation = operation_row(call->operation);
	const struct service_row *service = operation_service_row(operation->service);
	bool has_body = signing->body_len || strcmp(operation->method, "POST") == 0 ||
			strcmp(operation->method, "PUT") == 0;

	free(signing->headers);
	signing->headers = mem_zero(call->header_count + OWN_HEADERS, sizeof *signing->headers);
	signing->header_count = 0;
	for (size_t i = 0; i < call->header_count; i++)
		add(signing, call->headers[i].name, call->headers[i].value);
	if (has_body && !is_given(call, "content-type"))
		add(signing, "content-type", service->content_type);
	if (service->protocol == PROTOCOL_JSON) {
		sb_clear(&signing->target);
		sb_addf(&signing->target, "%s.%s", service->prefix, operation->name);
		add(signing, "x-amz-target", signing->target.text);
	}
	if (signing->checksum[0])
		add(signing, "x-amz-checksum-sha256", signing->checksum);
}

void signed_request_sign(struct signed_request *signing, struct sigv4_keys *keys,
			 const struct sigv4_identity *who, const char *region, struct utc at,
			 struct http_request *request)
{
	const struct operation_row *operation = operation_row(signing->call->operation);
	const struct service_row *service = operation_service_row(operation->service);
	struct sigv4_request what = {
		.method = operation->method,
		.host = signing->where.host.text,
		.path = signing->where.path.text,
		.query = signing->where.query.text,
		.payload = signing->payload,
		.region = region,
		.service = service->signing,
		.is_s3 = service->protocol == PROTOCOL_S3,
	};

	add_plain_headers(signing);
	if (who) {
		what.headers = signing->headers;
		what.header_count = signing->header_count;
		sigv4_sign(keys, who, &what, at, &signing->signature);
		add(signing, "x-amz-date", signing->signature.date);
		add(signing, "authorization", signing->signature.authorization.text);
		if (what.is_s3)
			add(signing, "x-amz-content-sha256", signing->payload);
		sb_clear(&signing->token);
		if (who->token) {
			sb_adds(&signing->token, who->token);
			add(signing, "x-amz-security-token", signing->token.text);
		}
	}
	*request = (struct http_request){
		.method = operation->method,
		.url = signing->where.url.text,
		.headers = signing->headers,
		.header_count = signing->header_count,
		.body = signing->body,
		.body_len = signing->body_len,
		.body_fd = signing->call->body_fd,
		.body_offset = signing->call->body_offset,
		.secret = (operation->flags & OPERATION_SECRET) != 0,
	};
}
