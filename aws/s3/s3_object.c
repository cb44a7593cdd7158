/* Operations of one request, or of one and a HEAD that finds out its effect: head, get, put,
 * delete. See s3.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/s3/s3_request.h"
#include "jobs/base/text/text.h"

/* --- put --- */

struct put {
	struct s3_operation base;
	struct s3_request request, head; /* head: reads the nonce of the present object */
	enum s3_condition condition;
	uint64_t len;
	char nonce[S3_NONCE], etag[S3_ETAG];
	bool again;
	enum s3_result refusal; /* result of the request itself */
};

static void put_free(struct s3_operation *op)
{
	struct put *put = (struct put *)op;

	s3_request_release(&put->request);
	s3_request_release(&put->head);
	free(put);
}

/* The first attempt may have succeeded although its reply was lost. */
static void on_head(void *arg, struct aws_reply *reply)
{
	struct put *put = arg;
	struct s3_outcome outcome;

	put->head.sent = NULL;
	s3_outcome_read(&put->head, reply, &outcome);
	if (outcome.result == S3_DONE && s3_has_nonce(reply, put->nonce)) {
		outcome.bytes = put->len;
	} else if (outcome.result == S3_DONE) {
		/* After a conflict the object may be unchanged: that decides nothing. */
		bool same =
			put->condition == S3_IF_SAME && strcmp(outcome.object.etag, put->etag) == 0;

		outcome.result = put->refusal == S3_CONFLICT && same ? S3_CONFLICT : S3_TAKEN;
	} else if (outcome.result == S3_ABSENT && put->condition == S3_IF_ABSENT) {
		outcome.result = S3_CONFLICT; /* the other writer deleted it or is not done */
	}
	s3_finish(&put->base, &outcome);
}

static void on_put(void *arg, struct aws_reply *reply)
{
	struct put *put = arg;
	struct s3_outcome outcome;

	put->request.sent = NULL;
	s3_outcome_read(&put->request, reply, &outcome);
	put->base.moved += put->len;
	put->refusal = outcome.result;
	if (put->condition != S3_ALWAYS && (reply->maybe_repeated || put->again) &&
	    (outcome.result == S3_TAKEN || outcome.result == S3_ABSENT ||
	     outcome.result == S3_CONFLICT)) {
		s3_request_begin(&put->head, put->base.aws, AWS_HEAD_OBJECT, put->request.bucket,
				 put->request.key);
		if (put->base.is_small)
			s3_request_small(&put->head);
		s3_request_send(&put->head, on_head, put);
		return;
	}
	if (outcome.result == S3_ABSENT && put->condition != S3_IF_SAME) {
		/* A write cannot find its object absent: the service's error stands. */
		outcome.result = S3_FAILED;
		outcome.err = TAKE(reply->err);
	}
	if (outcome.result == S3_DONE) {
		outcome.bytes = put->len;
		outcome.object.size = put->len;
	}
	s3_finish(&put->base, &outcome);
}

struct s3_operation *s3_put_start(struct aws *aws, const struct s3_place *place,
				  const struct s3_body *body, s3_done_fn done, void *arg,
				  struct err **err)
{
	struct put *put;
	char base64[SHA256_BASE64];

	if (s3_check_place(place, err) < 0)
		return NULL;
	put = mem_zero(1, sizeof *put);
	put->base = (struct s3_operation){
		.aws = aws, .done = done, .arg = arg, .request = &put->request, .free = put_free
	};
	put->condition = body->condition;
	put->again = body->again;
	snprintf(put->etag, sizeof put->etag, "%s", body->etag ? body->etag : "");
	put->len = body->len;
	s3_request_begin(&put->request, aws, AWS_PUT_OBJECT, place->bucket, place->key);
	if (s3_request_body(&put->request, body, 0, body->len, base64, err) < 0) {
		err_wrap(err, "cannot write 's3://%s/%s'", place->bucket, place->key);
		put_free(&put->base);
		return NULL;
	}
	if (body->condition != S3_ALWAYS) {
		s3_nonce_of(body, put->nonce);
		s3_request_header(&put->request, S3_NONCE_HEADER, put->nonce);
		s3_request_condition(&put->request, body->condition, body->etag);
	}
	s3_request_send(&put->request, on_put, put);
	return &put->base;
}

/* --- head, get, delete --- */

struct simple {
	struct s3_operation base;
	struct s3_request request;
	struct s3_read read;
	uint64_t received;
};

static void simple_free(struct s3_operation *op)
{
	struct simple *simple = (struct simple *)op;

	s3_request_release(&simple->request);
	free(simple);
}

static struct simple *simple_new(struct aws *aws, enum aws_operation operation, const char *bucket,
				 const char *key, s3_done_fn done, void *arg)
{
	struct simple *simple = mem_zero(1, sizeof *simple);

	simple->base = (struct s3_operation){ .aws = aws,
					      .done = done,
					      .arg = arg,
					      .request = &simple->request,
					      .free = simple_free };
	s3_request_begin(&simple->request, aws, operation, bucket, key);
	return simple;
}

static void on_simple(void *arg, struct aws_reply *reply)
{
	struct simple *simple = arg;
	struct s3_outcome outcome;

	simple->request.sent = NULL;
	s3_outcome_read(&simple->request, reply, &outcome);
	s3_finish(&simple->base, &outcome);
}

struct s3_operation *s3_head_start(struct aws *aws, const struct s3_place *place, s3_done_fn done,
				   void *arg, struct err **err)
{
	struct simple *simple;

	if (s3_check_place(place, err) < 0)
		return NULL;
	simple = simple_new(aws, AWS_HEAD_OBJECT, place->bucket, place->key, done, arg);
	s3_request_header(&simple->request, "x-amz-checksum-mode", "ENABLED");
	s3_request_send(&simple->request, on_simple, simple);
	return &simple->base;
}

struct s3_operation *s3_delete_start(struct aws *aws, const struct s3_place *place, s3_done_fn done,
				     void *arg, struct err **err)
{
	struct simple *simple;

	if (s3_check_place(place, err) < 0)
		return NULL;
	simple = simple_new(aws, AWS_DELETE_OBJECT, place->bucket, place->key, done, arg);
	s3_request_send(&simple->request, on_simple, simple);
	return &simple->base;
}

/* --- get --- */

static bool on_bytes(void *arg, const void *bytes, size_t len)
{
	struct simple *simple = arg;

	simple->received += len;
	simple->base.moved += len;
	return simple->read.sink(simple->read.sink_arg, bytes, len);
}

static void on_restart(void *arg)
{
	struct simple *simple = arg;

	simple->received = 0;
	if (simple->read.restart)
		simple->read.restart(simple->read.sink_arg);
}

static bool is_stretch(const struct s3_read *read)
{
	return read->offset > 0 || read->len > 0;
}

/* Returns why the reply is not the range that was requested; NULL if it is. */
static const char *wrong_stretch(const struct simple *simple, const struct aws_reply *reply)
{
	AUTO(auto_free) char *want = mem_format("bytes %" PRIu64 "-", simple->read.offset);
	char range[128] = "";

	if (!is_stretch(&simple->read))
		return reply->status == 200 ? NULL : "not the whole object came";
	s3_header_text(reply->http, "content-range", range, sizeof range);
	if (reply->status != 206 || !text_starts(range, want) ||
	    (simple->read.len && simple->received > simple->read.len))
		return "the reply has another range than requested";
	return NULL;
}

static void on_get(void *arg, struct aws_reply *reply)
{
	struct simple *simple = arg;
	struct s3_outcome outcome;
	const char *wrong = NULL;

	simple->request.sent = NULL;
	s3_outcome_read(&simple->request, reply, &outcome);
	if (outcome.result == S3_FAILED && reply->status == 416 && simple->received == 0) {
		err_freep(&outcome.err); /* the whole object lies before the offset */
		outcome.result = S3_DONE;
	} else if (outcome.result == S3_DONE) {
		wrong = wrong_stretch(simple, reply);
	}
	if (wrong) {
		outcome.result = S3_FAILED;
		err_set(&outcome.err, EXIT_UNREACHABLE, "cannot read 's3://%s/%s': %s",
			simple->request.bucket, simple->request.key, wrong);
	}
	outcome.bytes = simple->received;
	s3_finish(&simple->base, &outcome);
}

struct s3_operation *s3_get_start(struct aws *aws, const struct s3_place *place,
				  const struct s3_read *read, s3_done_fn done, void *arg,
				  struct err **err)
{
	struct simple *simple;
	char range[64];

	if (s3_check_place(place, err) < 0)
		return NULL;
	simple = simple_new(aws, AWS_GET_OBJECT, place->bucket, place->key, done, arg);
	simple->read = *read;
	simple->read.if_match = NULL; /* the request has a copy */
	simple->request.call.sink = on_bytes;
	simple->request.call.restart = on_restart;
	simple->request.call.sink_arg = simple;
	if (read->len)
		snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, read->offset,
			 read->len - 1 > UINT64_MAX - read->offset ? UINT64_MAX
								   : read->offset + read->len - 1);
	else
		snprintf(range, sizeof range, "bytes=%" PRIu64 "-", read->offset);
	if (is_stretch(read))
		s3_request_header(&simple->request, "range", range);
	else
		s3_request_header(&simple->request, "x-amz-checksum-mode", "ENABLED");
	if (read->if_match)
		s3_request_header(&simple->request, "if-match", read->if_match);
	s3_request_send(&simple->request, on_get, simple);
	return &simple->base;
}
