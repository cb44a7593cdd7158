/* A run's account and region: see aws_account.h. */
#include "jobs/run/plan/aws_account.h"

#include <string.h>

#include "aws/credentials/secrets.h"
#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/engine.h"

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

bool aws_account_is_needed(const json_t *plan)
{
	json_t *secrets = json_object_get(plan, "secrets"), *from;
	const char *name;

	json_object_foreach (secrets, name, from)
		if (aws_secret_is(json_string_value(from)))
			return true;
	return names_aws(plan);
}

bool aws_account_needs_region(const json_t *plan)
{
	const struct engine_ops *engine = engine_find(js_str(plan, "engine"));

	return engine && engine->requests;
}

int aws_account_enter_region(const json_t *plan, struct err **err)
{
	const char *region = json_string_value(js_path(plan, "spec.aws.region"));
	const char *pinned = js_str(json_object_get(plan, "aws"), "region");
	const char *option = aws_region_option();

	if (pinned && option && strcmp(option, pinned) != 0) {
		err_set(err, EXIT_REFUSED,
			"the jobs of this run are in region %s, not in %s as --region says", pinned,
			option);
		return err_hint(err, "omit --region; a run stays in its region");
	}
	if (pinned || region)
		aws_settings_spec(pinned ? pinned : region);
	return 0;
}

int aws_account_enter(const json_t *plan, struct err **err)
{
	const char *account = json_string_value(js_path(plan, "spec.aws.account"));
	const char *pinned = js_str(json_object_get(plan, "aws"), "account");

	if (aws_account_enter_region(plan, err) < 0)
		return -1;
	if (pinned || !aws_account_is_needed(plan))
		account = pinned;
	if (!account || sts_require_account(account, err) == 0)
		return 0;
	if (pinned && (*err)->field) {
		err_wrap(err, "the jobs of this run are in account %s", pinned);
		return err_hint(err, "choose a profile of account %s with --profile", pinned);
	}
	/* No account could be asked for: as when the run was created (below), the region has to do,
	 * unless the spec names the account. */
	if (!pinned || json_string_value(js_path(plan, "spec.aws.account")))
		return -1;
	err_freep(err);
	return 0;
}

int aws_account_pin(json_t *plan, struct err **err)
{
	const char *given = json_string_value(js_path(plan, "spec.aws.account")), *region;
	AUTO(auto_free) char *account = given ? mem_copy(given) : NULL;
	AUTO(err_freep) struct err *unknown = NULL;
	json_t *pin;

	if (!aws_account_needs_region(plan))
		return 0;
	region = aws_region(err);
	if (!region)
		return -1;
	/* If STS is out of reach, the region alone has to do. */
	if (!account && sts_account(&account, &unknown) < 0)
		account = NULL;
	pin = json_object();
	js_put_str(pin, "region", region);
	js_put_str(pin, "account", account);
	js_put(plan, "aws", pin);
	return 0;
}
