/*
 * Digests from any registry with the OCI distribution API: see image.h. A registry's answers are
 * outside text: digest, token and the URL of the token server are checked before use.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/auth/endpoint.h"
#include "aws/aws.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/http/http.h"
#include "aws/image/image_internal.h"
#include "jobs/base/process/cancel.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"

#define HUB          "docker.io"
#define MANIFEST_MAX ((size_t)4 << 20) /* size that registries must accept at least */
#define OTHER_MAX    ((size_t)1 << 20) /* a token, or a config */

static const char accepted[] = "application/vnd.oci.image.index.v1+json, "
			       "application/vnd.docker.distribution.manifest.list.v2+json, "
			       "application/vnd.oci.image.manifest.v1+json, "
			       "application/vnd.docker.distribution.manifest.v2+json";

struct lookup {
	const struct image_name *image;
	struct http *http;
	const char *host;
	char *url;   /* URL of the manifest */
	char *token; /* NULL: none was requested */
	struct mono until;
};

static void lookup_release(struct lookup *lookup)
{
	http_freep(&lookup->http);
	free(lookup->url);
	secret_freep(&lookup->token);
}

static int unreachable(const struct lookup *lookup, const struct http_reply *reply,
		       struct err **err)
{
	err_set(err, EXIT_UNREACHABLE, "cannot ask the registry '%s': %s", lookup->host,
		reply->why);
	return err_hint(err, reply->failure == HTTP_TLS
				     ? "name the certificates of its authority in SSL_CERT_FILE"
				     : "check the network, and HTTPS_PROXY");
}

static int wants_login(const struct lookup *lookup, struct err **err)
{
	err_set(err, EXIT_REFUSED,
		"the registry '%s' requires a login for '%.200s', and stoker has none",
		lookup->host, lookup->image->repository);
	return err_hint(err, "correct 'image' if the name is wrong");
}

/* Sets the error for a status that is not an answer. */
static int refused(const struct lookup *lookup, long status, struct err **err)
{
	if (status == 404)
		return image_absent(lookup->image, err);
	if (status == 401 || status == 403)
		return wants_login(lookup, err);
	err_set(err, status == 429 || status >= 500 ? EXIT_UNREACHABLE : EXIT_REFUSED,
		"the registry '%s' answers with status %ld", lookup->host, status);
	return err_hint(
		err, status == 429 ? "try again later; the registry takes no more requests for now"
				   : "check that the registry has the OCI distribution API");
}

/* Performs one transfer, until the time is over or the process is told to stop waiting. */
static void get(const struct lookup *lookup, const char *method, const char *url,
		bool of_the_manifest, struct http_reply *ret)
{
	AUTO(secret_freep)
	char *bearer =
		lookup->token && of_the_manifest ? mem_format("Bearer %s", lookup->token) : NULL;
	const struct sigv4_pair headers[] = { { "Accept", of_the_manifest ? accepted : "*/*" },
					      { "Authorization", bearer } };
	struct http_request request = {
		.method = method,
		.url = url,
		.headers = headers,
		.header_count = bearer ? 2 : 1,
		.body_fd = -1,
		.reply_max = of_the_manifest ? MANIFEST_MAX : OTHER_MAX,
		.secret = !of_the_manifest,
	};
	int64_t left = lookup->until.ms - clock_mono_now().ms;

	request.connect_ms = request.silent_ms = request.total_ms = left > 1 ? left : 1;
	http_perform(lookup->http, &request, cancel_is_due, ret);
}

/* ---- anonymous token ---------------------------------------------------------------- */

/* Returns the value of a parameter of a challenge: `realm="…"`. The caller frees it; NULL if
 * absent. */
static char *parameter(const char *challenge, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = challenge; *at;) {
		size_t word;
		struct sb value = SB_INIT_MAX(4096);
		bool found;

		at += strspn(at, " \t,");
		word = strcspn(at, "=, \t");
		found = word == len && strncasecmp(at, name, len) == 0 && at[word] == '=';
		at += word;
		if (*at != '=')
			continue;
		if (*++at == '"') {
			for (at++; *at && *at != '"'; at++) {
				at += *at == '\\' && at[1] ? 1 : 0;
				sb_addc(&value, *at);
			}
			at += *at ? 1 : 0;
		} else {
			sb_add(&value, at, strcspn(at, ", \t"));
			at += value.len;
		}
		if (found)
			return sb_take(&value);
		sb_release(&value);
	}
	return NULL;
}

/* Returns the URL of the token server; NULL if the challenge is of another kind. The caller frees
 * it. */
static char *token_url(const struct lookup *lookup, const char *challenge)
{
	AUTO(auto_free) char *realm = NULL;
	AUTO(auto_free) char *service = NULL;
	AUTO(auto_free) char *scope = NULL;
	AUTO(sb_release) struct sb query = SB_INIT_MAX(8192);
	struct sigv4_pair params[2];
	size_t count = 0;

	if (strncasecmp(challenge, "Bearer ", 7) != 0)
		return NULL;
	realm = parameter(challenge + 7, "realm");
	service = parameter(challenge + 7, "service");
	scope = parameter(challenge + 7, "scope");
	if (!realm || !text_starts(realm, "https://") || strpbrk(realm, " \t\r\n#"))
		return NULL;
	if (!scope)
		scope = mem_format("repository:%s:pull", lookup->image->repository);
	if (service)
		params[count++] = (struct sigv4_pair){ "service", service };
	params[count++] = (struct sigv4_pair){ "scope", scope };
	endpoint_params(&query, params, count);
	return mem_format("%s%c%s", realm, strchr(realm, '?') ? '&' : '?', query.text);
}

static bool is_token(const char *text)
{
	if (!text || !*text)
		return false;
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	return true;
}

static int get_token(struct lookup *lookup, const char *challenge, struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };
	AUTO(secret_json_freep) json_t *object = NULL;
	AUTO(err_freep) struct err *none = NULL;
	AUTO(auto_free) char *url = token_url(lookup, challenge);
	const char *token;

	if (!url)
		return wants_login(lookup, err);
	get(lookup, "GET", url, false, &reply);
	if (reply.failure != HTTP_OK)
		return unreachable(lookup, &reply, err);
	if (reply.status != 200)
		return refused(lookup, reply.status == 404 ? 401 : reply.status, err);
	if (js_parse(reply.body.text, reply.body.len, "a token", &object, &none) < 0)
		return wants_login(lookup, err);
	token = js_str(object, "token");
	if (!token)
		token = js_str(object, "access_token");
	if (!is_token(token))
		return wants_login(lookup, err);
	lookup->token = mem_copy(token);
	return 0;
}

/* ---- the manifest ------------------------------------------------------------------- */

/* Requests the manifest, with a token if the registry wants one. */
static int request_manifest(struct lookup *lookup, const char *method, struct http_reply *ret,
			    struct err **err)
{
	AUTO(sb_release) struct sb challenge = SB_INIT_MAX(8192);

	get(lookup, method, lookup->url, true, ret);
	if (ret->failure == HTTP_OK && ret->status == 401 && !lookup->token &&
	    http_header(ret, "WWW-Authenticate", &challenge)) {
		if (get_token(lookup, challenge.text, err) < 0)
			return -1;
		http_reply_release(ret);
		*ret = (struct http_reply){ .body = SB_INIT, .headers = SB_INIT };
		get(lookup, method, lookup->url, true, ret);
	}
	if (ret->failure != HTTP_OK)
		return unreachable(lookup, ret, err);
	return ret->status == 200 ? 0 : refused(lookup, ret->status, err);
}

/* A registry may omit the digest, and may not support HEAD: the digest is computed from the
 * bytes. */
static int digest_of_bytes(struct lookup *lookup, char ret[IMAGE_DIGEST], struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };

	if (request_manifest(lookup, "GET", &reply, err) < 0)
		return -1;
	memcpy(ret, IMAGE_DIGEST_PREFIX, strlen(IMAGE_DIGEST_PREFIX));
	hash_sha256_hex(reply.body.text, reply.body.len, ret + strlen(IMAGE_DIGEST_PREFIX));
	return 0;
}

static int begin(const struct image_name *image, struct lookup *ret, struct err **err)
{
	const struct http_settings settings = { .ca_bundle = aws_ca_bundle(), .connections = 1 };

	/* Docker Hub's API has another host than the one in its image names. */
	if (strcmp(image->host, HUB) == 0) {
		err_set(err, EXIT_REFUSED, "the digest of '%.200s' is not resolved at Docker Hub",
			image->repository);
		return err_hint(err,
				"write 'image' with its digest: NAME@sha256:…, as 'docker images "
				"--digests' shows it");
	}
	*ret = (struct lookup){ .image = image,
				.host = image->host,
				.until = { clock_mono_now().ms + image->timeout_ms } };
	return http_new(&settings, &ret->http, err);
}

int image_registry_digest(const struct image_name *image, char ret[IMAGE_DIGEST], struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };
	AUTO(lookup_release) struct lookup lookup = { 0 };
	AUTO(sb_release) struct sb digest = SB_INIT_MAX(256);
	AUTO(err_freep) struct err *no_head = NULL;

	if (begin(image, &lookup, err) < 0)
		return -1;
	lookup.url = mem_format("https://%s/v2/%s/manifests/%s", lookup.host, image->repository,
				image->tag);
	if (request_manifest(&lookup, "HEAD", &reply, &no_head) < 0) {
		if (reply.status == 405 || reply.status == 501)
			return digest_of_bytes(&lookup, ret, err);
		*err = TAKE(no_head);
		return -1;
	}
	if (!http_header(&reply, "Docker-Content-Digest", &digest) || !image_is_digest(digest.text))
		return digest_of_bytes(&lookup, ret, err);
	memcpy(ret, digest.text, IMAGE_DIGEST);
	return 0;
}

/* ---- manifests and blobs ------------------------------------------------------------ */

static void set_url(struct lookup *lookup, const char *what, const char *digest)
{
	free(lookup->url);
	lookup->url = mem_format("https://%s/v2/%s/%s/%s", lookup->host, lookup->image->repository,
				 what, digest);
}

static int read_manifest(void *arg, const char *digest, struct sb *ret, struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };
	struct lookup *lookup = arg;

	set_url(lookup, "manifests", digest);
	if (request_manifest(lookup, "GET", &reply, err) < 0)
		return -1;
	sb_add(ret, reply.body.text, reply.body.len);
	return 0;
}

static bool is_elsewhere(const struct http_reply *reply)
{
	return reply->failure == HTTP_OK &&
	       (reply->status == 301 || reply->status == 302 || reply->status == 303 ||
		reply->status == 307 || reply->status == 308);
}

/* Most registries keep blobs on another host. The token is for the registry alone. */
static int read_blob(void *arg, const char *digest, struct sb *ret, struct err **err)
{
	AUTO(http_reply_release) struct http_reply reply = { .body = SB_INIT, .headers = SB_INIT };
	AUTO(sb_release) struct sb place = SB_INIT_MAX(16384);
	AUTO(err_freep) struct err *why = NULL;
	struct lookup *lookup = arg;

	set_url(lookup, "blobs", digest);
	if (request_manifest(lookup, "GET", &reply, &why) < 0 && !is_elsewhere(&reply)) {
		*err = TAKE(why);
		return -1;
	}
	if (is_elsewhere(&reply)) {
		if (!http_header(&reply, "Location", &place) ||
		    !text_starts(place.text, "https://"))
			return err_set(err, EXIT_REFUSED,
				       "the registry '%s' has the image's config at no usable URL",
				       lookup->host);
		http_reply_release(&reply);
		reply = (struct http_reply){ .body = SB_INIT, .headers = SB_INIT };
		get(lookup, "GET", place.text, false, &reply);
		if (reply.failure != HTTP_OK)
			return unreachable(lookup, &reply, err);
		if (reply.status != 200)
			return refused(lookup, reply.status, err);
	}
	sb_add(ret, reply.body.text, reply.body.len);
	return 0;
}

int image_registry_read(const struct image_name *image, const struct image_question *question,
			json_t **ret, struct err **err)
{
	AUTO(lookup_release) struct lookup lookup = { 0 };
	const struct image_reader reader = { read_manifest, read_blob, &lookup };

	return begin(image, &lookup, err) < 0 ? -1 : question->read(&reader, question, ret, err);
}
