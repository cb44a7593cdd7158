/* Checks of the roles that jobs take on: whom they trust, what they may do, who may pass them. */
#include "jobs/run/doctor/doctor_role.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/credentials/settings.h"
#include "aws/policy/policy.h"
#include "jobs/base/text/text.h"
#include "jobs/run/rights/rights.h"

#define LOOK_ROLE  "iam:GetRole"
#define ACCOUNT_AT 4 /* part of an ARN */

#define NOT_SEEN "bucket and key policies of other accounts and VPC endpoints are not seen"

struct role_view {
	struct aws *aws;
	json_t *caller; /* as GetCallerIdentity has it; NULL: not known */
	bool is_asked;
	bool is_missing; /* there is no such role */
};

static void view_release(void *own)
{
	struct role_view *view = own;

	aws_freep(&view->aws);
	json_decref(view->caller);
	free(view);
}

static struct role_view *view_of(struct doctor_talk *talk)
{
	struct role_view *view = talk->own;
	AUTO(err_freep) struct err *ignored = NULL;

	if (view)
		return view;
	view = mem_zero(1, sizeof *view);
	talk->own = view;
	talk->release = view_release;
	/* A failure is told by the check of the account. */
	view->caller = doctor_ask(&view->aws, AWS_GET_CALLER_IDENTITY, NULL, NULL, &ignored);
	return view;
}

/* Returns a part of an ARN, from 0; the caller frees it. */
static char *part_of(const char *arn, int number)
{
	for (; arn && number > 0; number--)
		arn = strchr(arn, ':') ? strchr(arn, ':') + 1 : NULL;
	return mem_copy_n(arn ? arn : "", arn ? strcspn(arn, ":") : 0);
}

static bool is_foreign(const struct doctor_talk *talk, const struct role_view *view)
{
	AUTO(auto_free) char *account = part_of(talk->on, ACCOUNT_AT);
	const char *own = js_str(view->caller, "Account");

	return own && *account && strcmp(own, account) != 0;
}

static const char *behind_last(const char *text, char mark)
{
	return strrchr(text, mark) ? strrchr(text, mark) + 1 : text;
}

static json_t *get_role(struct role_view *view, const char *name, struct err **err)
{
	json_auto_t *body = json_pack("{s:s}", "RoleName", name);

	return doctor_ask(&view->aws, AWS_GET_ROLE, body, "Role", err);
}

/* ---- whom it trusts ---- */

/* Returns the JSON that stands in it with %XX; NULL: it is none. */
static json_t *decoded(const char *text)
{
	AUTO(auto_free) char *plain = policy_unescape(text);
	AUTO(err_freep) struct err *ignored = NULL;
	json_t *ret = NULL;

	return js_parse(plain, strlen(plain), "the trust", &ret, &ignored) == 0 ? ret : NULL;
}

/* True if a text, or one of a list, is this word or "*". */
static bool holds(const json_t *value, const char *word)
{
	const char *text = json_string_value(value);
	const json_t *row;
	size_t i;

	json_array_foreach (value, i, row)
		if (holds(row, word))
			return true;
	return text && (strcasecmp(text, word) == 0 || strcmp(text, "*") == 0);
}

static bool statement_trusts(const json_t *statement, const char *service)
{
	const json_t *action = json_object_get(statement, "Action");

	return js_is(statement, "Effect", "Allow") &&
	       (holds(action, "sts:AssumeRole") || holds(action, "sts:*")) &&
	       holds(js_path(statement, "Principal.Service"), service);
}

static bool trusts(const json_t *document, const char *service)
{
	const json_t *statements = json_object_get(document, "Statement"), *row;
	size_t i;

	json_array_foreach (statements, i, row)
		if (statement_trusts(row, service))
			return true;
	return statement_trusts(statements, service);
}

/* Returns the trust that the role must have, and the service in it: {"policy", "service"}; a new
 * reference. */
static json_t *wanted_trust(const struct doctor_talk *talk)
{
	json_auto_t *all = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	const json_t *policy;
	json_t *service;

	if (rights_trust(talk->plan, &all, &ignored) < 0)
		return json_object();
	policy = json_object_get(all, talk->on);
	service = js_path(json_array_get(json_object_get(policy, "Statement"), 0),
			  "Principal.Service");
	return json_pack("{s:O?, s:O?}", "policy", policy, "service", service);
}

static void tell_trust(struct doctor_talk *talk, const json_t *role)
{
	const char *text = js_str(role, "AssumeRolePolicyDocument");
	json_auto_t *has = text ? decoded(text) : NULL, *wanted = wanted_trust(talk);
	const char *service = js_str(wanted, "service");
	AUTO(auto_free) char *line = js_line(json_object_get(wanted, "policy"));
	AUTO(auto_free)
	char *cure = mem_format("let an administrator give the role this trust: %s", line);

	if (!has || !service)
		doctor_finding_untried(talk, "the reply of iam has no trust");
	else if (!trusts(has, service))
		doctor_finding(talk, DOCTOR_FAIL, cure, "the role does not trust %s", service);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "the role is there, and trusts %s", service);
}

void doctor_role_trust(struct doctor_talk *talk)
{
	struct role_view *view = view_of(talk);
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *role = NULL;

	if (is_foreign(talk, view)) {
		doctor_finding_untried(talk, "the role is of another account");
		return;
	}
	role = get_role(view, behind_last(talk->on, '/'), &why);
	view->is_missing = doctor_finding_has_code(why, "NoSuchEntity");
	if (view->is_missing)
		err_hint(&why, "correct '%s', or let an administrator make the role", talk->field);
	if (role)
		tell_trust(talk, role);
	else
		doctor_finding_of(talk, why, LOOK_ROLE);
}

/* ---- what it may do ---- */

static bool is_execution(const struct doctor_talk *talk)
{
	return strcmp(talk->field, "batch.execution_role") == 0;
}

static int wanted_rights(const struct doctor_talk *talk, json_t **ret, struct err **err)
{
	AUTO(err_freep) struct err *no_region = NULL;
	AUTO(auto_free) char *account = part_of(talk->on, ACCOUNT_AT);
	const struct rights_where where = { .region = aws_region(&no_region), .account = account };

	return rights_policy(talk->plan, is_execution(talk) ? RIGHTS_EXECUTION : RIGHTS_JOB, &where,
			     ret, err);
}

static void tell_rights(struct doctor_talk *talk, const struct doctor_simulation *simulation)
{
	AUTO(auto_free) char *line = js_line(simulation->missing);
	AUTO(auto_free) char *cure = NULL;

	if (simulation->denied == 0) {
		doctor_finding(
			talk, DOCTOR_OK, NULL,
			"by simulation the role may do what jobs do, in %zu respects; " NOT_SEEN,
			simulation->asked);
		return;
	}
	cure = simulation->is_forbidden
		       ? mem_format("let an administrator take the explicit deny out of the role's "
				    "policies, and allow: %s",
				    line)
		       : mem_format("let an administrator add to the role's policies: %s", line);
	doctor_finding(talk, DOCTOR_FAIL, cure,
		       "by simulation the role may not do %zu of %zu: %s%s", simulation->denied,
		       simulation->asked, simulation->words.text,
		       simulation->words.truncated ? "…" : "");
}

void doctor_role_rights(struct doctor_talk *talk)
{
	struct role_view *view = view_of(talk);
	AUTO(doctor_simulation_release)
	struct doctor_simulation simulation = { .aws = &view->aws, .who = talk->on };
	AUTO(err_freep) struct err *why = NULL, *none = NULL;
	json_auto_t *policy = NULL;

	if (wanted_rights(talk, &policy, &none) < 0)
		doctor_finding(talk, DOCTOR_OK, NULL, "the role needs no rights");
	else if (view->is_missing)
		doctor_finding_untried(talk, "there is no such role");
	else if (is_foreign(talk, view))
		doctor_finding_untried(talk, "the role is of another account");
	else if (doctor_simulate(&simulation, policy, &why) == 0)
		tell_rights(talk, &simulation);
	else if (doctor_finding_is_denied(why))
		doctor_take(talk, policy, why);
	else
		doctor_finding_of(talk, why, DOCTOR_LOOK_SIMULATE);
}

/* ---- who may pass it ---- */

/* Returns the ARN that policies of the caller are of: of a session that of its role, whose path the
 * session's does not have. NULL: it has none. The caller frees it. */
static char *source_of(struct role_view *view)
{
	static const char session[] = ":assumed-role/";
	const char *arn = js_str(view->caller, "Arn");
	const char *at = arn ? strstr(arn, session) : NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *name = NULL, *partition = NULL;
	json_auto_t *role = NULL;

	if (!at)
		return arn && strstr(arn, ":user/") ? mem_copy(arn) : NULL;
	at += strlen(session);
	name = mem_copy_n(at, strcspn(at, "/"));
	role = get_role(view, name, &ignored);
	if (js_str(role, "Arn"))
		return mem_copy(js_str(role, "Arn"));
	partition = part_of(arn, 1);
	return mem_format("arn:%s:iam::%s:role/%s", partition, js_str(view->caller, "Account"),
			  name);
}

/* Returns {"Statement": [the one that allows the caller to pass the role]}; a new reference. */
static json_t *passing(const struct doctor_talk *talk)
{
	bool is_batch = js_is(talk->plan, "engine", "batch");
	const struct policy_right right = { is_batch ? AWS_REGISTER_JOB_DEFINITION
						     : AWS_CREATE_TRAINING_JOB,
					    "iam:PassRole", POLICY_ROLE, POLICY_NAMED };
	struct policy_names names = { 0 };

	names.of[POLICY_NAME_ROLE] = talk->on;
	return json_pack("{s:[o]}", "Statement", policy_statement(NULL, &right, 1, &names));
}

void doctor_role_pass(struct doctor_talk *talk)
{
	struct role_view *view = view_of(talk);
	AUTO(auto_free) char *source = source_of(view);
	AUTO(doctor_simulation_release)
	struct doctor_simulation simulation = { .aws = &view->aws, .who = source };
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *policy = passing(talk);
	AUTO(auto_free)
	char *line = js_line(json_array_get(json_object_get(policy, "Statement"), 0));
	AUTO(auto_free)
	char *cure =
		mem_format("let an administrator allow this for the identity in use: %s", line);

	if (!source)
		doctor_finding_untried(talk,
				       "whose credentials these are is not known, or they are "
				       "neither a user's nor a role's");
	else if (doctor_simulate(&simulation, policy, &why) < 0)
		doctor_finding_of(talk, why, DOCTOR_LOOK_SIMULATE);
	else if (simulation.denied > 0)
		doctor_finding(talk, DOCTOR_FAIL, cure, "by simulation %s may not pass the role",
			       source);
	else
		doctor_finding(talk, DOCTOR_OK, NULL, "by simulation %s may pass the role", source);
}
