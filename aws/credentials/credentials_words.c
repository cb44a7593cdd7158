/* Conversion of a provider's text to credentials: see credentials_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/secret.h"
#include "aws/date.h"
#include "jobs/base/text/js.h"

/* Limits of credentials_provide_limit(). */
#define SILENT_MS 5000
#define AGAIN_MS  8000

void credentials_release(struct credentials *ret)
{
	secret_freep(&ret->access_key);
	secret_freep(&ret->secret_key);
	secret_freep(&ret->token);
	free(ret->account);
	*ret = (struct credentials){ 0 };
}

int credentials_provide_nothing(const struct provider_request *request, const char *fmt, ...)
{
	va_list args;

	if (!request->notes)
		return 0;
	if (request->notes->len > 0)
		sb_adds(request->notes, "; ");
	va_start(args, fmt);
	sb_addv(request->notes, fmt, args);
	va_end(args);
	return 0;
}

/* True if the text can go into a header: visible ASCII only, no blank. */
static bool is_word(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

/* Returns NULL if the text is empty. */
static const char *full(const char *text)
{
	return text && *text ? text : NULL;
}

static int no_word(const char *what, const char *name, struct err **err)
{
	err_set(err, EXIT_REFUSED, "the %s of %s holds a blank or a control character", name, what);
	return err_hint(err, "remove a blank or a line end that was copied along");
}

int credentials_from_words(const char *what, const struct given *given, struct credentials *ret,
			   struct err **err)
{
	const char *token = full(given->token), *expires = full(given->expires);
	const char *account = full(given->account);
	struct utc at = { 0 };

	if (!full(given->access_key) || !full(given->secret_key)) {
		err_set(err, EXIT_REFUSED, "%s gave no %s", what,
			full(given->access_key) ? "secret access key" : "access key id");
		return err_hint(err, "set both variables, or neither");
	}
	if (!is_word(given->access_key))
		return no_word(what, "access key id", err);
	if (!is_word(given->secret_key))
		return no_word(what, "secret access key", err);
	if (token && !is_word(token))
		return no_word(what, "session token", err);
	if (expires && !aws_date_iso(expires, &at)) {
		err_set(err, EXIT_REFUSED, "%s gave an unknown time for the end of its keys", what);
		return err_hint(err, "write the time as in 2026-11-22T12:00:00Z");
	}
	*ret = (struct credentials){
		.access_key = mem_copy(given->access_key),
		.secret_key = mem_copy(given->secret_key),
		.token = token ? mem_copy(token) : NULL,
		.expires = at,
		.account = account ? mem_copy(account) : NULL,
	};
	return 1;
}

int credentials_from_json(const char *what, char *text, size_t len, const char *token,
			  struct credentials *ret, struct err **err)
{
	AUTO(secret_json_freep) json_t *object = NULL;
	struct given given;
	int outcome = js_parse(text, len, what, &object, err);

	explicit_bzero(text, len);
	if (outcome < 0)
		return err_hint(err, "check that the source answers with one JSON object");
	given = (struct given){ .access_key = js_str(object, "AccessKeyId"),
				.secret_key = js_str(object, "SecretAccessKey"),
				.token = js_str(object, token),
				.expires = js_str(object, "Expiration"),
				.account = js_str(object, "AccountId") };
	return credentials_from_words(what, &given, ret, err);
}

int credentials_from_file(const struct provider_request *request, const char *path,
			  enum profile_file_kind kind, struct credentials *ret, struct err **err)
{
	AUTO(profile_freep) struct profile_file *file = NULL;
	AUTO(auto_free)
	char *what = mem_format("the profile '%.80s' in '%s'", request->profile, path);
	const char *names[] = { "aws_access_key_id", "aws_secret_access_key", "aws_session_token",
				"aws_security_token", "aws_account_id" };
	const char *values[STK_LENGTH(names)];
	struct given given;

	if (profile_read(path, kind, &file, err) < 0)
		return -1;
	for (size_t i = 0; i < STK_LENGTH(names); i++)
		values[i] = profile_value(file, "profile", request->profile, names[i]);
	if (!full(values[0]))
		return credentials_provide_nothing(
			request, "no keys of the profile '%.80s' in '%s'", request->profile, path);
	given = (struct given){ .access_key = values[0],
				.secret_key = values[1],
				.token = full(values[3]) ? values[3] : values[2],
				.account = values[4] };
	return credentials_from_words(what, &given, ret, err);
}

void credentials_provide_limit(struct aws_call *call)
{
	call->silent_ms = SILENT_MS;
	call->again_ms = AGAIN_MS;
}
