/* Digests of private registries of Amazon ECR: see image.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/auth/endpoint.h"
#include "aws/aws.h"
#include "aws/credentials/settings.h"
#include "aws/http/http.h"
#include "aws/image/image_internal.h"
#include "jobs/base/text/text.h"

#define ACCOUNT 12 /* digits */

/* Media types accepted for a tag, so that the digest is the one that a pull by the tag gets. */
static const char *const accepted[] = {
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.v1+prettyjws",
	"application/vnd.docker.distribution.manifest.v1+json",
};

/* Host names: the text between account and region, and the text after the region. The older form
 * has the partition's own domain, the dual-stack form another. */
static const struct form {
	const char *before, *after; /* after: NULL is a dot and the partition's domain */
} forms[] = {
	{ ".dkr.ecr.", NULL },
	{ ".dkr.ecr-fips.", NULL },
	{ ".dkr-ecr.", ".on.aws" },
	{ ".dkr-ecr-fips.", ".on.aws" },
	{ ".dkr-ecr.", ".on.amazonwebservices.com.cn" },
};

/* Returns the region between the two; NULL if the host has another form. */
static char *region_of(const char *host, const struct form *form)
{
	const char *at = host + ACCOUNT;
	AUTO(auto_free) char *region = NULL;
	AUTO(auto_free) char *behind = NULL;

	if (!text_starts(at, form->before))
		return NULL;
	at += strlen(form->before);
	region = mem_copy_n(at, strcspn(at, "."));
	behind = form->after ? mem_copy(form->after) : mem_format(".%s", endpoint_domain(region));
	return *region && strcmp(at + strlen(region), behind) == 0 ? TAKE(region) : NULL;
}

bool image_ecr_host(const char *host, char **ret_account, char **ret_region)
{
	if (strspn(host, "0123456789") != ACCOUNT)
		return false;
	for (size_t i = 0; i < STK_LENGTH(forms); i++) {
		char *region = region_of(host, &forms[i]);

		if (!region)
			continue;
		*ret_account = mem_copy_n(host, ACCOUNT);
		*ret_region = region;
		return true;
	}
	return false;
}

static bool is_denied(const struct aws_reply *reply)
{
	return strcmp(reply->code, "AccessDeniedException") == 0;
}

static bool is_absent(const char *code)
{
	return strcmp(code, "RepositoryNotFoundException") == 0 ||
	       strcmp(code, "ImageNotFoundException") == 0 || strcmp(code, "ImageNotFound") == 0;
}

static int copy_digest(const char *digest, char ret[IMAGE_DIGEST], struct err **err)
{
	if (!digest || !image_is_digest(digest)) {
		err_set(err, EXIT_UNREACHABLE, "the reply of ECR names no digest");
		return err_hint(err, "check that AWS_ENDPOINT_URL leads to the service");
	}
	memcpy(ret, digest, IMAGE_DIGEST);
	return 0;
}

/* BatchGetImage also answers 200 if the image does not exist. */
static int read_batch(const struct image_name *image, const json_t *reply, char ret[IMAGE_DIGEST],
		      struct err **err)
{
	const json_t *failure = json_array_get(json_object_get(reply, "failures"), 0);
	const json_t *found = json_array_get(json_object_get(reply, "images"), 0);
	const char *code = js_str(failure, "failureCode"), *why = js_str(failure, "failureReason");

	if (!found && code && is_absent(code))
		return image_absent(image, err);
	if (!found && code) {
		err_set(err, EXIT_REFUSED, "ECR does not return the image: %.80s%s%.200s", code,
			why ? ": " : "", why ? why : "");
		return err_hint(err, "check the image in ECR");
	}
	return copy_digest(js_str(json_object_get(found, "imageId"), "imageDigest"), ret, err);
}

static int call_ecr(struct aws *aws, enum aws_operation operation, const struct image_name *image,
		    const char *region, const json_t *body, struct aws_reply *reply,
		    struct err **err)
{
	const struct aws_call call = { .operation = operation,
				       .body_fd = -1,
				       .json = body,
				       .region = region,
				       .silent_ms = image->timeout_ms,
				       .again_ms = image->timeout_ms };

	if (aws_perform(aws, &call, reply, err) == 0)
		return 0;
	if (!is_absent(reply->code))
		return -1;
	err_freep(err);
	return image_absent(image, err);
}

static json_t *accepted_types(void)
{
	json_t *types = json_array();

	for (size_t i = 0; i < STK_LENGTH(accepted); i++)
		json_array_append_new(types, json_string(accepted[i]));
	return types;
}

static json_t *request_for(const struct image_name *image, const char *account, const char *by,
			   const char *what)
{
	return json_pack("{s:s, s:s, s:[{s:s}]}", "registryId", account, "repositoryName",
			 image->repository, "imageIds", by, what);
}

/* The statement in the hint is that of the first call, for the environment needs it, too. */
static int either_right(const struct err *first, struct err **err)
{
	return err_hint(err, "allow ecr:BatchGetImage or ecr:DescribeImages on the repository; %s",
			first->hint);
}

int image_ecr_digest(const struct image_name *image, const char *account, const char *region,
		     char ret[IMAGE_DIGEST], struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(aws_reply_release) struct aws_reply pulled = { 0 };
	AUTO(aws_reply_release) struct aws_reply described = { 0 };
	AUTO(err_freep) struct err *denied = NULL;
	json_auto_t *body = request_for(image, account, "imageTag", image->tag);
	json_auto_t *pull = json_copy(body);

	js_put(pull, "acceptedMediaTypes", accepted_types());
	if (aws_open(&aws, err) < 0)
		return -1;
	if (call_ecr(aws, AWS_BATCH_GET_IMAGE, image, region, pull, &pulled, err) == 0)
		return read_batch(image, pulled.json, ret, err);
	if (!is_denied(&pulled))
		return -1;
	denied = TAKE(*err);
	if (call_ecr(aws, AWS_DESCRIBE_IMAGES, image, region, body, &described, err) < 0)
		return is_denied(&described) ? either_right(denied, err) : -1;
	return copy_digest(
		js_str(json_array_get(json_object_get(described.json, "imageDetails"), 0),
		       "imageDigest"),
		ret, err);
}

/* ---- manifests and blobs ------------------------------------------------------------ */

struct image_ecr_reading {
	struct aws *aws;
	const struct image_name *image;
	const char *account, *region;
};

static int read_manifest(void *arg, const char *digest, struct sb *ret, struct err **err)
{
	const struct image_ecr_reading *reading = arg;
	json_auto_t *body = request_for(reading->image, reading->account, "imageDigest", digest);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	const char *text;

	js_put(body, "acceptedMediaTypes", accepted_types());
	if (call_ecr(reading->aws, AWS_BATCH_GET_IMAGE, reading->image, reading->region, body,
		     &reply, err) < 0)
		return -1;
	text = js_str(json_array_get(json_object_get(reply.json, "images"), 0), "imageManifest");
	if (!text)
		return image_absent(reading->image, err);
	sb_adds(ret, text);
	return 0;
}

/* Follows ECR's link. The link holds a signature, so no error shows it. */
static int follow(const struct image_ecr_reading *reading, const char *url, struct sb *ret,
		  struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };
	const struct http_settings settings = { .ca_bundle = aws_ca_bundle(), .connections = 1 };
	AUTO(http_freep) struct http *http = NULL;
	const struct http_request request = { .method = "GET",
					      .url = url,
					      .body_fd = -1,
					      .reply_max = IMAGE_TEXT_MAX,
					      .total_ms = reading->image->timeout_ms };

	if (http_new(&settings, &http, err) < 0)
		return -1;
	http_perform(http, &request, NULL, &reply);
	if (reply.failure != HTTP_OK)
		return err_set(err, EXIT_UNREACHABLE, "cannot fetch the image's config: %s",
			       reply.why);
	if (reply.status != 200)
		return err_set(err, EXIT_REFUSED, "status %ld for the image's config",
			       reply.status);
	sb_add(ret, reply.body.text, reply.body.len);
	return 0;
}

static int read_blob(void *arg, const char *digest, struct sb *ret, struct err **err)
{
	const struct image_ecr_reading *reading = arg;
	json_auto_t *body =
		json_pack("{s:s, s:s, s:s}", "registryId", reading->account, "repositoryName",
			  reading->image->repository, "layerDigest", digest);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	const char *url;

	if (call_ecr(reading->aws, AWS_GET_DOWNLOAD_URL_FOR_LAYER, reading->image, reading->region,
		     body, &reply, err) < 0)
		return -1;
	url = js_str(reply.json, "downloadUrl");
	if (!url)
		return err_set(err, EXIT_UNREACHABLE, "the reply of ECR names no link");
	return follow(reading, url, ret, err);
}

int image_ecr_read(const struct image_name *image, const char *account, const char *region,
		   const struct image_question *question, json_t **ret, struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	struct image_ecr_reading reading = { .image = image, .account = account, .region = region };
	const struct image_reader reader = { read_manifest, read_blob, &reading };

	if (aws_open(&aws, err) < 0)
		return -1;
	reading.aws = aws;
	return question->read(&reader, question, ret, err);
}
