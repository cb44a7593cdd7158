/* The statement that a service's message is about: see rights.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/policy/policy.h"
#include "jobs/base/text/text.h"
#include "jobs/run/rights/rights.h"

/* The character that "${*}", "${?}" or "${$}" stands for; 0: the pattern goes on otherwise. */
static char plain_at(const char *pattern)
{
	return pattern[0] == '$' && pattern[1] == '{' && pattern[2] && pattern[3] == '}'
		       ? pattern[2]
		       : '\0';
}

/* True if IAM's pattern is for the text: "*" any characters, "?" one. */
static bool is_like(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL; /* behind the last "*", and what it ends before */

	while (*text || *pattern == '*') {
		char plain = plain_at(pattern);

		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern &&
			   (plain ? plain == *text : *pattern == '?' || *pattern == *text)) {
			pattern += plain ? 4 : 1;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	return !*pattern;
}

/* Returns the values of one text, or of a list, that `fits` says yes to: one, a list, or NULL. */
static json_t *those_that(const json_t *value, bool (*fits)(const char *value, const char *text),
			  const char *text)
{
	json_auto_t *list = json_is_array(value) ? json_copy((json_t *)(uintptr_t)value)
						 : json_pack("[O]", value);

	for (size_t i = json_array_size(list); i-- > 0;)
		if (text && !fits(json_string_value(json_array_get(list, i)), text))
			json_array_remove(list, i);
	if (json_array_size(list) == 0)
		return NULL;
	return json_incref(json_array_size(list) == 1 ? json_array_get(list, 0) : list);
}

static bool is_action(const char *value, const char *text)
{
	return strcasecmp(value, text) == 0;
}

/* Returns the part of a statement that is about an action on a resource, NULL: any; else NULL. */
static json_t *part_of(const json_t *statement, const char *action, const char *resource)
{
	json_auto_t *actions = those_that(json_object_get(statement, "Action"), is_action, action);
	json_auto_t *on = those_that(json_object_get(statement, "Resource"), is_like, resource);
	json_t *ret = actions && on ? json_copy((json_t *)(uintptr_t)statement) : NULL;

	if (!ret)
		return NULL;
	js_put(ret, "Action", TAKE(actions));
	js_put(ret, "Resource", TAKE(on));
	policy_put_sid(ret);
	return ret;
}

static char *find_part(const json_t *policy, const char *action, const char *resource)
{
	const json_t *statement;
	size_t i;

	json_array_foreach (json_object_get(policy, "Statement"), i, statement) {
		json_auto_t *part = part_of(statement, action, resource);

		if (part)
			return js_line(part);
	}
	return NULL;
}

/* A key of KMS that the spec does not name is known from the message alone. */
static char *for_key(const char *action, const char *resource)
{
	static const char *const used[] = { "kms:Decrypt", "kms:GenerateDataKey" };
	json_auto_t *statement = NULL;

	for (size_t i = 0; i < STK_LENGTH(used) && !statement; i++)
		if (strcasecmp(action, used[i]) == 0 && resource && strstr(resource, ":kms:"))
			statement = json_pack("{s:s, s:s, s:s, s:s}", "Sid", "", "Effect", "Allow",
					      "Action", used[i], "Resource", resource);
	if (!statement)
		return NULL;
	policy_put_sid(statement);
	return js_line(statement);
}

char *rights_missed(const json_t *plan, const char *message)
{
	/* Where jobs have no role they have the rights of whoever types. */
	static const enum rights_role roles[] = { RIGHTS_JOB, RIGHTS_EXECUTION, RIGHTS_SUBMITTER };
	const json_t *pinned = json_object_get(plan, "aws");
	const struct rights_where where = { .region = js_str(pinned, "region"),
					    .account = js_str(pinned, "account") };
	AUTO(auto_free) char *action = NULL, *resource = NULL;
	char *ret = NULL;

	if (!policy_said(message, &action, &resource))
		return NULL;
	for (size_t i = 0; i < STK_LENGTH(roles) && !ret; i++) {
		AUTO(err_freep) struct err *none = NULL;
		json_auto_t *policy = NULL;

		if (rights_policy(plan, roles[i], &where, &policy, &none) == 0)
			ret = find_part(policy, action, resource);
	}
	return ret ? ret : for_key(action, resource);
}
