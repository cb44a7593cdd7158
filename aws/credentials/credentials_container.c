/*
 * Keys of a container's role, from an agent beside it (ECS, AWS Batch, EKS Pod Identity). The
 * address comes from the environment, so it must not be a stranger's: https, this machine, or an
 * address of the container services.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/http/http.h"
#include "aws/http/patience.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"

#define ADDRESS   "http://169.254.170.2"
#define TIMEOUT   2000 /* ms */
#define TRIES     3
#define PAUSE     1000 /* ms */
#define REPLY_MAX ((size_t)64 << 10)
#define TOKEN_MAX ((size_t)16 << 10)

/* Copies the host of a URL, in lower case and without brackets; empty if there is none, or if the
 * authority holds more than a host. */
static void host_of(const char *url, char *ret, size_t size)
{
	const char *begin = strstr(url, "://") + 3;
	size_t len = strcspn(begin, "/?#"), end;

	*ret = '\0';
	if (memchr(begin, '@', len) || memchr(begin, '\\', len))
		return;
	if (*begin == '[') {
		end = strcspn(++begin, "]");
		if (end >= len)
			return;
	} else {
		end = strcspn(begin, ":/?#");
	}
	if (end == 0 || end >= size)
		return;
	for (size_t i = 0; i < end; i++)
		ret[i] = (char)tolower((unsigned char)begin[i]);
	ret[end] = '\0';
}

static bool is_trusted_host(const char *host)
{
	static const char *const hosts[] = { "169.254.170.2", "169.254.170.23", "fd00:ec2::23",
					     "localhost" };
	struct in_addr four;
	struct in6_addr six;

	for (size_t i = 0; i < STK_LENGTH(hosts); i++)
		if (strcmp(host, hosts[i]) == 0)
			return true;
	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static int find_url(const char *relative, const char *whole, char **ret, struct err **err)
{
	char host[256];

	if (relative && *relative != '/') {
		err_set(err, EXIT_REFUSED,
			"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
		return err_hint(err, "the value is a path on " ADDRESS);
	}
	if (relative) {
		*ret = mem_format(ADDRESS "%s", relative);
		return 0;
	}
	if (!text_starts(whole, "http://") && !text_starts(whole, "https://")) {
		err_set(err, EXIT_REFUSED, "AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL");
		return err_hint(err, "write it as http://… or https://…");
	}
	host_of(whole, host, sizeof host);
	if (*host && (text_starts(whole, "https://") || is_trusted_host(host))) {
		*ret = mem_copy(whole);
		return 0;
	}
	err_set(err, EXIT_REFUSED,
		"AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that needs TLS");
	return err_hint(err,
			"use https, or a host among localhost, 169.254.170.2, 169.254.170.23 and "
			"fd00:ec2::23");
}

/* Finds the value of the Authorization header; NULL if none is sent. */
static int find_token(char **ret, struct err **err)
{
	const char *path = aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *token = aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	size_t len;

	*ret = NULL;
	if (path) {
		if (secret_read(path, TOKEN_MAX, ret, err) < 0)
			return err_wrap(err, "cannot read the container's token");
		if (!*ret) {
			err_set(err, EXIT_REFUSED, "the container's token file '%s' is missing",
				path);
			return err_hint(err, "correct AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
		}
	} else if (token) {
		*ret = mem_copy(token);
	}
	if (!*ret)
		return 0;
	for (len = strlen(*ret); len > 0 && isspace((unsigned char)(*ret)[len - 1]);)
		(*ret)[--len] = '\0';
	for (const char *c = *ret; *c; c++) {
		if ((unsigned char)*c >= ' ' && *c != 0x7f)
			continue;
		err_set(err, EXIT_REFUSED, "the container's token holds a control character");
		return err_hint(err, "correct AWS_CONTAINER_AUTHORIZATION_TOKEN or its file");
	}
	return 0;
}

/* Appends code and message of a JSON error, escaped for display; nothing of other texts. */
static void add_reason(const struct http_reply *reply, struct sb *ret)
{
	static const char *const keys[] = { "code", "message", "Code", "Message" };
	AUTO(err_freep) struct err *none = NULL;
	json_auto_t *object = NULL;

	if (js_parse(reply->body.text, reply->body.len, "a reply", &object, &none) < 0)
		return;
	for (size_t i = 0; i < STK_LENGTH(keys); i++) {
		const char *text = js_str(object, keys[i]);

		if (!text)
			continue;
		sb_adds(ret, ": ");
		text_escape(ret, text, strnlen(text, 200), false);
	}
}

/* Makes one attempt. Returns 1 on success, -1 with an error. */
static int try_once(struct http *http, const struct http_request *request, struct credentials *ret,
		    struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { 0 };
	AUTO(sb_release) struct sb reason = SB_INIT_MAX(1024);

	http_perform(http, request, NULL, &reply);
	if (reply.failure != HTTP_OK) {
		err_set(err, EXIT_UNREACHABLE, "no answer: %s", reply.why);
		return err_hint(err, "check the address, and that it is reachable from here");
	}
	if (reply.status != 200) {
		add_reason(&reply, &reason);
		err_set(err, EXIT_REFUSED, "it answered %ld%s", reply.status, reason.text);
		return err_hint(err, "check that the container has a role, and may use it");
	}
	return credentials_from_json("its answer", reply.body.text, reply.body.len, "Token", ret,
				     err);
}

static int request_keys(const char *url, const char *token, struct credentials *ret,
			struct err **err)
{
	const struct sigv4_pair headers[] = { { "accept", "application/json" },
					      { "authorization", token } };
	const struct http_settings settings = { .ca_bundle = aws_ca_bundle(), .connections = 1 };
	const struct http_request request = { .method = "GET",
					      .url = url,
					      .headers = headers,
					      .header_count = token ? 2 : 1,
					      .body_fd = -1,
					      .reply_max = REPLY_MAX,
					      .connect_ms = TIMEOUT,
					      .silent_ms = TIMEOUT,
					      .total_ms = TIMEOUT * 2,
					      .direct = text_starts(url, "http://") };
	AUTO(http_freep) struct http *http = NULL;
	int outcome = -1;

	if (http_new(&settings, &http, err) < 0)
		return -1;
	for (int tries = 0; outcome < 0 && tries < (patience_is_limited() ? 1 : TRIES); tries++) {
		if (tries > 0) {
			err_freep(err);
			if (loop_pause(PAUSE, err) < 0)
				return -1;
		}
		outcome = try_once(http, &request, ret, err);
	}
	return outcome;
}

int credentials_provide_container(const struct provider_request *request, struct credentials *ret,
				  struct err **err)
{
	const char *relative = aws_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *whole = aws_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	AUTO(auto_free) char *url = NULL;
	AUTO(secret_freep) char *token = NULL;
	int outcome;

	if (!relative && !whole)
		return credentials_provide_nothing(request, "no container credentials");
	if (find_url(relative, whole, &url, err) < 0)
		return -1;
	if (find_token(&token, err) < 0)
		return -1;
	outcome = request_keys(url, token, ret, err);
	return outcome < 0 ? err_wrap(err, "cannot get the container's AWS credentials") : outcome;
}
