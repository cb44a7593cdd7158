/* The chain of providers, each a row: see credentials.h. */
#include "aws/credentials/credentials_internal.h"
#include "aws/credentials/settings.h"

enum provider_id {
	ENVIRONMENT,
	ASSUME_ROLE,
	WEB_IDENTITY,
	SSO,
	SHARED,
	LOGIN,
	PROCESS,
	CONFIG,
	CONTAINER,
	INSTANCE,
};

/* "aws login" keeps a token with a key of its own, which only its own tools can use. Skipping
 * this provider would mean using other credentials. */
static int provide_login(const struct provider_request *request, struct credentials *ret,
			 struct err **err)
{
	(void)ret;
	if (!aws_config_value(request->profile, "login_session"))
		return 0;
	err_set(err, EXIT_REFUSED,
		"the profile '%.80s' was made by 'aws login', which stoker does not support",
		request->profile);
	return err_hint(err,
			"let the AWS command line give the keys: write 'credential_process = aws "
			"configure export-credentials --profile %.80s --format process' into "
			"another profile, and use that",
			request->profile);
}

enum {
	ANYWHERE = 0,
	OF_PROFILE = 1 << 0, /* usable by a source_profile */
	FIXED = 1 << 1,      /* asking again gives the same */
};

static const struct provider {
	const char *name;
	provide_fn provide;
	unsigned flags;
} providers[] = {
	[ENVIRONMENT] = { "environment", credentials_provide_environment, FIXED },
	[ASSUME_ROLE] = { "assume-role", credentials_provide_assume_role, ANYWHERE },
	[WEB_IDENTITY] = { "web-identity", credentials_provide_web_identity, OF_PROFILE },
	[SSO] = { "sso", credentials_provide_sso, OF_PROFILE },
	[SHARED] = { "shared-credentials-file", credentials_provide_shared, OF_PROFILE },
	[LOGIN] = { "login", provide_login, OF_PROFILE },
	[PROCESS] = { "process", credentials_provide_process, OF_PROFILE },
	[CONFIG] = { "config-file", credentials_provide_config, OF_PROFILE },
	[CONTAINER] = { "container", credentials_provide_container, ANYWHERE },
	[INSTANCE] = { "instance", credentials_provide_instance, ANYWHERE },
};

static int provide_one(enum provider_id id, const struct provider_request *request,
		       struct credentials *ret, struct err **err)
{
	int outcome = providers[id].provide(request, ret, err);

	/* Keys of a role count as the role's, whatever keys were used to assume it. */
	if (outcome > 0 && !ret->provider)
		ret->provider = providers[id].name;
	return outcome;
}

/* Asks the providers of one profile, in order: those that a source_profile may use. */
static int provide_of_profile(const struct provider_request *request, struct credentials *ret,
			      struct err **err)
{
	int outcome = 0;

	for (size_t i = 0; i < STK_LENGTH(providers) && outcome == 0; i++)
		if (providers[i].flags & OF_PROFILE)
			outcome = provide_one((enum provider_id)i, request, ret, err);
	return outcome;
}

static int nobody(const struct sb *notes, struct err **err)
{
	err_set(err, EXIT_REFUSED, "no AWS credentials: %s", notes->text);
	return err_hint(err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or choose a profile "
			     "that has credentials with --profile or AWS_PROFILE");
}

int credentials_chain_get(struct credentials *ret, bool *ret_fixed, struct err **err)
{
	AUTO(sb_release) struct sb notes = SB_INIT_MAX(2048);
	struct provider_request request = { .profile = aws_profile(),
					    .source = aws_profile_is_explicit(),
					    .of_profile = provide_of_profile,
					    .notes = &notes };
	int outcome = 0;

	if (aws_settings_check(err) < 0)
		return -1;
	for (size_t i = 0; i < STK_LENGTH(providers) && outcome == 0; i++) {
		if (i == ENVIRONMENT && aws_profile_is_explicit())
			continue;
		outcome = provide_one((enum provider_id)i, &request, ret, err);
		*ret_fixed = providers[i].flags & FIXED;
	}
	return outcome > 0 ? 0 : outcome < 0 ? -1 : nobody(&notes, err);
}
