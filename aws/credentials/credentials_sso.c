/*
 * Keys of a role by IAM Identity Center ("aws sso login"). The login's token lies in a cache file
 * that all AWS tools share. It is renewed if possible (sso_session) and then written back,
 * because renewing may replace the refresh token. Asking a person to log in is left to 'aws sso
 * login'.
 */
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/date.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"

#define TOKEN_MAX ((size_t)256 << 10)
/* A token is renewed if less than this is left. */
#define WINDOW_MS ((int64_t)15 * 60 * 1000)

/* Settings of the profile and of the session it names. */
struct sso {
	const char *profile;
	const char *account, *role, *session; /* session NULL: the legacy format */
	const char *start_url, *region;
};

static int login_again(const struct sso *sso, struct err **err, const char *why)
{
	err_set(err, EXIT_REFUSED, "the AWS profile '%.80s' uses SSO, and %s", sso->profile, why);
	return err_hint(err, "run 'aws sso login --profile %.80s'", sso->profile);
}

static int incomplete(const struct sso *sso, struct err **err, const char *what)
{
	err_set(err, EXIT_REFUSED, "the AWS profile '%.80s' uses SSO, but %s", sso->profile, what);
	return err_hint(err,
			"correct the profile in '%s', or create it again with 'aws configure sso'",
			aws_config_path());
}

/* Reads a required key of the session or of the profile; if both have it, they must agree. */
static int shared_key(struct sso *sso, const char *key, const char **ret, struct err **err)
{
	const char *of_session =
		sso->session ? aws_section_value("sso-session", sso->session, key) : NULL;
	const char *of_profile = aws_config_value(sso->profile, key);
	AUTO(auto_free) char *what = NULL;

	if (of_session && of_profile && strcmp(of_session, of_profile) != 0) {
		what = mem_format("%s differs between the profile and its sso-session", key);
		return incomplete(sso, err, what);
	}
	*ret = of_session ? of_session : of_profile;
	if (*ret && **ret)
		return 0;
	what = mem_format("%s is missing", key);
	return incomplete(sso, err, what);
}

static int read_profile(struct sso *sso, struct err **err)
{
	if (!sso->account || !sso->role)
		return incomplete(sso, err,
				  sso->role ? "sso_account_id is missing"
					    : "sso_role_name is missing");
	if (sso->session && !aws_section_value("sso-session", sso->session, "sso_start_url")) {
		AUTO(auto_free)
		char *what =
			mem_format("no [sso-session %.80s] with an sso_start_url", sso->session);

		return incomplete(sso, err, what);
	}
	if (shared_key(sso, "sso_start_url", &sso->start_url, err) < 0 ||
	    shared_key(sso, "sso_region", &sso->region, err) < 0)
		return -1;
	return 0;
}

/* ---- the login's token ---------------------------------------------------------- */

static char *cache_path(const struct sso *sso)
{
	const char *name = sso->session ? sso->session : sso->start_url;
	char hex[SHA1_HEX];
	AUTO(auto_free) char *path = NULL;

	hash_sha1_hex(name, strlen(name), hex);
	path = mem_format("~/.aws/sso/cache/%s.json", hex);
	return aws_expand_path(path);
}

static int64_t left_ms(const json_t *token, const char *key)
{
	const char *text = js_str(token, key);
	struct utc at;

	return text && aws_date_iso(text, &at) ? at.ms - clock_utc_now().ms : -1;
}

static int load_token(const struct sso *sso, const char *path, json_t **ret, struct err **err)
{
	AUTO(secret_freep) char *text = NULL;

	if (secret_read(path, TOKEN_MAX, &text, err) < 0)
		return -1;
	if (!text)
		return login_again(sso, err, "no login yet");
	if (js_parse(text, strlen(text), "the cached login", ret, err) < 0 ||
	    !js_str(*ret, "accessToken") || !js_str(*ret, "expiresAt")) {
		err_freep(err);
		return login_again(sso, err, "the cached login cannot be read");
	}
	return 0;
}

/* Updates the token with the fields of the reply. */
static void renew_fields(const struct sso *sso, const json_t *reply, json_t *token)
{
	struct utc end = { clock_utc_now().ms + 1000 * js_int(reply, "expiresIn", 0) };
	char text[UTC_TEXT];

	js_put_str(token, "accessToken", js_str(reply, "accessToken"));
	js_put_str(token, "refreshToken", js_str(reply, "refreshToken"));
	js_put_str(token, "startUrl", sso->start_url);
	js_put_str(token, "region", sso->region);
	/* Whole seconds, as the other tools write them. */
	clock_utc_format(end, text);
	snprintf(text + 19, sizeof text - 19, "Z");
	js_put_str(token, "expiresAt", text);
}

/* Returns 1 if renewed; 0 if the token cannot be renewed; -1 without an answer, or if the wait
 * was given up. The caller then uses the rest of the token's life, if any. */
static int renew(const struct sso *sso, struct aws *aws, const char *path, json_t *token,
		 struct err **err)
{
	static const char *const needed[] = { "refreshToken", "clientId", "clientSecret" };
	struct aws_call call = AWS_CALL_INIT(CREATE_TOKEN);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(secret_json_freep) json_t *body = json_object();
	AUTO(secret_freep) char *text = NULL;

	if (!sso->session || left_ms(token, "registrationExpiresAt") <= 0)
		return 0;
	for (size_t i = 0; i < STK_LENGTH(needed); i++) {
		if (!js_str(token, needed[i]))
			return 0;
		js_put_str(body, needed[i], js_str(token, needed[i]));
	}
	js_put_str(body, "grantType", "refresh_token");
	call.region = sso->region;
	call.json = body;
	credentials_provide_limit(&call);
	if (aws_perform(aws, &call, &reply, err) < 0) {
		if ((*err)->code == EXIT_UNREACHABLE)
			return err_wrap(err,
					"cannot renew the SSO login of the AWS profile '%.80s'",
					sso->profile);
		err_freep(err);
		return 0;
	}
	if (!js_str(reply.json, "accessToken"))
		return 0;
	renew_fields(sso, reply.json, token);
	text = js_line(token);
	/* A failed write is ignored: this process can use the token all the same. */
	fs_write_atomic(path, text, strlen(text), 0600, &ignored);
	return 1;
}

/* ---- the role's keys ------------------------------------------------------------ */

/* The query is encoded when it is sent. */
static int get_keys(const struct sso *sso, struct aws *aws, const char *token,
		    struct credentials *ret, struct err **err)
{
	const struct sigv4_pair params[] = { { "account_id", sso->account },
					     { "role_name", sso->role } };
	const struct sigv4_pair header = { "x-amz-sso_bearer_token", token };
	struct aws_call call = AWS_CALL_INIT(GET_ROLE_CREDENTIALS);
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	const json_t *keys;
	struct given given;
	int outcome;

	call.region = sso->region;
	call.params = params;
	call.param_count = STK_LENGTH(params);
	call.headers = &header;
	call.header_count = 1;
	credentials_provide_limit(&call);
	if (aws_perform(aws, &call, &reply, err) < 0) {
		if (reply.status == 401) {
			err_freep(err);
			return login_again(sso, err, "the login is no longer accepted");
		}
		return err_wrap(err, "cannot get the keys of the SSO role '%.80s'", sso->role);
	}
	keys = json_object_get(reply.json, "roleCredentials");
	given = (struct given){ .access_key = js_str(keys, "accessKeyId"),
				.secret_key = js_str(keys, "secretAccessKey"),
				.token = js_str(keys, "sessionToken"),
				.account = sso->account };
	outcome = credentials_from_words("the reply of sso", &given, ret, err);
	if (outcome > 0)
		ret->expires.ms = js_int(keys, "expiration", 0);
	secret_json_freep(&reply.json);
	return outcome;
}

int credentials_provide_sso(const struct provider_request *request, struct credentials *ret,
			    struct err **err)
{
	struct sso sso = { .profile = request->profile,
			   .account = aws_config_value(request->profile, "sso_account_id"),
			   .role = aws_config_value(request->profile, "sso_role_name"),
			   .session = aws_config_value(request->profile, "sso_session") };
	AUTO(secret_json_freep) json_t *token = NULL;
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(auto_free) char *path = NULL;
	int renewed = 0;

	if (!sso.account && !sso.role)
		return 0;
	if (read_profile(&sso, err) < 0)
		return -1;
	path = cache_path(&sso);
	if (load_token(&sso, path, &token, err) < 0 || aws_open_keyless(&aws, err) < 0)
		return -1;
	if (left_ms(token, "expiresAt") < WINDOW_MS)
		renewed = renew(&sso, aws, path, token, err);
	if (renewed <= 0 && left_ms(token, "expiresAt") <= 0)
		return renewed < 0 ? -1 : login_again(&sso, err, "the login has expired");
	err_freep(err);
	return get_keys(&sso, aws, js_str(token, "accessToken"), ret, err);
}
