/* A request to S3 with all data it refers to, and the meaning of its reply. See s3.h. */
#include "aws/s3/s3_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"

/* --- request --- */

void s3_request_begin(struct s3_request *request, struct aws *aws, enum aws_operation operation,
		      const char *bucket, const char *key)
{
	s3_request_release(request);
	request->aws = aws;
	request->call = (struct aws_call){ .operation = operation, .body_fd = -1 };
	request->bucket = mem_copy(bucket);
	request->key = key ? mem_copy(key) : NULL;
	request->call.bucket = request->bucket;
	request->call.key = request->key;
	request->call.params = request->params;
	request->call.headers = request->headers;
}

static const char *keep(struct s3_request *request, const char *value)
{
	char *copy = mem_copy(value);

	request->owned[request->owned_count++] = copy;
	return copy;
}

void s3_request_param(struct s3_request *request, const char *name, const char *value)
{
	request->params[request->call.param_count++] =
		(struct sigv4_pair){ name, keep(request, value) };
}

void s3_request_header(struct s3_request *request, const char *name, const char *value)
{
	request->headers[request->call.header_count++] =
		(struct sigv4_pair){ name, keep(request, value) };
}

void s3_request_condition(struct s3_request *request, enum s3_condition condition, const char *etag)
{
	if (condition == S3_IF_ABSENT)
		s3_request_header(request, "if-none-match", "*");
	if (condition == S3_IF_SAME)
		s3_request_header(request, "if-match", etag);
}

int s3_request_body(struct s3_request *request, const struct s3_body *body, uint64_t from,
		    uint64_t len, char ret_base64[SHA256_BASE64], struct err **err)
{
	char hex[SHA256_HEX];

	if (body->fd >= 0) {
		if (hash_sha256_range(body->fd, body->offset + from, len, hex, err) < 0)
			return -1;
		request->call.body_fd = body->fd;
		request->call.body_offset = body->offset + from;
	} else {
		const char *bytes = body->bytes ? body->bytes : "";

		hash_sha256_hex(bytes + from, (size_t)len, hex);
		request->call.body = bytes + from;
	}
	request->call.body_len = len;
	request->call.body_sha256 = keep(request, hex);
	hash_sha256_base64(hex, ret_base64);
	s3_request_header(request, "x-amz-checksum-sha256", ret_base64);
	return 0;
}

void s3_request_send(struct s3_request *request, aws_done_fn done, void *arg)
{
	request->sent = aws_request_start(request->aws, &request->call, done, arg);
}

void s3_request_small(struct s3_request *request)
{
	request->call.silent_ms = AWS_SILENT_MS;
	request->call.again_ms = AWS_AGAIN_MS;
	if (request->sent)
		aws_request_limit(request->sent, AWS_SILENT_MS, AWS_AGAIN_MS);
}

void s3_request_release(struct s3_request *request)
{
	if (request->sent)
		aws_request_cancel(request->sent);
	for (size_t i = 0; i < request->owned_count; i++)
		free(request->owned[i]);
	free(request->bucket);
	free(request->key);
	*request = (struct s3_request){ 0 };
}

void s3_nonce_of(const struct s3_body *body, char nonce[S3_NONCE])
{
	if (body->nonce)
		snprintf(nonce, S3_NONCE, "%s", body->nonce);
	else
		hash_random_hex((S3_NONCE - 1) / 2, nonce);
}

int s3_check_place(const struct s3_place *place, struct err **err)
{
	size_t len = strlen(place->key);

	if (len == 0 || len > S3_KEY_MAX)
		return err_set(err, EXIT_REFUSED,
			       "invalid object 's3://%s/%s': keys have 1 to %d bytes, not %zu",
			       place->bucket, place->key, S3_KEY_MAX, len);
	return 0;
}

/* --- reply --- */

bool s3_has_nonce(const struct aws_reply *reply, const char *nonce)
{
	char found[S3_NONCE] = "";

	s3_header_text(reply->http, S3_NONCE_HEADER, found, sizeof found);
	return strcmp(found, nonce) == 0;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	return errno || end == text || text[0] == '-' ? 0 : value;
}

/* Returns the size of the whole from "bytes 0-9/1234". */
static uint64_t whole_size(const char *content_range)
{
	const char *slash = strchr(content_range, '/');

	return slash ? number(slash + 1) : 0;
}

static void read_object(const struct s3_request *request, const struct aws_reply *reply,
			struct s3_outcome *ret)
{
	const struct http_reply *http = reply->http;
	char text[128] = "";

	s3_header_text(http, "etag", ret->object.etag, sizeof ret->object.etag);
	s3_header_text(http, "last-modified", text, sizeof text);
	ret->object.modified = s3_time(text);
	s3_checksum_read(http, &ret->checksum);
	if (request->call.operation != AWS_HEAD_OBJECT && request->call.operation != AWS_GET_OBJECT)
		return;
	s3_header_text(http, "content-range", text, sizeof text);
	if (text[0]) {
		ret->object.size = whole_size(text);
	} else {
		s3_header_text(http, "content-length", text, sizeof text);
		ret->object.size = text[0] ? number(text) : http->received;
	}
}

static const char *attempted(enum aws_operation operation)
{
	switch (operation) {
	case AWS_LIST_OBJECTS:
	case AWS_LIST_UPLOADS:
		return "cannot list";
	case AWS_HEAD_OBJECT:
		return "cannot look at";
	case AWS_GET_OBJECT:
		return "cannot read";
	case AWS_DELETE_OBJECT:
		return "cannot delete";
	case AWS_ABORT_UPLOAD:
	case AWS_LIST_PARTS:
		return "cannot clean up the upload of";
	default:
		return "cannot write";
	}
}

static enum s3_result result_of(const struct aws_reply *reply)
{
	if (aws_reply_ok(reply))
		return S3_DONE;
	if (reply->status == 404 && strcmp(reply->code, "NoSuchBucket") != 0)
		return S3_ABSENT;
	if (reply->status == 412)
		return S3_TAKEN;
	if (reply->status == 409 && (strcmp(reply->code, "ConditionalRequestConflict") == 0 ||
				     strcmp(reply->code, "OperationAborted") == 0))
		return S3_CONFLICT;
	return S3_FAILED;
}

/* Returns the key or, for a listing, the prefix. */
static const char *what_of(const struct s3_request *request)
{
	for (size_t i = 0; !request->key && i < request->call.param_count; i++)
		if (strcmp(request->params[i].name, "prefix") == 0)
			return request->params[i].value;
	return request->key ? request->key : "";
}

void s3_outcome_read(const struct s3_request *request, struct aws_reply *reply,
		     struct s3_outcome *ret)
{
	*ret = (struct s3_outcome){ .result = result_of(reply) };
	if (reply->http && ret->result == S3_DONE)
		read_object(request, reply, ret);
	if (ret->result != S3_FAILED)
		return;
	ret->err = TAKE(reply->err);
	if (!ret->err)
		err_set(&ret->err, EXIT_UNREACHABLE, "no usable reply (status %ld)", reply->status);
	err_wrap(&ret->err, "%s 's3://%s/%s'", attempted(request->call.operation), request->bucket,
		 what_of(request));
}

/* --- operations --- */

void s3_finish(struct s3_operation *op, struct s3_outcome *outcome)
{
	s3_done_fn done = op->done;
	void *arg = op->arg;

	op->free(op);
	done(arg, outcome);
	err_freep(&outcome->err);
}

void s3_operation_small(struct s3_operation *op)
{
	if (!op)
		return;
	op->is_small = true;
	s3_request_small(op->request);
}

void s3_finish_failed(struct s3_operation *op, struct err *err)
{
	struct s3_outcome outcome = { .result = S3_FAILED, .err = err };

	s3_finish(op, &outcome);
}

void s3_cancelp(struct s3_operation **op)
{
	if (*op)
		(*op)->free(*op);
	*op = NULL;
}
