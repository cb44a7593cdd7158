/*
 * Keys of a role that a profile assumes (role_arn), with the keys of another profile
 * (source_profile, through any number of roles) or of this machine (credential_source).
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/settings.h"
#include "aws/credentials/sts.h"
#include "jobs/base/text/text.h"

/* True if the profile's role counts, not static keys or a web identity. */
static bool has_role(const char *profile)
{
	return aws_config_value(profile, "role_arn") &&
	       !aws_config_value(profile, "web_identity_token_file");
}

/* Only presence counts: values of secrets are not kept in the settings. */
static bool has_keys(const char *profile)
{
	return aws_config_value(profile, "aws_access_key_id") ||
	       aws_shared_value(profile, "aws_secret_access_key");
}

static int wrong(const char *profile, struct err **err, const char *what)
{
	err_set(err, EXIT_REFUSED, "the AWS profile '%.80s' assumes a role, but %s", profile, what);
	return err_hint(err, "correct the profile in '%s'", aws_config_path());
}

static int without_keys(const char *profile, const char *key, const struct sb *notes,
			struct err **err)
{
	AUTO(auto_free)
	char *what = mem_format("%s gives no credentials: %s", key, notes->text);

	return wrong(profile, err, what);
}

/* Checks a duration in seconds, within the service's limits. */
static int check_duration(const char *profile, const char *text, struct err **err)
{
	double seconds = 0;

	if (!text)
		return 0;
	if (text[strspn(text, "0123456789")] == '\0' &&
	    text_float(text, strlen(text), &seconds) == strlen(text) && seconds >= 900 &&
	    seconds <= 43200)
		return 0;
	return wrong(profile, err, "duration_seconds is not a number from 900 to 43200");
}

/* Takes keys from a credential_source: "Environment" and the like. */
static int from_machine(const struct provider_request *request, const char *source,
			struct credentials *ret, struct err **err)
{
	static const struct {
		const char *name;
		provide_fn provide;
	} rows[] = {
		{ "Environment", credentials_provide_environment },
		{ "EcsContainer", credentials_provide_container },
		{ "Ec2InstanceMetadata", credentials_provide_instance },
	};
	AUTO(sb_release) struct sb notes = SB_INIT_MAX(1024);
	const struct provider_request inner = { .profile = request->profile, .notes = &notes };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		int outcome;

		if (strcasecmp(source, rows[i].name) != 0)
			continue;
		outcome = rows[i].provide(&inner, ret, err);
		if (outcome != 0)
			return outcome;
		return without_keys(request->profile, "credential_source", &notes, err);
	}
	return wrong(
		request->profile, err,
		"credential_source is not one of Environment, EcsContainer, Ec2InstanceMetadata");
}

static bool is_in_chain(const struct provider_request *request, const char *profile)
{
	for (; request; request = request->from)
		if (strcmp(request->profile, profile) == 0)
			return true;
	return false;
}

static int from_profile(const struct provider_request *request, const char *source,
			struct credentials *ret, struct err **err)
{
	AUTO(sb_release) struct sb notes = SB_INIT_MAX(1024);
	const struct provider_request inner = { .profile = source,
						.source = true,
						.from = request,
						.of_profile = request->of_profile,
						.notes = &notes };
	bool itself = strcmp(source, request->profile) == 0;
	int outcome;

	if (!aws_profile_exists(source)) {
		AUTO(auto_free)
		char *what = mem_format("the source_profile '%.80s' does not exist", source);

		return wrong(request->profile, err, what);
	}
	/* A profile may be its own source, if it has keys of its own. */
	if (is_in_chain(request, source) && !(itself && has_keys(source)))
		return wrong(request->profile, err, "the source_profile leads back to itself");
	if (!has_keys(source) && has_role(source))
		return credentials_provide_assume_role(&inner, ret, err);
	outcome = request->of_profile(&inner, ret, err);
	if (outcome != 0)
		return outcome;
	return without_keys(request->profile, "source_profile", &notes, err);
}

int credentials_provide_assume_role(const struct provider_request *request, struct credentials *ret,
				    struct err **err)
{
	const char *profile = request->profile;
	const char *source = aws_config_value(profile, "source_profile");
	const char *machine = aws_config_value(profile, "credential_source");
	struct sts_role role = { .arn = aws_config_value(profile, "role_arn"),
				 .session = aws_config_value(profile, "role_session_name"),
				 .external_id = aws_config_value(profile, "external_id"),
				 .duration = aws_config_value(profile, "duration_seconds") };
	AUTO(credentials_release) struct credentials keys = { 0 };
	struct sigv4_identity as;
	int outcome;

	if (!has_role(profile))
		return 0;
	if (!source == !machine)
		return wrong(profile, err,
			     source ? "both source_profile and credential_source are set"
				    : "neither source_profile nor credential_source is set");
	if (aws_config_value(profile, "mfa_serial")) {
		wrong(profile, err, "an MFA code is required, and stoker cannot ask for it");
		return err_hint(err,
				"let a tool that can ask give the keys: 'aws sso login', 'aws sts "
				"assume-role', or a credential_process");
	}
	if (check_duration(profile, role.duration, err) < 0)
		return -1;
	outcome = machine ? from_machine(request, machine, &keys, err)
			  : from_profile(request, source, &keys, err);
	if (outcome < 0)
		return -1;
	as = (struct sigv4_identity){ keys.access_key, keys.secret_key, keys.token };
	return sts_assume_role(&role, &as, ret, err);
}
