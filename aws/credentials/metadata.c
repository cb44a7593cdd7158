/* Sessions of the instance metadata service: see metadata.h. */
#include "aws/credentials/metadata.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/credentials/profile.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/http/patience.h"
#include "jobs/base/text/text.h"

#define ADDRESS      "http://169.254.169.254"
#define ADDRESS_IPV6 "http://[fd00:ec2::254]"
#define TOKEN_LIFE   "21600" /* s */
#define REPLY_MAX    ((size_t)64 << 10)
#define TYPE_PATH    "/latest/meta-data/instance-type"
#define TYPE_MAX     64

struct metadata {
	struct http *http;
	char *base;      /* without a slash at the end */
	int64_t timeout; /* ms */
	int tries;
	char *token; /* owned, wiped */
};

void metadata_freep(struct metadata **metadata)
{
	if (!*metadata)
		return;
	http_freep(&(*metadata)->http);
	free((*metadata)->base);
	secret_freep(&(*metadata)->token);
	free(*metadata);
	*metadata = NULL;
}

/* Returns the environment's setting if present, else the profile's. */
static const char *setting(const char *profile, const char *variable, const char *key)
{
	return variable ? variable : aws_config_value(profile, key);
}

/* Parses a whole number; returns `fallback` if the text is absent or not a number. */
static int64_t number(const char *text, int64_t fallback, int64_t max)
{
	double value = 0;

	if (!text || text_float(text, strlen(text), &value) != strlen(text) || value < 1)
		return fallback;
	return value > (double)max ? max : (int64_t)value;
}

static int prepare(const char *profile, struct metadata *ret, struct err **err)
{
	const struct http_settings settings = { .connections = 1 };
	const char *base = setting(profile, aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
				   "ec2_metadata_service_endpoint");
	const char *mode = setting(profile, aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"),
				   "ec2_metadata_service_endpoint_mode");
	size_t len;

	if (!base)
		base = mode && strcasecmp(mode, "ipv6") == 0 ? ADDRESS_IPV6 : ADDRESS;
	if (!text_starts(base, "http://") && !text_starts(base, "https://")) {
		err_set(err, EXIT_REFUSED, "AWS_EC2_METADATA_SERVICE_ENDPOINT is no URL");
		return err_hint(err, "write it as in " ADDRESS);
	}
	for (len = strlen(base); base[len - 1] == '/';)
		len--;
	ret->base = mem_copy_n(base, len);
	ret->timeout = 1000 * number(setting(profile, aws_env("AWS_METADATA_SERVICE_TIMEOUT"),
					     "metadata_service_timeout"),
				     1, 60);
	ret->tries = (int)number(setting(profile, aws_env("AWS_METADATA_SERVICE_NUM_ATTEMPTS"),
					 "metadata_service_num_attempts"),
				 1, 20);
	return http_new(&settings, &ret->http, err);
}

/* Repeats the request until a reply has a status below 500, `tries` times at most. */
static void request_metadata(const struct metadata *metadata, const char *method, const char *path,
			     const struct sigv4_pair *header, struct http_reply *ret)
{
	AUTO(auto_free) char *url = mem_format("%s%s", metadata->base, path);
	const struct http_request request = { .method = method,
					      .url = url,
					      .headers = header,
					      .header_count = 1,
					      .body_fd = -1,
					      .reply_max = REPLY_MAX,
					      .connect_ms = metadata->timeout,
					      .silent_ms = metadata->timeout,
					      .total_ms = metadata->timeout * 2,
					      .direct = true };

	for (int tries = 0; tries < metadata->tries; tries++) {
		if (tries > 0 && patience_left() == 0)
			return;
		if (tries > 0)
			http_reply_release(ret);
		http_perform(metadata->http, &request, NULL, ret);
		if (ret->failure == HTTP_OK && ret->status < 500)
			return;
	}
}

int metadata_wrong(const struct http_reply *reply, const char *what, struct err **err)
{
	if (reply->failure != HTTP_OK) {
		err_set(err, EXIT_UNREACHABLE, "the instance metadata service gave no %s: %s", what,
			reply->why);
		return err_hint(err, "raise AWS_METADATA_SERVICE_TIMEOUT or "
				     "AWS_METADATA_SERVICE_NUM_ATTEMPTS");
	}
	err_set(err, reply->status >= 500 ? EXIT_UNREACHABLE : EXIT_REFUSED,
		"the instance metadata service answered %ld when asked for %s", reply->status,
		what);
	return err_hint(err, "check the instance's metadata options");
}

void metadata_get(const struct metadata *metadata, const char *path, struct http_reply *ret)
{
	const struct sigv4_pair session = { "x-aws-ec2-metadata-token", metadata->token };

	request_metadata(metadata, "GET", path, &session, ret);
}

/* Gets the session's token. */
static int begin(struct metadata *metadata, char **ret_why, struct err **err)
{
	static const struct sigv4_pair life = { "x-aws-ec2-metadata-token-ttl-seconds",
						TOKEN_LIFE };
	AUTO(http_reply_release) struct http_reply reply = { 0 };

	request_metadata(metadata, "PUT", "/latest/api/token", &life, &reply);
	if (reply.failure != HTTP_OK) {
		*ret_why = mem_format("no instance metadata service: %s", reply.why);
		return 0;
	}
	if (reply.status == 403 || reply.status == 404 || reply.status == 405) {
		err_set(err, EXIT_REFUSED,
			"the instance metadata service answered %ld to IMDSv2, and IMDSv1 is not "
			"used",
			reply.status);
		return err_hint(err,
				"allow IMDSv2 on this instance, for containers with a hop limit "
				"of 2; elsewhere set AWS_EC2_METADATA_DISABLED=true");
	}
	if (reply.status != 200)
		return metadata_wrong(&reply, "a session token", err);
	metadata->token = mem_copy_n(reply.body.text, strcspn(reply.body.text, "\r\n"));
	explicit_bzero(reply.body.text, reply.body.len);
	return 1;
}

int metadata_open(const char *profile, struct metadata **ret, char **ret_why, struct err **err)
{
	AUTO(metadata_freep) struct metadata *metadata = mem_zero(1, sizeof *metadata);
	int outcome;

	*ret_why = NULL;
	if (aws_env_true("AWS_EC2_METADATA_DISABLED")) {
		*ret_why = mem_copy("AWS_EC2_METADATA_DISABLED is true");
		return 0;
	}
	if (prepare(profile, metadata, err) < 0)
		return -1;
	outcome = begin(metadata, ret_why, err);
	if (outcome > 0)
		*ret = TAKE(metadata);
	return outcome;
}

int metadata_instance_type(char **ret, char **ret_why, struct err **err)
{
	AUTO(metadata_freep) struct metadata *metadata = NULL;
	AUTO(http_reply_release) struct http_reply reply = { 0 };
	int outcome = metadata_open(aws_profile(), &metadata, ret_why, err);
	size_t len;

	if (outcome <= 0)
		return outcome;
	metadata_get(metadata, TYPE_PATH, &reply);
	len = reply.failure == HTTP_OK && reply.status == 200 ? strcspn(reply.body.text, "\r\n")
							      : 0;
	if (len == 0 || len > TYPE_MAX)
		return metadata_wrong(&reply, "the instance's type", err);
	*ret = mem_copy_n(reply.body.text, len);
	return 1;
}
