/*
 * Multipart upload of a file, several parts at once, each read in place and sent with its
 * SHA-256; or copied by S3 from another object, of which it is told the ETag. S3 is told the size
 * of the whole, so it refuses to complete an upload with missing parts, and evaluates the condition
 * at that moment. A failed upload is aborted. See s3.h.
 *
 *     create ─▶ parts ─▶ complete ─▶ (HEAD) ─▶ done
 *       └────────┴─────────┴─ failed ─▶ abort ─▶ is it gone? ─▶ abort again ─▶ failed
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "aws/s3/s3_request.h"
#include "aws/xml.h"
#include "jobs/base/fs/fs.h"

#define PARTS_MAX ((uint64_t)10000)

struct s3_upload_slot {
	struct upload *upload;
	struct s3_request request;
	uint64_t part; /* from 0 */
	bool busy;
};

struct s3_upload_part {
	char etag[S3_ETAG];
	char sha[SHA256_BASE64];
	uint8_t digest[SHA256_BYTES];
};

struct upload {
	struct s3_operation base;
	char *bucket, *key, *etag, *id;
	struct s3_body body;
	char *source, *source_etag; /* copied by S3: its x-amz-copy-source and ETag; else NULL */
	char nonce[S3_NONCE];
	uint64_t part_bytes, part_count, next;
	struct s3_upload_part *parts;
	size_t busy;
	struct s3_upload_slot slots[S3_PARTS_AT_ONCE];
	struct s3_request request; /* all requests except parts */
	struct sb xml;
	struct s3_outcome outcome; /* reported once the abort is over */
	struct err *doubt;         /* why it is unknown whether the upload was completed */
	char composite[64];
	int aborts;
};

static void upload_free(struct s3_operation *op)
{
	struct upload *u = (struct upload *)op;

	s3_request_release(&u->request);
	for (size_t i = 0; i < S3_PARTS_AT_ONCE; i++)
		s3_request_release(&u->slots[i].request);
	err_freep(&u->outcome.err);
	err_freep(&u->doubt);
	sb_release(&u->xml);
	free(u->bucket);
	free(u->key);
	free(u->etag);
	free(u->source);
	free(u->source_etag);
	free(u->id);
	free(u->parts);
	free(u);
}

static void finish(struct upload *u)
{
	struct s3_outcome outcome = u->outcome;

	u->outcome.err = NULL;
	s3_finish(&u->base, &outcome);
}

static void begin_request(struct upload *u, enum aws_operation operation)
{
	s3_request_begin(&u->request, u->base.aws, operation, u->bucket, u->key);
	if (u->id)
		s3_request_param(&u->request, "uploadId", u->id);
}

/* --- abort --- */

static void abort_upload(struct upload *u);

static void parts_listed(void *arg, struct aws_reply *reply)
{
	struct upload *u = arg;

	u->request.sent = NULL;
	/* A part that was under way when the upload was aborted may have stayed. */
	if (aws_reply_ok(reply) && u->aborts < 2)
		abort_upload(u);
	else
		finish(u);
}

static void aborted(void *arg, struct aws_reply *reply)
{
	struct upload *u = arg;

	u->request.sent = NULL;
	if (!aws_reply_ok(reply)) {
		finish(u); /* gone, or out of reach: left to s3_abort_leftovers() */
		return;
	}
	begin_request(u, AWS_LIST_PARTS);
	s3_request_send(&u->request, parts_listed, u);
}

static void abort_upload(struct upload *u)
{
	u->aborts++;
	begin_request(u, AWS_ABORT_UPLOAD);
	s3_request_send(&u->request, aborted, u);
}

/* Ends the upload with this result; `err` with FAILED. */
static void give_up(struct upload *u, enum s3_result result, struct err *err)
{
	u->outcome = (struct s3_outcome){ .result = result, .err = err };
	for (size_t i = 0; i < S3_PARTS_AT_ONCE; i++)
		s3_request_release(&u->slots[i].request);
	if (u->id)
		abort_upload(u);
	else
		finish(u);
}

/* --- completion --- */

/* True if an object with another nonce means that another writer was first. */
static bool stands_another(const struct upload *u, const struct s3_object *object)
{
	if (u->body.condition == S3_IF_SAME)
		return strcmp(object->etag, u->etag) != 0;
	return u->body.condition == S3_IF_ABSENT;
}

static void on_head(void *arg, struct aws_reply *reply)
{
	struct upload *u = arg;
	struct s3_outcome outcome;

	u->request.sent = NULL;
	s3_outcome_read(&u->request, reply, &outcome);
	if (outcome.result == S3_DONE && !s3_has_nonce(reply, u->nonce))
		outcome.result = stands_another(u, &outcome.object) ? S3_TAKEN : S3_ABSENT;
	if (outcome.result == S3_ABSENT && u->doubt) {
		outcome.result = S3_FAILED;
		outcome.err = TAKE(u->doubt);
	} else if (outcome.result == S3_ABSENT) {
		outcome.result = S3_CONFLICT; /* aborted by another client, or deleted at once */
	}
	if (outcome.result == S3_DONE && outcome.object.size != u->body.len) {
		outcome.result = S3_FAILED;
		err_set(&outcome.err, EXIT_UNREACHABLE,
			"'s3://%s/%s' has %" PRIu64 " bytes after the upload, not %" PRIu64,
			u->bucket, u->key, outcome.object.size, u->body.len);
	}
	if (outcome.result != S3_DONE) {
		give_up(u, outcome.result, outcome.err);
		return;
	}
	u->outcome = outcome;
	u->outcome.bytes = u->body.len;
	finish(u);
}

static void request_head(struct upload *u)
{
	s3_request_begin(&u->request, u->base.aws, AWS_HEAD_OBJECT, u->bucket, u->key);
	s3_request_send(&u->request, on_head, u);
}

struct completed {
	char etag[S3_ETAG], sha[64];
};

static bool read_completed(void *arg, const char *path, const char *text, size_t len)
{
	struct completed *completed = arg;

	if (strcmp(path, "CompleteMultipartUploadResult/ETag") == 0 && len < S3_ETAG)
		memcpy(completed->etag, text, len + 1);
	if (strcmp(path, "CompleteMultipartUploadResult/ChecksumSHA256") == 0 && len < 64)
		memcpy(completed->sha, text, len + 1);
	return true;
}

/* S3's statement about the completed object. */
enum completion {
	COMPLETION_UNKNOWN,   /* the reply does not say enough: a HEAD decides */
	COMPLETION_VERIFIED,  /* the bytes sent */
	COMPLETION_DIFFERENT, /* different bytes */
};

static enum completion check_completed(struct upload *u, const struct aws_reply *reply,
				       struct s3_outcome *outcome)
{
	AUTO(err_freep) struct err *err = NULL;
	struct completed completed = { "", "" };

	if (xml_parse(reply->http->body.text, reply->http->body.len, "the reply", read_completed,
		      &completed, &err) < 0)
		return COMPLETION_UNKNOWN;
	memcpy(outcome->object.etag, completed.etag, sizeof completed.etag);
	if (completed.sha[0] && strcmp(completed.sha, u->composite) != 0)
		return COMPLETION_DIFFERENT;
	return completed.etag[0] && completed.sha[0] ? COMPLETION_VERIFIED : COMPLETION_UNKNOWN;
}

/* S3 has assembled different content: size and nonce would be right all the same. */
static void refuse_other(struct upload *u)
{
	struct err *err = NULL;

	err_set(&err, EXIT_UNREACHABLE,
		"'s3://%s/%s' has another checksum after the upload than the sent data", u->bucket,
		u->key);
	give_up(u, S3_FAILED, err);
}

static void completed(void *arg, struct aws_reply *reply)
{
	struct upload *u = arg;
	struct s3_outcome outcome;
	enum completion completion;

	u->request.sent = NULL;
	s3_outcome_read(&u->request, reply, &outcome);
	completion = outcome.result == S3_DONE ? check_completed(u, reply, &outcome)
					       : COMPLETION_UNKNOWN;
	if (completion == COMPLETION_VERIFIED) {
		u->outcome = outcome;
		u->outcome.object.size = u->body.len;
		u->outcome.bytes = u->body.len;
		finish(u);
	} else if (completion == COMPLETION_DIFFERENT) {
		refuse_other(u);
	} else if (outcome.result == S3_DONE || reply->maybe_repeated || u->body.again) {
		/* Done without proof, or refused after an attempt in doubt: check the present
		 * object. */
		u->doubt = TAKE(outcome.err);
		request_head(u);
	} else if (outcome.result == S3_ABSENT) {
		/* The upload is gone or, with S3_IF_SAME, the object is. */
		give_up(u, u->body.condition == S3_IF_SAME ? S3_ABSENT : S3_CONFLICT, NULL);
	} else {
		give_up(u, outcome.result, outcome.err);
	}
}

/* Computes the checksum that S3 will report: a digest of all parts' digests, and their count. */
static void set_composite(struct upload *u, struct sha256 *of_digests)
{
	uint8_t digest[SHA256_BYTES];
	char text[SHA256_BASE64];

	hash_sha256_next(of_digests, digest);
	hash_base64(digest, sizeof digest, text);
	snprintf(u->composite, sizeof u->composite, "%s-%" PRIu64, text, u->part_count);
}

static void complete(struct upload *u)
{
	AUTO(hash_sha256_freep) struct sha256 *of_digests = hash_sha256_new();
	char size[24];

	sb_clear(&u->xml);
	sb_adds(&u->xml, "<CompleteMultipartUpload "
			 "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (uint64_t i = 0; i < u->part_count; i++) {
		sb_adds(&u->xml, "<Part><ETag>");
		xml_escape(&u->xml, u->parts[i].etag);
		sb_adds(&u->xml, "</ETag>");
		if (!u->source) {
			sb_addf(&u->xml, "<ChecksumSHA256>%s</ChecksumSHA256>", u->parts[i].sha);
			hash_sha256_add(of_digests, u->parts[i].digest, sizeof u->parts[i].digest);
		}
		sb_addf(&u->xml, "<PartNumber>%" PRIu64 "</PartNumber></Part>", i + 1);
	}
	set_composite(u, of_digests);
	sb_adds(&u->xml, "</CompleteMultipartUpload>");
	begin_request(u, AWS_COMPLETE_UPLOAD);
	u->request.call.body = u->xml.text;
	u->request.call.body_len = u->xml.len;
	snprintf(size, sizeof size, "%" PRIu64, u->body.len);
	s3_request_header(&u->request, "x-amz-mp-object-size", size);
	if (!u->source)
		s3_request_header(&u->request, "x-amz-checksum-type", "COMPOSITE");
	s3_request_condition(&u->request, u->body.condition, u->etag);
	s3_request_send(&u->request, completed, u);
}

/* --- parts --- */

static int send_parts(struct upload *u, struct err **err);

static uint64_t part_len(const struct upload *u, uint64_t part)
{
	uint64_t left = u->body.len - part * u->part_bytes;

	return left < u->part_bytes ? left : u->part_bytes;
}

/* Result of an upload whose part was refused. */
static enum s3_result refused_part(const struct upload *u, const struct aws_reply *reply,
				   enum s3_result result)
{
	if (result == S3_FAILED)
		return S3_FAILED;
	/* The source changed, or is gone. */
	if (u->source && strcmp(reply->code, "NoSuchUpload") != 0)
		return result;
	return S3_CONFLICT; /* aborted by another client: must be started again */
}

static void on_part(void *arg, struct aws_reply *reply)
{
	struct s3_upload_slot *slot = arg;
	struct upload *u = slot->upload;
	struct s3_outcome outcome;
	struct err *err = NULL;

	slot->request.sent = NULL;
	slot->busy = false;
	u->busy--;
	s3_outcome_read(&slot->request, reply, &outcome);
	if (u->source && outcome.result == S3_DONE)
		s3_copied_read(reply, outcome.object.etag, NULL);
	if (outcome.result == S3_DONE && outcome.object.etag[0] == '\0') {
		outcome.result = S3_FAILED;
		err_set(&outcome.err, EXIT_UNREACHABLE,
			"cannot write 's3://%s/%s': a part came back without its ETag", u->bucket,
			u->key);
	}
	if (outcome.result != S3_DONE) {
		give_up(u, refused_part(u, reply, outcome.result), outcome.err);
		return;
	}
	u->base.moved += part_len(u, slot->part);
	memcpy(u->parts[slot->part].etag, outcome.object.etag, S3_ETAG);
	if (send_parts(u, &err) < 0)
		give_up(u, S3_FAILED, err);
	else if (u->busy == 0)
		complete(u);
}

/* The content of a part: bytes of the body, or where S3 finds it. */
static int set_part(struct upload *u, struct s3_upload_slot *slot, struct err **err)
{
	uint64_t from = slot->part * u->part_bytes, len = part_len(u, slot->part);

	if (u->source) {
		s3_request_copy_source(&slot->request, u->source, u->source_etag, from, len);
		return 0;
	}
	if (s3_request_body(&slot->request, &u->body, from, len, u->parts[slot->part].sha, err) < 0)
		return err_wrap(err, "cannot write 's3://%s/%s'", u->bucket, u->key);
	hash_sha256_parse(slot->request.call.body_sha256, u->parts[slot->part].digest);
	return 0;
}

static int send_part(struct upload *u, struct s3_upload_slot *slot, struct err **err)
{
	char number[24];

	slot->upload = u;
	slot->part = u->next;
	s3_request_begin(&slot->request, u->base.aws,
			 u->source ? AWS_UPLOAD_PART_COPY : AWS_UPLOAD_PART, u->bucket, u->key);
	snprintf(number, sizeof number, "%" PRIu64, u->next + 1);
	s3_request_param(&slot->request, "partNumber", number);
	s3_request_param(&slot->request, "uploadId", u->id);
	if (set_part(u, slot, err) < 0)
		return -1;
	slot->busy = true;
	u->busy++;
	u->next++;
	s3_request_send(&slot->request, on_part, slot);
	return 0;
}

static int check_size(const struct upload *u, struct err **err)
{
	struct stat st;

	if (u->body.fd < 0)
		return 0;
	if (fstat(u->body.fd, &st) < 0)
		return fs_error(err, errno, "cannot look at the file to upload");
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < u->body.offset + u->body.len)
		return err_set(err, EXIT_REFUSED, "the file became shorter while it was uploaded");
	return 0;
}

static int send_parts(struct upload *u, struct err **err)
{
	if (check_size(u, err) < 0)
		return -1;
	for (size_t i = 0; i < S3_PARTS_AT_ONCE && u->next < u->part_count; i++)
		if (!u->slots[i].busy && send_part(u, &u->slots[i], err) < 0)
			return -1;
	return 0;
}

/* --- start --- */

static bool read_id(void *arg, const char *path, const char *text, size_t len)
{
	struct upload *u = arg;

	if (strcmp(path, "InitiateMultipartUploadResult/UploadId") == 0 && !u->id && len > 0)
		u->id = mem_copy_n(text, len);
	return true;
}

static void created(void *arg, struct aws_reply *reply)
{
	struct upload *u = arg;
	struct s3_outcome outcome;
	struct err *err = NULL;

	u->request.sent = NULL;
	s3_outcome_read(&u->request, reply, &outcome);
	if (outcome.result != S3_DONE) {
		if (outcome.result != S3_FAILED)
			outcome.err = TAKE(reply->err);
		give_up(u, S3_FAILED, outcome.err);
		return;
	}
	if (xml_parse(reply->http->body.text, reply->http->body.len, "the reply", read_id, u,
		      &err) < 0 ||
	    !u->id) {
		if (!err)
			err_set(&err, EXIT_UNREACHABLE, "the reply names no upload");
		err_code(&err, EXIT_UNREACHABLE);
		err_wrap(&err, "cannot write 's3://%s/%s'", u->bucket, u->key);
		give_up(u, S3_FAILED, err);
		return;
	}
	if (send_parts(u, &err) < 0)
		give_up(u, S3_FAILED, err);
}

static uint64_t part_bytes_for(uint64_t len, uint64_t bytes)
{
	while (len > bytes * PARTS_MAX)
		bytes *= 2;
	return bytes;
}

static void create(struct upload *u)
{
	char text[24];

	begin_request(u, AWS_CREATE_UPLOAD);
	s3_nonce_of(&u->body, u->nonce);
	s3_request_header(&u->request, S3_NONCE_HEADER, u->nonce);
	snprintf(text, sizeof text, "%" PRIu64, u->part_bytes);
	s3_request_header(&u->request, S3_PART_HEADER, text);
	if (!u->source) {
		s3_request_header(&u->request, "x-amz-checksum-algorithm", "SHA256");
		s3_request_header(&u->request, "x-amz-checksum-type", "COMPOSITE");
	}
	s3_request_send(&u->request, created, u);
}

static struct upload *upload_new(struct aws *aws, const struct s3_place *place,
				 const struct s3_body *body, uint64_t part_bytes, s3_done_fn done,
				 void *arg, struct err **err)
{
	struct upload *u;

	if (s3_check_place(place, err) < 0)
		return NULL;
	if (body->len > S3_OBJECT_MAX) {
		err_set(err, EXIT_REFUSED, "'s3://%s/%s' would have more than 5 TiB", place->bucket,
			place->key);
		return NULL;
	}
	u = mem_zero(1, sizeof *u);
	u->base =
		(struct s3_operation){ .aws = aws, .done = done, .arg = arg, .free = upload_free };
	u->bucket = mem_copy(place->bucket);
	u->key = mem_copy(place->key);
	u->etag = body->etag ? mem_copy(body->etag) : NULL;
	u->body = *body;
	u->part_bytes = part_bytes_for(body->len, part_bytes);
	u->part_count = (body->len + u->part_bytes - 1) / u->part_bytes;
	u->parts = mem_zero(u->part_count, sizeof *u->parts);
	u->xml = SB_INIT;
	return u;
}

struct s3_operation *s3_upload_start(struct aws *aws, const struct s3_place *place,
				     const struct s3_body *body, s3_done_fn done, void *arg,
				     struct err **err)
{
	struct upload *u;

	if (body->len <= S3_PART_BYTES)
		return s3_put_start(aws, place, body, done, arg, err);
	u = upload_new(aws, place, body, S3_PART_BYTES, done, arg, err);
	if (!u)
		return NULL;
	create(u);
	return &u->base;
}

struct s3_operation *s3_copy_parts_start(struct aws *aws, const struct s3_source *from,
					 const struct s3_place *to, uint64_t part_bytes,
					 s3_done_fn done, void *arg, struct err **err)
{
	const struct s3_body body = { .len = from->size, .fd = -1 };
	struct upload *u = upload_new(aws, to, &body, part_bytes, done, arg, err);

	if (!u)
		return NULL;
	u->source = s3_copy_source(&from->place);
	u->source_etag = mem_copy(from->etag);
	create(u);
	return &u->base;
}
