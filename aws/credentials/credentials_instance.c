/*
 * Keys of an instance's role, from its metadata service: version 2 alone, because its session
 * token cannot be had through a proxy or a confused server. If the service does not answer, this
 * machine is not an instance.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/http/http.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"

#define ADDRESS      "http://169.254.169.254"
#define ADDRESS_IPV6 "http://[fd00:ec2::254]"
#define ROLE_PATH    "/latest/meta-data/iam/security-credentials/"
#define TOKEN_LIFE   "21600" /* s */
#define REPLY_MAX    ((size_t)64 << 10)
/* During an outage the service keeps returning keys that have expired but are still accepted:
 * they are used that much longer. */
#define EXTENSION_MS ((int64_t)10 * 60 * 1000)

/* Connection to the metadata service: address, limits and session token. */
struct metadata {
	struct http *http;
	char *base;      /* without a slash at the end */
	int64_t timeout; /* ms */
	int tries;
	char *token; /* owned, wiped */
};

static void metadata_release(struct metadata *metadata)
{
	http_freep(&metadata->http);
	free(metadata->base);
	secret_freep(&metadata->token);
}

/* Returns the environment's setting if present, else the profile's. */
static const char *setting(const struct provider_request *request, const char *variable,
			   const char *key)
{
	return variable ? variable : aws_config_value(request->profile, key);
}

/* Parses a whole number; returns `fallback` if the text is absent or not a number. */
static int64_t number(const char *text, int64_t fallback, int64_t max)
{
	double value = 0;

	if (!text || text_float(text, strlen(text), &value) != strlen(text) || value < 1)
		return fallback;
	return value > (double)max ? max : (int64_t)value;
}

static int prepare(const struct provider_request *request, struct metadata *ret, struct err **err)
{
	const struct http_settings settings = { .connections = 1 };
	const char *base = setting(request, aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
				   "ec2_metadata_service_endpoint");
	const char *mode = setting(request, aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"),
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
	ret->timeout = 1000 * number(setting(request, aws_env("AWS_METADATA_SERVICE_TIMEOUT"),
					     "metadata_service_timeout"),
				     1, 60);
	ret->tries = (int)number(setting(request, aws_env("AWS_METADATA_SERVICE_NUM_ATTEMPTS"),
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
		if (tries > 0)
			http_reply_release(ret);
		http_perform(metadata->http, &request, NULL, ret);
		if (ret->failure == HTTP_OK && ret->status < 500)
			return;
	}
}

static int wrong(const struct http_reply *reply, const char *what, struct err **err)
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

/* Returns 1; 0 if the service is absent on this machine; -1 with an error. */
static int open_session(const struct provider_request *request, struct metadata *metadata,
			struct err **err)
{
	static const struct sigv4_pair life = { "x-aws-ec2-metadata-token-ttl-seconds",
						TOKEN_LIFE };
	AUTO(http_reply_release) struct http_reply reply = { 0 };

	request_metadata(metadata, "PUT", "/latest/api/token", &life, &reply);
	if (reply.failure != HTTP_OK)
		return credentials_provide_nothing(request, "no instance metadata service: %s",
						   reply.why);
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
		return wrong(&reply, "a session token", err);
	metadata->token = mem_copy_n(reply.body.text, strcspn(reply.body.text, "\r\n"));
	explicit_bzero(reply.body.text, reply.body.len);
	return 1;
}

/* Finds the role's name, which becomes part of a path. Returns 1; 0 if there is no role; -1 with
 * an error. */
static int find_role(const struct provider_request *request, const struct metadata *metadata,
		     char **ret, struct err **err)
{
	const struct sigv4_pair session = { "x-aws-ec2-metadata-token", metadata->token };
	AUTO(http_reply_release) struct http_reply reply = { 0 };
	struct sb path = SB_INIT;
	size_t len;

	request_metadata(metadata, "GET", ROLE_PATH, &session, &reply);
	if (reply.failure == HTTP_OK && reply.status == 404)
		return credentials_provide_nothing(request, "the instance has no role");
	if (reply.failure != HTTP_OK || reply.status != 200)
		return wrong(&reply, "its role", err);
	len = strcspn(reply.body.text, "\r\n");
	if (len == 0)
		return credentials_provide_nothing(request, "the instance has no role");
	sb_adds(&path, ROLE_PATH);
	sigv4_encode(&path, reply.body.text, len, false);
	*ret = sb_take(&path);
	return 1;
}

static int get_keys(const struct metadata *metadata, const char *path, struct credentials *ret,
		    struct err **err)
{
	const struct sigv4_pair session = { "x-aws-ec2-metadata-token", metadata->token };
	AUTO(http_reply_release) struct http_reply reply = { 0 };
	int64_t least = clock_utc_now().ms + EXTENSION_MS;

	request_metadata(metadata, "GET", path, &session, &reply);
	if (reply.failure != HTTP_OK || reply.status != 200)
		return wrong(&reply, "the keys of its role", err);
	if (credentials_from_json("the instance metadata service", reply.body.text, reply.body.len,
				  "Token", ret, err) < 0)
		return err_hint(err, "check that the instance's role trusts ec2.amazonaws.com");
	if (ret->expires.ms != 0 && ret->expires.ms <= clock_utc_now().ms)
		ret->expires.ms = least;
	return 1;
}

int credentials_provide_instance(const struct provider_request *request, struct credentials *ret,
				 struct err **err)
{
	AUTO(metadata_release) struct metadata metadata = { 0 };
	AUTO(auto_free) char *path = NULL;
	int outcome;

	if (aws_env_true("AWS_EC2_METADATA_DISABLED"))
		return credentials_provide_nothing(request, "AWS_EC2_METADATA_DISABLED is true");
	if (prepare(request, &metadata, err) < 0)
		return -1;
	outcome = open_session(request, &metadata, err);
	if (outcome > 0)
		outcome = find_role(request, &metadata, &path, err);
	return outcome > 0 ? get_keys(&metadata, path, ret, err) : outcome;
}
