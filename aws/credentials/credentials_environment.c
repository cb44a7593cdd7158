/*
 * Keys in the environment: AWS_ACCESS_KEY_ID and related variables. A profile named on the
 * command line takes precedence over them; a profile set in the environment does not.
 */
#include <stdlib.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/settings.h"

int credentials_provide_environment(const struct provider_request *request, struct credentials *ret,
				    struct err **err)
{
	const char *token = aws_env("AWS_SECURITY_TOKEN");
	struct given given = { .access_key = aws_env("AWS_ACCESS_KEY_ID"),
			       .secret_key = aws_env("AWS_SECRET_ACCESS_KEY"),
			       .token = token ? token : aws_env("AWS_SESSION_TOKEN"),
			       .expires = aws_env("AWS_CREDENTIAL_EXPIRATION"),
			       .account = aws_env("AWS_ACCOUNT_ID") };

	if (!given.access_key)
		return credentials_provide_nothing(request, "no AWS_ACCESS_KEY_ID");
	return credentials_from_words("the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
				      &given, ret, err);
}
