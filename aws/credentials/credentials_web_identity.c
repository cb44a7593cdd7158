/*
 * Keys of a role assumed with a token from another party (in Kubernetes: "IRSA"), in a file that
 * is replaced before it expires and is therefore read again each time. Nothing is signed.
 */
#include <ctype.h>
#include <string.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/secret.h"
#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"

#define TOKEN_MIN 4
#define TOKEN_MAX ((size_t)20000)

static int no_token(const char *path, struct err **err)
{
	err_set(err, EXIT_REFUSED, "the web identity's token file '%s' is missing or empty", path);
	return err_hint(err,
			"correct AWS_WEB_IDENTITY_TOKEN_FILE, or web_identity_token_file of the "
			"profile");
}

int credentials_provide_web_identity(const struct provider_request *request,
				     struct credentials *ret, struct err **err)
{
	const char *path = request->source ? NULL : aws_env("AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *arn = request->source ? NULL : aws_env("AWS_ROLE_ARN");
	const char *session = request->source ? NULL : aws_env("AWS_ROLE_SESSION_NAME");
	AUTO(secret_freep) char *token = NULL;
	struct sts_role role;
	size_t len;

	if (!path)
		path = aws_config_value(request->profile, "web_identity_token_file");
	if (!path)
		return 0;
	if (!arn)
		arn = aws_config_value(request->profile, "role_arn");
	if (!session)
		session = aws_config_value(request->profile, "role_session_name");
	if (!arn) {
		err_set(err, EXIT_REFUSED, "a web identity's token is set, but no role for it");
		return err_hint(err, "set AWS_ROLE_ARN, or role_arn in the profile");
	}
	if (secret_read(path, TOKEN_MAX, &token, err) < 0)
		return err_wrap(err, "cannot read the web identity's token");
	if (!token)
		return no_token(path, err);
	for (len = strlen(token); len > 0 && isspace((unsigned char)token[len - 1]);)
		token[--len] = '\0';
	if (len < TOKEN_MIN)
		return no_token(path, err);
	role = (struct sts_role){ .arn = arn,
				  .session = session,
				  .duration =
					  aws_config_value(request->profile, "duration_seconds") };
	return sts_assume_role_by_token(&role, token, ret, err);
}
