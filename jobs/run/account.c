/* A run's account and region: see account.h. */
#include "jobs/run/account.h"

#include <string.h>

#include "aws/secrets.h"
#include "aws/settings.h"
#include "aws/sts.h"
#include "jobs/base/text.h"

static bool names_aws(const json_t *value)
{
	const char *text = json_string_value(value), *key;
	const json_t *member;
	size_t i;

	if (text && text_starts(text, "s3://"))
		return true;
	json_object_foreach ((json_t *)(uintptr_t)value, key, member)
		if (names_aws(member))
			return true;
	json_array_foreach (value, i, member)
		if (names_aws(member))
			return true;
	return false;
}

bool plan_uses_aws(const json_t *plan)
{
	json_t *secrets = json_object_get(plan, "secrets"), *from;
	const char *name;

	json_object_foreach (secrets, name, from)
		if (aws_secret_is(json_string_value(from)))
			return true;
	return names_aws(plan);
}

int plan_enter_aws(const json_t *plan, struct err **err)
{
	const char *region = json_string_value(js_path(plan, "spec.aws.region"));
	const char *account = json_string_value(js_path(plan, "spec.aws.account"));

	if (region)
		aws_settings_spec(region);
	return account && plan_uses_aws(plan) ? sts_require_account(account, err) : 0;
}
