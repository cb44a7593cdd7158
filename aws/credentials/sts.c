/* AssumeRole and AssumeRoleWithWebIdentity: see sts.h. */
#include "aws/credentials/sts.h"

#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/xml.h"

#define PARAMS_MAX 6

void sts_answer_release(struct sts_answer *answer)
{
	secret_freep(&answer->access_key);
	secret_freep(&answer->secret_key);
	secret_freep(&answer->token);
	secret_freep(&answer->expires);
	secret_freep(&answer->account);
	secret_freep(&answer->arn);
}

static bool pick(void *arg, const char *path, const char *text, size_t len)
{
	struct sts_answer *answer = arg;
	const struct {
		const char *name;
		char **place;
	} rows[] = {
		{ "Credentials/AccessKeyId", &answer->access_key },
		{ "Credentials/SecretAccessKey", &answer->secret_key },
		{ "Credentials/SessionToken", &answer->token },
		{ "Credentials/Expiration", &answer->expires },
		{ "Account", &answer->account },
		{ "Arn", &answer->arn },
	};
	size_t root = strlen(answer->root);

	if (strncmp(path, answer->root, root) != 0)
		return true;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		if (strcmp(path + root, rows[i].name) != 0 || *rows[i].place)
			continue;
		*rows[i].place = mem_copy_n(text, len);
	}
	return true;
}

/* STS is asked in the configured region; without one, in that of the global endpoint. */
static const char *region(void)
{
	AUTO(err_freep) struct err *none = NULL;
	const char *set = aws_region(&none);

	return set ? set : "us-east-1";
}

int sts_call(sts_open_fn open_client, struct aws_call *call, struct sts_answer *answer,
	     struct err **err)
{
	AUTO(aws_freep) struct aws *aws = NULL;
	AUTO(aws_reply_release) struct aws_reply reply = { 0 };
	int outcome;

	call->region = region();
	credentials_provide_limit(call);
	if (open_client(&aws, err) < 0 || aws_perform(aws, call, &reply, err) < 0)
		return -1;
	outcome = xml_parse(reply.http->body.text, reply.http->body.len, "the reply of sts", pick,
			    answer, err);
	explicit_bzero(reply.http->body.text, reply.http->body.len);
	return outcome;
}

static void add(struct aws_call *call, struct sigv4_pair *params, const char *name,
		const char *value)
{
	if (value)
		params[call->param_count++] = (struct sigv4_pair){ name, value };
}

static int assume(enum aws_operation operation, const struct sts_role *role,
		  const struct sigv4_identity *as, const char *token, struct credentials *ret,
		  struct err **err)
{
	AUTO(sts_answer_release)
	struct sts_answer answer = { .root = token ? "AssumeRoleWithWebIdentityResponse/"
						     "AssumeRoleWithWebIdentityResult/"
						   : "AssumeRoleResponse/AssumeRoleResult/" };
	AUTO(auto_free)
	char *session = role->session
				? mem_copy(role->session)
				: mem_format("stoker-%lld", (long long)clock_utc_now().ms / 1000);
	struct sigv4_pair params[PARAMS_MAX];
	struct aws_call call = {
		.operation = operation, .body_fd = -1, .as = as, .params = params
	};
	struct given given;

	add(&call, params, "RoleArn", role->arn);
	add(&call, params, "RoleSessionName", session);
	add(&call, params, "DurationSeconds", role->duration);
	add(&call, params, "ExternalId", role->external_id);
	add(&call, params, "WebIdentityToken", token);
	if (sts_call(aws_open_keyless, &call, &answer, err) < 0)
		return err_wrap(err, "cannot assume the role '%.200s'", role->arn);
	given = (struct given){ .access_key = answer.access_key,
				.secret_key = answer.secret_key,
				.token = answer.token,
				.expires = answer.expires };
	return credentials_from_words("the reply of sts", &given, ret, err);
}

int sts_assume_role(const struct sts_role *role, const struct sigv4_identity *as,
		    struct credentials *ret, struct err **err)
{
	return assume(AWS_ASSUME_ROLE, role, as, NULL, ret, err);
}

int sts_assume_role_by_token(const struct sts_role *role, const char *token,
			     struct credentials *ret, struct err **err)
{
	return assume(AWS_ASSUME_ROLE_WITH_WEB_IDENTITY, role, NULL, token, ret, err);
}
