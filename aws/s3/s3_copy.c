/*
 * Copies inside S3: one request for an object of up to 5 GiB, else one for each part
 * (s3_upload.c). S3 may begin its reply with 200 and fail afterwards, so the reply is read to its
 * end; and it computes the SHA-256 of a whole copy if it is asked to. See s3.h.
 *
 * Sources: API Reference of Amazon S3, CopyObject and UploadPartCopy; its guide's "Copying objects"
 * and "Checking object integrity".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/auth/sigv4.h"
#include "aws/s3/s3_request.h"
#include "aws/xml.h"

/* S3 answers when it has copied, and sends blanks meanwhile, when it sees fit. */
#define SILENT_MS ((int64_t)5 * 60 * 1000)

char *s3_copy_source(const struct s3_place *place)
{
	struct sb text = SB_INIT;

	sb_addf(&text, "%s/", place->bucket);
	sigv4_encode(&text, place->key, strlen(place->key), true);
	return sb_take(&text);
}

void s3_request_copy_source(struct s3_request *request, const char *source, const char *etag,
			    uint64_t from, uint64_t len)
{
	char range[64];

	s3_request_header(request, "x-amz-copy-source", source);
	s3_request_header(request, "x-amz-copy-source-if-match", etag);
	snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, from, from + len - 1);
	if (len > 0)
		s3_request_header(request, "x-amz-copy-source-range", range);
	request->call.silent_ms = SILENT_MS;
}

struct s3_copied {
	char *etag, *sha;
};

static bool read_copied(void *arg, const char *path, const char *text, size_t len)
{
	const struct s3_copied *copied = arg;
	const char *name = strchr(path, '/');

	if (name && strcmp(name, "/ETag") == 0 && len < S3_ETAG)
		memcpy(copied->etag, text, len + 1);
	if (name && copied->sha && strcmp(name, "/ChecksumSHA256") == 0 && len < SHA256_BASE64)
		memcpy(copied->sha, text, len + 1);
	return true;
}

void s3_copied_read(const struct aws_reply *reply, char ret_etag[S3_ETAG],
		    char ret_sha[SHA256_BASE64])
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct s3_copied copied = { ret_etag, ret_sha };

	ret_etag[0] = '\0';
	if (ret_sha)
		ret_sha[0] = '\0';
	/* A reply without an ETag is the caller's to refuse. */
	if (xml_parse(reply->http->body.text, reply->http->body.len, "the reply", read_copied,
		      &copied, &ignored) < 0)
		ret_etag[0] = '\0';
}

struct s3_copy {
	struct s3_operation base;
	struct s3_request request;
	uint64_t size;
};

static void copy_free(struct s3_operation *op)
{
	struct s3_copy *copy = (struct s3_copy *)op;

	s3_request_release(&copy->request);
	free(copy);
}

static void on_copied(void *arg, struct aws_reply *reply)
{
	struct s3_copy *copy = arg;
	struct s3_outcome outcome;
	char sha[SHA256_BASE64];

	copy->request.sent = NULL;
	s3_outcome_read(&copy->request, reply, &outcome);
	if (outcome.result == S3_DONE) {
		s3_copied_read(reply, outcome.object.etag, sha);
		outcome.object.size = outcome.bytes = copy->size;
		outcome.checksum = (struct s3_checksum){ 0 };
		if (sha[0]) {
			outcome.checksum.algorithm = S3_SHA256;
			snprintf(outcome.checksum.value, sizeof outcome.checksum.value, "%s", sha);
		}
	}
	if (outcome.result == S3_DONE && outcome.object.etag[0] == '\0') {
		outcome.result = S3_FAILED;
		err_set(&outcome.err, EXIT_UNREACHABLE,
			"cannot write 's3://%s/%s': the reply to the copy has no ETag",
			copy->request.bucket, copy->request.key);
	}
	s3_finish(&copy->base, &outcome);
}

struct s3_operation *s3_copy_start(struct aws *aws, const struct s3_source *from,
				   const struct s3_place *to, uint64_t whole_max, s3_done_fn done,
				   void *arg, struct err **err)
{
	AUTO(auto_free) char *source = NULL;
	struct s3_copy *copy;

	if (from->size > (whole_max ? whole_max : S3_COPY_WHOLE_MAX))
		return s3_copy_parts_start(aws, from, to, whole_max ? whole_max : S3_COPY_PART,
					   done, arg, err);
	if (s3_check_place(to, err) < 0)
		return NULL;
	copy = mem_zero(1, sizeof *copy);
	copy->base =
		(struct s3_operation){ .aws = aws, .done = done, .arg = arg, .free = copy_free };
	copy->size = from->size;
	source = s3_copy_source(&from->place);
	s3_request_begin(&copy->request, aws, AWS_COPY_OBJECT, to->bucket, to->key);
	s3_request_copy_source(&copy->request, source, from->etag, 0, 0);
	s3_request_header(&copy->request, "x-amz-checksum-algorithm", "SHA256");
	s3_request_send(&copy->request, on_copied, copy);
	return &copy->base;
}
