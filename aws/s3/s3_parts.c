/* A trial of an upload in parts, with each right that uploads of large objects use: see s3.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/s3/s3_request.h"
#include "aws/xml.h"

#define KMS_HEADER "x-amz-server-side-encryption-aws-kms-key-id"

static const struct {
	enum aws_operation operation;
	const char *doing, *right;
} steps[S3_PARTS_STEPS] = {
	[S3_PARTS_BEGIN] = { AWS_CREATE_UPLOAD, "begin an upload in parts", "s3:PutObject" },
	[S3_PARTS_FIND] = { AWS_LIST_UPLOADS,
			    "find uploads in parts that killed processes have left",
			    "s3:ListBucketMultipartUploads" },
	[S3_PARTS_LIST] = { AWS_LIST_PARTS,
			    "tell uploads in parts of killed processes from those under way",
			    "s3:ListMultipartUploadParts" },
	[S3_PARTS_ABORT] = { AWS_ABORT_UPLOAD, "abort an upload in parts",
			     "s3:AbortMultipartUpload" },
};

void s3_parts_trial_release(struct s3_parts_trial *trial)
{
	for (size_t i = 0; i < S3_PARTS_STEPS; i++)
		err_free(trial->why[i]);
	free(trial->kms_key);
}

static bool pick_upload(void *arg, const char *path, const char *text, size_t len)
{
	char **id = arg;

	if (strcmp(path, "InitiateMultipartUploadResult/UploadId") == 0 && !*id)
		*id = mem_copy_n(text, len);
	return true;
}

/* Sends the request of a step; `id` NULL: it is about no upload. */
static int perform(struct aws *aws, const struct s3_place *place, enum s3_parts_step step,
		   const char *id, struct aws_reply *ret, struct err **err)
{
	AUTO(s3_request_release) struct s3_request request = { 0 };
	bool is_bucket = step == S3_PARTS_FIND;

	s3_request_begin(&request, aws, steps[step].operation, place->bucket,
			 is_bucket ? NULL : place->key);
	if (is_bucket)
		s3_request_param(&request, "prefix", place->key);
	else if (id)
		s3_request_param(&request, "uploadId", id);
	if (aws_perform(aws, &request.call, ret, err) < 0)
		return err_wrap(err, "cannot %s, which takes %s", steps[step].doing,
				steps[step].right);
	return 0;
}

static void begin(struct aws *aws, const struct s3_place *place, char **ret_id,
		  struct s3_parts_trial *ret)
{
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	struct err **why = &ret->why[S3_PARTS_BEGIN];
	char key[2048];

	if (perform(aws, place, S3_PARTS_BEGIN, NULL, &reply, why) < 0 ||
	    xml_parse(reply.http->body.text, reply.http->body.len, "the reply of s3", pick_upload,
		      ret_id, why) < 0)
		return;
	if (!*ret_id)
		err_set(why, EXIT_UNREACHABLE, "the reply of s3 names no upload");
	s3_header_text(reply.http, KMS_HEADER, key, sizeof key);
	if (*key)
		ret->kms_key = mem_copy(key);
}

void s3_parts_try(struct aws *aws, const struct s3_place *place, bool finds,
		  struct s3_parts_trial *ret)
{
	AUTO(auto_free) char *id = NULL;

	*ret = (struct s3_parts_trial){ 0 };
	begin(aws, place, &id, ret);
	if (ret->why[S3_PARTS_BEGIN])
		return;
	for (enum s3_parts_step step = S3_PARTS_FIND; step < S3_PARTS_STEPS; step++) {
		AUTO(aws_reply_release) struct aws_reply reply = { 0 };

		if (step != S3_PARTS_FIND || finds)
			(void)!perform(aws, place, step, id, &reply, &ret->why[step]);
	}
}
