/* Variables for an agent: see child_aws_env.h. */
#include "aws/child_aws_env.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aws/credentials/settings.h"
#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"

/* True if the variable is set by child_aws_env() itself, or would override a variable it sets. */
static bool is_replaced(const char *row)
{
	static const char *const names[] = { "AWS_PROFILE=", "AWS_DEFAULT_PROFILE=", "AWS_REGION=",
					     "AWS_DEFAULT_REGION=" };
	static const char *const beaten[] = {
		"AWS_ACCESS_KEY_ID=",    "AWS_SECRET_ACCESS_KEY=",       "AWS_SESSION_TOKEN=",
		"AWS_SECURITY_TOKEN=",   "AWS_WEB_IDENTITY_TOKEN_FILE=", "AWS_ROLE_ARN=",
		"AWS_ROLE_SESSION_NAME="
	};

	for (size_t i = 0; i < STK_LENGTH(names); i++)
		if (text_starts(row, names[i]))
			return true;
	/* A profile by option beats keys in the environment; a profile by variable does not. */
	for (size_t i = 0; aws_profile_is_explicit() && i < STK_LENGTH(beaten); i++)
		if (text_starts(row, beaten[i]))
			return true;
	return false;
}

char **child_aws_env(size_t *ret_count)
{
	AUTO(err_freep) struct err *none = NULL;
	const char *region = aws_region(&none), *profile = aws_profile();
	size_t count = 0;
	char **lent;

	for (char **row = environ; *row; row++)
		count++;
	lent = mem_zero(count + 3, sizeof *lent);
	count = 0;
	for (char **row = environ; *row; row++) {
		const struct variable_row *known = variable_find(*row);

		if (known && (known->uses & VAR_LENT) && !is_replaced(*row))
			lent[count++] = mem_copy(*row);
	}
	if (region)
		lent[count++] = mem_format("AWS_REGION=%s", region);
	if (strcmp(profile, "default") != 0 || aws_profile_is_explicit())
		lent[count++] = mem_format("AWS_PROFILE=%s", profile);
	*ret_count = count;
	return lent;
}
