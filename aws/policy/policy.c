/* Rights and statements: see policy.h. */
#include "aws/policy/policy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

/* What stoker names in an account begins so. */
#define OWN        "stk-"
#define SID_DIGITS 6

static const struct policy_right further[] = {
#define RIGHT(operation, action, resource, when)                                                   \
	{ AWS_##operation, action, POLICY_##resource, POLICY_##when },
#include "aws/policy/further.def"
#undef RIGHT
};

static const char *const patterns[] = {
#define RESOURCE(id, pattern) pattern,
#include "aws/policy/resources.def"
#undef RESOURCE
};

static const char *const resource_ids[] = {
#define RESOURCE(id, pattern) #id,
#include "aws/policy/resources.def"
#undef RESOURCE
};

static const char *const words[] = {
#define NAME(id, word, fields) word,
#include "aws/policy/names.def"
#undef NAME
};

size_t policy_rights(enum aws_operation operation, struct policy_right ret[POLICY_RIGHTS_MAX])
{
	const struct operation_row *row = operation_row(operation);
	size_t count = 0;

	if (row->resource == POLICY_NONE)
		return 0;
	ret[count++] =
		(struct policy_right){ operation, row->action, row->resource, POLICY_ALWAYS };
	for (size_t i = 0; i < STK_LENGTH(further) && count < POLICY_RIGHTS_MAX; i++)
		if (further[i].operation == operation)
			ret[count++] = further[i];
	return count;
}

/* ---- resources ---- */

/* Appends a name; what IAM takes for a pattern stands for itself. */
static void add_plain(struct sb *ret, const char *text)
{
	for (; *text; text++)
		if (strchr("*?$", *text))
			sb_addf(ret, "${%c}", *text);
		else
			sb_addc(ret, *text);
}

/* True if stoker makes such names up anew for each run. */
static bool is_made_up(enum policy_name name)
{
	return name == POLICY_NAME_DEFINITION || name == POLICY_NAME_TRAINING_JOB;
}

/* Finds what a pattern calls `word`, `len` bytes long. */
static enum policy_name find_name(const char *word, size_t len)
{
	enum policy_name i = 0;

	while (i < POLICY_NAME_COUNT && (strncmp(words[i], word, len) != 0 || words[i][len]))
		i++;
	return i;
}

bool policy_is_named(enum policy_resource resource, const struct policy_names *names)
{
	for (const char *at = strchr(patterns[resource], '{'); at; at = strchr(at + 1, '{')) {
		size_t len = strcspn(at + 1, "}");
		enum policy_name name = find_name(at + 1, len);

		if (name == POLICY_NAME_COUNT) /* {p}, {r}, {a} */
			continue;
		if (!names->of[name] && !(name == POLICY_NAME_KMS_KEY && names->key_alias))
			return false;
	}
	return true;
}

char *policy_resource_word(enum policy_resource resource)
{
	AUTO(sb_release) struct sb word = SB_INIT;
	bool is_first = true;

	sb_adds(&word, "");
	for (const char *at = resource_ids[resource]; *at && resource != POLICY_ANY; at++) {
		if (*at != '_')
			sb_addc(&word, is_first ? *at : (char)tolower((unsigned char)*at));
		is_first = *at == '_';
	}
	return mem_copy(word.text);
}

/* True for names that may be the beginnings of others. */
static bool may_be_begin(enum policy_name name)
{
	return name == POLICY_NAME_KEY || name == POLICY_NAME_SCHEDULE ||
	       name == POLICY_NAME_DEFINITION;
}

/* Appends the name that a pattern calls `word`, `len` bytes long. Returns false for an ARN, which
 * is the whole resource. */
static bool add_name(struct sb *ret, const char *word, size_t len, const struct policy_names *names)
{
	enum policy_name i = find_name(word, len);
	const char *name = i < POLICY_NAME_COUNT ? names->of[i] : NULL;

	if (!name || (is_made_up(i) && text_starts(name, OWN))) {
		sb_adds(ret, name ? OWN "*" : "*");
		return true;
	}
	if (i == POLICY_NAME_PARAMETER && *name == '/')
		name++;
	if (text_starts(name, "arn:") && i != POLICY_NAME_KEY) {
		sb_clear(ret);
		add_plain(ret, name);
		return false;
	}
	add_plain(ret, name);
	if (may_be_begin(i) && names->below)
		sb_addc(ret, '*');
	return true;
}

/* The ARN of a name that stoker made up goes on with "*" behind "stk-". */
static void shorten(struct sb *arn)
{
	char *own = strstr(arn->text, "/" OWN);

	if (!own)
		return;
	arn->len = (size_t)(own - arn->text) + strlen("/" OWN);
	arn->text[arn->len] = '\0';
	sb_addc(arn, '*');
}

/* Appends the pattern of a resource. */
static void add_resource(struct sb *ret, enum policy_resource resource,
			 const struct policy_names *names)
{
	AUTO(sb_release) struct sb arn = SB_INIT;
	bool is_pattern = true;
	const char *end;

	sb_adds(&arn, "");
	for (const char *at = patterns[resource]; *at && is_pattern; at++) {
		if (*at != '{') {
			sb_addc(&arn, *at);
			continue;
		}
		end = strchr(at, '}');
		if (text_starts(at, "{p}"))
			sb_adds(&arn, names->partition ? names->partition : "*");
		else if (text_starts(at, "{r}"))
			sb_adds(&arn, names->region ? names->region : "*");
		else if (text_starts(at, "{a}"))
			sb_adds(&arn, names->account ? names->account : "*");
		else
			is_pattern = add_name(&arn, at + 1, (size_t)(end - at - 1), names);
		at = end;
	}
	if (resource == POLICY_DEFINITION || resource == POLICY_TRAINING_JOB)
		shorten(&arn);
	sb_add(ret, arn.text, arn.len);
}

/* ---- conditions ---- */

/* Returns the service that a role is given to: Source: the service's column of PassedToService in
 * AWS's Service Authorization Reference; for AWS Batch its User Guide, "Job roles". */
static const char *given_to(enum aws_operation operation)
{
	switch (operation_row(operation)->service) {
	case SERVICE_SAGEMAKER:
		return "sagemaker.amazonaws.com";
	case SERVICE_BATCH:
		return "ecs-tasks.amazonaws.com";
	default:
		return "scheduler.amazonaws.com";
	}
}

static json_t *condition_of(const struct policy_right *right, const struct policy_names *names)
{
	AUTO(sb_release) struct sb prefix = SB_INIT;
	const char *begin = names->of[POLICY_NAME_PREFIX];

	if (strcmp(right->action, "iam:PassRole") == 0)
		return json_pack("{s:{s:s}}", "StringEquals", "iam:PassedToService",
				 given_to(right->operation));
	if (right->resource == POLICY_KEY && names->key_alias)
		return json_pack("{s:{s:s}}", "ForAnyValue:StringEquals", "kms:ResourceAliases",
				 names->key_alias);
	if (strcmp(right->action, "s3:ListBucket") != 0 || !begin || !*begin)
		return NULL;
	add_plain(&prefix, begin);
	sb_addc(&prefix, '*');
	/* Where an object is missing, S3 asks for the right without a prefix. */
	return json_pack("{s:{s:s}}", names->below ? "StringLikeIfExists" : "StringLike",
			 "s3:prefix", prefix.text);
}

bool policy_fits(const struct policy_right *a, const struct policy_right *b,
		 const struct policy_names *names)
{
	json_auto_t *of_a = condition_of(a, names), *of_b = condition_of(b, names);

	return (!of_a && !of_b) || json_equal(of_a, of_b);
}

/* ---- statements ---- */

static void add_once(json_t *list, const char *text)
{
	const json_t *there;
	size_t i;

	json_array_foreach (list, i, there)
		if (strcmp(json_string_value(there), text) == 0)
			return;
	json_array_append_new(list, js_text(text, strlen(text)));
}

/* Takes the list over: one text, or the list. */
static json_t *one_or_all(json_t *list)
{
	json_t *one;

	if (json_array_size(list) != 1)
		return list;
	one = json_incref(json_array_get(list, 0));
	json_decref(list);
	return one;
}

void policy_put_sid(json_t *statement)
{
	AUTO(sb_release) struct sb sid = SB_INIT;
	const json_t *action = json_object_get(statement, "Action");
	char hex[65];
	bool is_first = true;

	js_put(statement, "Sid", json_string(""));
	js_digest(statement, hex);
	if (json_is_array(action))
		action = json_array_get(action, 0);
	for (const char *at = json_string_value(action); *at; at++) {
		if (isalnum((unsigned char)*at))
			sb_addc(&sid, is_first ? (char)toupper((unsigned char)*at) : *at);
		is_first = !isalnum((unsigned char)*at);
	}
	sb_add(&sid, hex, SID_DIGITS);
	js_put_str(statement, "Sid", sid.text);
}

json_t *policy_statement(const char *sid, const struct policy_right *rights, size_t count,
			 const struct policy_names *names)
{
	json_t *ret = json_object(), *actions = json_array(), *resources = json_array();

	for (size_t i = 0; i < count; i++) {
		AUTO(sb_release) struct sb resource = SB_INIT;

		add_resource(&resource, rights[i].resource, names);
		add_once(actions, rights[i].action);
		add_once(resources, resource.text);
	}
	js_put(ret, "Sid", json_string(sid ? sid : ""));
	js_put_str(ret, "Effect", "Allow");
	js_put(ret, "Action", one_or_all(actions));
	js_put(ret, "Resource", one_or_all(resources));
	if (count)
		js_put(ret, "Condition", condition_of(&rights[0], names));
	if (!sid && count)
		policy_put_sid(ret);
	return ret;
}
