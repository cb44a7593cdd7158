/* GetSecretValue and GetParameter: see secrets.h. */
#include "aws/credentials/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials/secret.h"
#include "jobs/base/text/js.h"
#include "jobs/base/text/text.h"

#define MANAGER "secretsmanager:"
#define STORE   "ssm:"

bool aws_secret_is(const char *from)
{
	return text_starts(from, MANAGER) || text_starts(from, STORE);
}

/* Returns the region in arn:PARTITION:SERVICE:REGION:…; NULL if the name is not an ARN. The
 * caller frees it. */
static char *region_of(const char *name)
{
	const char *at = name;

	if (!text_starts(name, "arn:"))
		return NULL;
	for (int colons = 0; colons < 3 && at; colons++) {
		at = strchr(at, ':');
		at = at ? at + 1 : NULL;
	}
	return at && strcspn(at, ":") > 0 ? mem_copy_n(at, strcspn(at, ":")) : NULL;
}

/* The caller owns the reply's JSON and wipes it. */
static int call_service(enum aws_operation operation, const char *name, json_t *body, json_t **ret,
			struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	AUTO(auto_free) char *region = region_of(name);
	struct aws_call call = { .operation = operation, .body_fd = -1, .json = body };
	int outcome;

	call.region = region;
	if (aws_open(&aws, err) < 0)
		return -1;
	outcome = aws_perform(aws, &call, &reply, err);
	if (reply.http && reply.http->body.len > 0)
		explicit_bzero(reply.http->body.text, reply.http->body.len);
	*ret = TAKE(reply.json);
	return outcome;
}

/* Copies a JSON text; an error if a variable cannot hold it. */
static int copy_text(const json_t *value, size_t max, char **ret, struct err **err)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (!text || len == 0) {
		err_set(err, EXIT_REFUSED, "empty");
		return err_hint(err, "give the secret a value there");
	}
	if (len > max) {
		err_set(err, EXIT_REFUSED, "longer than %zu KiB", max >> 10);
		return err_hint(
			err,
			"let the script read the secret itself; it is too long for a variable");
	}
	if (strlen(text) != len) {
		err_set(err, EXIT_REFUSED, "a NUL byte in it");
		return err_hint(err, "keep the secret as text; a variable cannot hold it");
	}
	*ret = mem_copy_n(text, len);
	return 0;
}

static int copy_member(const char *text, const char *key, size_t max, char **ret, struct err **err)
{
	AUTO(secret_json_freep) json_t *object = NULL;
	AUTO(secret_json_freep) json_t *word = NULL;
	AUTO(secret_freep) char *number = NULL;
	const json_t *value;

	if (js_parse(text, strlen(text), "it", &object, err) < 0 || !json_is_object(object)) {
		err_freep(err);
		err_set(err, EXIT_REFUSED, "not a JSON object, and so without a key '%.80s'", key);
		return err_hint(err, "remove the part from '#' on to get the whole secret");
	}
	value = json_object_get(object, key);
	if (json_is_string(value))
		return copy_text(value, max, ret, err);
	if (json_is_number(value) || json_is_boolean(value)) {
		number = js_line(value);
		word = json_string(number);
		return copy_text(word, max, ret, err);
	}
	err_set(err, EXIT_REFUSED,
		value ? "the key '%.80s' is neither a string nor a number" : "no key '%.80s'", key);
	return err_hint(err, "correct the part behind '#'");
}

static int read_manager(const char *from, size_t max, char **ret, struct err **err)
{
	const char *key = strchr(from, '#');
	AUTO(auto_free) char *name = mem_copy_n(from, key ? (size_t)(key - from) : strlen(from));
	json_auto_t *body = json_pack("{s:s}", "SecretId", name);
	AUTO(secret_json_freep) json_t *reply = NULL;
	AUTO(secret_freep) char *whole = NULL;
	const json_t *value;

	if (call_service(AWS_GET_SECRET_VALUE, name, body, &reply, err) < 0)
		return -1;
	value = json_object_get(reply, "SecretString");
	if (!value) {
		err_set(err, EXIT_REFUSED, "binary");
		return err_hint(
			err, "keep the secret as text (SecretString); a variable cannot hold it");
	}
	/* A short member may be part of a long secret. */
	if (copy_text(value, key ? (size_t)1 << 20 : max, &whole, err) < 0)
		return -1;
	if (key)
		return copy_member(whole, key + 1, max, ret, err);
	*ret = TAKE(whole);
	return 0;
}

static int read_store(const char *name, size_t max, char **ret, struct err **err)
{
	json_auto_t *body = json_pack("{s:s, s:b}", "Name", name, "WithDecryption", 1);
	AUTO(secret_json_freep) json_t *reply = NULL;

	if (call_service(AWS_GET_PARAMETER, name, body, &reply, err) < 0)
		return -1;
	return copy_text(js_path(reply, "Parameter.Value"), max, ret, err);
}

int aws_secret_read(const char *from, size_t max, char **ret, struct err **err)
{
	if (text_starts(from, MANAGER))
		return read_manager(from + strlen(MANAGER), max, ret, err);
	return read_store(from + strlen(STORE), max, ret, err);
}
