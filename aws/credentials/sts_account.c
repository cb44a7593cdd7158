/* The account that the chain's keys belong to, by GetCallerIdentity: see sts.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "aws/credentials/sts.h"

static bool is_account(const char *text)
{
	return strlen(text) == 12 && strspn(text, "0123456789") == 12;
}

int sts_account(char **ret, struct err **err)
{
	AUTO(auto_free) char *arn = NULL;

	return sts_identity(ret, &arn, err);
}

int sts_identity(char **ret_account, char **ret_arn, struct err **err)
{
	AUTO(sts_answer_release)
	struct sts_answer answer = { .root = "GetCallerIdentityResponse/GetCallerIdentityResult/" };
	struct aws_call call = AWS_CALL_INIT(GET_CALLER_IDENTITY);

	if (sts_call(aws_open, &call, &answer, err) < 0)
		return err_wrap(err, "cannot find the AWS account");
	if (!answer.account || !is_account(answer.account)) {
		err_set(err, EXIT_UNREACHABLE, "the reply of sts names no account");
		return err_hint(err, "check that AWS_ENDPOINT_URL leads to the service");
	}
	*ret_account = TAKE(answer.account);
	*ret_arn = TAKE(answer.arn);
	return 0;
}

int sts_check_account(const char *found, const char *account, struct err **err)
{
	AUTO(credentials_release) struct credentials ours = { 0 };

	if (strcmp(found, account) == 0)
		return 0;
	if (credentials_get(&ours, err) < 0)
		return -1;
	err_set(err, EXIT_REFUSED, "the AWS credentials (%s) are of account %s, not %s",
		ours.provider, found, account);
	err_hint(err, "choose a profile of account %s with --profile, or correct aws.account",
		 account);
	return err_field(err, "aws.account");
}

int sts_require_account(const char *account, struct err **err)
{
	AUTO(auto_free) char *found = NULL;

	if (!account)
		return 0;
	return sts_account(&found, err) < 0 ? -1 : sts_check_account(found, account, err);
}
