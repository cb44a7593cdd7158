/* Body, address, headers and signature of a call: see signed_request.h. */
#include "aws/auth/signed_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/text/text.h"

#define READ_BYTES  ((size_t)256 << 10)
#define OWN_HEADERS 7 /* number of headers that signed_request_sign() may add */

static int digest_file(const struct aws_call *call, char hex[SHA256_HEX], struct err **err)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	AUTO(auto_free) char *bytes = mem_alloc(READ_BYTES);
	uint64_t done = 0;

	while (done < call->body_len) {
		uint64_t left = call->body_len - done;
		ssize_t got =
			pread(call->body_fd, bytes, left < READ_BYTES ? (size_t)left : READ_BYTES,
			      (off_t)(call->body_offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_system(err, EXIT_REFUSED, errno, "cannot read the file to send");
		if (got == 0)
			return err_set(err, EXIT_REFUSED,
				       "the file to send has become shorter while it was read");
		hash_sha256_add(sha, bytes, (size_t)got);
		done += (uint64_t)got;
	}
	hash_sha256_end(TAKE(sha), hex);
	return 0;
}

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
	ret->proof = SIGV4_SIGNED_INIT;
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
	else if (digest_file(call, ret->payload, err) < 0)
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
	sigv4_signed_release(&ret->proof);
	sb_release(&ret->token);
	sb_release(&ret->target);
}

int signed_request_address(struct signed_request *outgoing, const char *region, struct err **err)
{
	return endpoint_find(&outgoing->where, outgoing->call, region, err);
}

static void add(struct signed_request *outgoing, const char *name, const char *value)
{
	outgoing->headers[outgoing->header_count++] = (struct sigv4_pair){ name, value };
}

static bool is_given(const struct aws_call *call, const char *name)
{
	for (size_t i = 0; i < call->header_count; i++)
		if (strcmp(call->headers[i].name, name) == 0)
			return true;
	return false;
}

/* Adds the headers that the signer does not add itself. */
static void add_plain_headers(struct signed_request *outgoing)
{
	const struct aws_call *call = outgoing->call;
	const struct operation_row *operation = operation_row(call->operation);
	const struct service_row *service = operation_service_row(operation->service);
	bool has_body = outgoing->body_len || strcmp(operation->method, "POST") == 0 ||
			strcmp(operation->method, "PUT") == 0;

	free(outgoing->headers);
	outgoing->headers = mem_zero(call->header_count + OWN_HEADERS, sizeof *outgoing->headers);
	outgoing->header_count = 0;
	for (size_t i = 0; i < call->header_count; i++)
		add(outgoing, call->headers[i].name, call->headers[i].value);
	if (has_body && !is_given(call, "content-type"))
		add(outgoing, "content-type", service->content_type);
	if (service->protocol == PROTOCOL_JSON) {
		sb_clear(&outgoing->target);
		sb_addf(&outgoing->target, "%s.%s", service->prefix, operation->name);
		add(outgoing, "x-amz-target", outgoing->target.text);
	}
	if (outgoing->checksum[0])
		add(outgoing, "x-amz-checksum-sha256", outgoing->checksum);
}

void signed_request_sign(struct signed_request *outgoing, struct sigv4_keys *keys,
			 const struct sigv4_identity *who, const char *region, struct utc at,
			 struct http_request *request)
{
	const struct operation_row *operation = operation_row(outgoing->call->operation);
	const struct service_row *service = operation_service_row(operation->service);
	struct sigv4_request what = {
		.method = operation->method,
		.host = outgoing->where.host.text,
		.path = outgoing->where.path.text,
		.query = outgoing->where.query.text,
		.payload = outgoing->payload,
		.region = region,
		.service = service->signing,
		.is_s3 = service->protocol == PROTOCOL_S3,
	};

	add_plain_headers(outgoing);
	if (who) {
		what.headers = outgoing->headers;
		what.header_count = outgoing->header_count;
		sigv4_sign(keys, who, &what, at, &outgoing->proof);
		add(outgoing, "x-amz-date", outgoing->proof.date);
		add(outgoing, "authorization", outgoing->proof.authorization.text);
		if (what.is_s3)
			add(outgoing, "x-amz-content-sha256", outgoing->payload);
		sb_clear(&outgoing->token);
		if (who->token) {
			sb_adds(&outgoing->token, who->token);
			add(outgoing, "x-amz-security-token", outgoing->token.text);
		}
	}
	*request = (struct http_request){
		.method = operation->method,
		.url = outgoing->where.url.text,
		.headers = outgoing->headers,
		.header_count = outgoing->header_count,
		.body = outgoing->body,
		.body_len = outgoing->body_len,
		.body_fd = outgoing->call->body_fd,
		.body_offset = outgoing->call->body_offset,
		.secret = (operation->flags & OPERATION_SECRET) != 0,
	};
}
