/* The statement that allows a request which was refused: see policy.h. */
#include "aws/auth/endpoint.h"
#include "aws/aws.h"
#include "aws/policy/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"

#define DEPTH_MAX   6
#define ACCOUNT_LEN 12

/* Words of AWS's messages. */
#define PERFORM "not authorized to perform: "
#define ON      "on resource: "
#define DENY    "explicit deny"

struct request_facts {
	struct policy_names names;
	char *source; /* owned */
	char *arn;    /* owned: the resource that the message names, or NULL */
	char account[ACCOUNT_LEN + 1];
	char action[96]; /* that the message names, or "" */
	bool has_tags, has_if_match, has_deny;
};

static void facts_release(struct request_facts *facts)
{
	free(facts->source);
	free(facts->arn);
}

/* ---- what the request speaks of ---- */

static const char *const fields[] = {
#define NAME(id, word, fields) fields,
#include "aws/policy/names.def"
#undef NAME
};

static void keep_name(struct request_facts *facts, const char *field, const char *value)
{
	size_t len = strlen(field);

	for (size_t i = 0; i < POLICY_NAME_COUNT; i++)
		for (const char *at = fields[i]; *at; at += strcspn(at, " "), at += *at == ' ')
			if (strcspn(at, " ") == len && memcmp(at, field, len) == 0 &&
			    !facts->names.of[i])
				facts->names.of[i] = value;
}

/* Members of an object come before those of its members. */
static void read_json(struct request_facts *facts, const json_t *value, int depth)
{
	const char *key;
	json_t *inner;
	size_t i;

	if (depth > DEPTH_MAX)
		return;
	json_object_foreach ((json_t *)value, key, inner) {
		if (json_is_string(inner) && *json_string_value(inner))
			keep_name(facts, key, json_string_value(inner));
		if (depth == 0 && (strcmp(key, "tags") == 0 || strcmp(key, "Tags") == 0))
			facts->has_tags = json_object_size(inner) || json_array_size(inner);
	}
	json_object_foreach ((json_t *)value, key, inner)
		read_json(facts, inner, depth + 1);
	json_array_foreach (value, i, inner)
		read_json(facts, inner, depth + 1);
}

char *policy_unescape(const char *text)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	for (sb_adds(&out, ""); *text; text++) {
		char hex[3] = { text[0] == '%' ? text[1] : '\0', '\0', '\0' };

		if (isxdigit((unsigned char)hex[0]) && isxdigit((unsigned char)text[2])) {
			hex[1] = text[2];
			sb_addc(&out, (char)strtol(hex, NULL, 16));
			text += 2;
		} else {
			sb_addc(&out, *text);
		}
	}
	return mem_copy(out.text);
}

static void read_headers(struct request_facts *facts, const struct aws_call *call)
{
	for (size_t i = 0; i < call->header_count; i++) {
		const char *name = call->headers[i].name, *value = call->headers[i].value;

		if (strcmp(name, "if-match") == 0)
			facts->has_if_match = true;
		if (strcmp(name, "x-amz-copy-source") != 0 || facts->source || !value)
			continue;
		facts->source = policy_unescape(value + (*value == '/'));
		facts->names.of[POLICY_NAME_SOURCE] = facts->source;
	}
}

/* A right to one key would be of no use to the next request: it is to all that the client is for.
 */
static void widen(struct policy_names *names, const struct policy_place *place)
{
	const char **key = &names->of[POLICY_NAME_KEY], **prefix = &names->of[POLICY_NAME_PREFIX];
	const char *bucket = names->of[POLICY_NAME_BUCKET];

	if (!place->prefix || !bucket || !place->bucket || strcmp(place->bucket, bucket) != 0)
		return;
	if (*key && text_starts(*key, place->prefix)) {
		*key = place->prefix;
		names->below = true;
	}
	if (*prefix && text_starts(*prefix, place->prefix))
		*prefix = place->prefix;
}

static void read_call(struct request_facts *facts, const struct aws_call *call,
		      const struct policy_place *place)
{
	struct policy_names *names = &facts->names;
	bool is_s3 = operation_row(call->operation)->service == SERVICE_S3;

	names->partition = endpoint_partition(place->region);
	names->region = place->region;
	names->of[POLICY_NAME_BUCKET] = call->bucket;
	names->of[is_s3 ? POLICY_NAME_KEY : POLICY_NAME_SCHEDULE] = call->key;
	for (size_t i = 0; i < call->param_count; i++)
		if (is_s3 && strcmp(call->params[i].name, "prefix") == 0)
			names->of[POLICY_NAME_PREFIX] = call->params[i].value;
		else if (!is_s3 && call->params[i].value)
			keep_name(facts, call->params[i].name, call->params[i].value);
	read_headers(facts, call);
	read_json(facts, call->json, 0);
	if (!names->of[POLICY_NAME_SCHEDULE_GROUP])
		names->of[POLICY_NAME_SCHEDULE_GROUP] = "default";
	if (is_s3)
		widen(names, place);
}

/* ---- what the service's message says ---- */

/* Finds what stands behind `words`, without a quote before it, to the next blank or quote; NULL if
 * nothing does. It is outside text: only characters of ARNs and actions count. */
static const char *behind(const char *message, const char *words, size_t *ret_len)
{
	const char *at = strstr(message, words);

	if (!at)
		return NULL;
	at += strlen(words);
	at += *at == '"';
	*ret_len = 0;
	while (isalnum((unsigned char)at[*ret_len]) ||
	       (at[*ret_len] && strchr(":/_.+=,@-*", at[*ret_len])))
		++*ret_len;
	return *ret_len ? at : NULL;
}

static bool is_account(const char *text)
{
	return strspn(text, "0123456789") == ACCOUNT_LEN && text[ACCOUNT_LEN] == ':';
}

/* Takes the account out of "arn:aws:iam::123456789012:user/name". */
static void keep_account(struct request_facts *facts, const char *arn)
{
	const char *at = arn;

	for (int colons = 0; at && colons < 4; colons++)
		at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL;
	if (!at || !is_account(at) || facts->account[0])
		return;
	memcpy(facts->account, at, ACCOUNT_LEN);
	facts->names.account = facts->account;
}

/* AWS's forms: "User: ARN is not authorized to perform: ACTION on resource: ARN because no
 * identity-based policy allows the ACTION action", "… with an explicit deny in a …". */
static void read_message(struct request_facts *facts, const char *message)
{
	size_t len;
	const char *action = behind(message, PERFORM, &len), *arn;

	facts->has_deny = strstr(message, DENY) != NULL;
	if (action && len < sizeof facts->action) {
		memcpy(facts->action, action, len);
		facts->action[len] = '\0';
	}
	arn = behind(message, ON, &len);
	if (arn && text_starts(arn, "arn:")) {
		facts->arn = mem_copy_n(arn, len);
		keep_account(facts, facts->arn);
		if (strstr(facts->arn, ":kms:"))
			facts->names.of[POLICY_NAME_KMS_KEY] = facts->arn;
	}
	arn = behind(message, "User: ", &len);
	if (arn && text_starts(arn, "arn:"))
		keep_account(facts, arn);
}

/* ---- the statement ---- */

/* The name that a right is conditional on. */
static const char *name_for(const struct request_facts *facts, enum policy_resource resource)
{
	return facts->names.of[resource == POLICY_EXECUTION_ROLE ? POLICY_NAME_EXECUTION_ROLE
								 : POLICY_NAME_ROLE];
}

/* True if this request needs the right, as far as it tells. */
static bool is_needed(const struct policy_right *right, const struct request_facts *facts,
		      bool bare)
{
	switch (right->when) {
	case POLICY_ALWAYS:
		return true;
	case POLICY_IF_MATCH:
		return facts->has_if_match;
	case POLICY_TAGGED:
		return facts->has_tags;
	case POLICY_NAMED:
		return name_for(facts, right->resource) != NULL;
	case POLICY_MISSING:
		return bare;
	case POLICY_ENCRYPTED:
		return false;
	}
	return false;
}

/* True if the message names this action, and it is not another resource of the same action. */
static bool is_named(const struct policy_right *right, const struct request_facts *facts)
{
	const char *role;

	if (strcasecmp(right->action, facts->action) != 0)
		return false;
	if (right->when != POLICY_NAMED)
		return true;
	role = name_for(facts, right->resource);
	return role && (!facts->arn || strcmp(role, facts->arn) == 0);
}

/* Moves the rights that are to be asked for to the front. Returns their number. */
static size_t choose(struct policy_right *rights, size_t count, const struct request_facts *facts,
		     bool bare)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (is_named(&rights[i], facts))
			rights[kept++] = rights[i];
	if (kept)
		return kept;
	for (size_t i = 0; i < count; i++)
		if (is_needed(&rights[i], facts, bare) &&
		    (!kept || policy_fits(&rights[0], &rights[i], &facts->names)))
			rights[kept++] = rights[i];
	return kept;
}

char *policy_cure(const struct aws_call *call, const struct policy_place *place,
		  const char *message, bool bare)
{
	AUTO(facts_release) struct request_facts facts = { 0 };
	struct policy_right rights[POLICY_RIGHTS_MAX];
	size_t count = policy_rights(call->operation, rights);
	json_auto_t *statement = NULL;

	read_call(&facts, call, place);
	read_message(&facts, message);
	count = choose(rights, count, &facts, bare);
	if (!count || facts.has_deny)
		return NULL;
	statement = policy_statement(NULL, rights, count, &facts.names);
	return js_line(statement);
}

bool policy_said(const char *message, char **ret_action, char **ret_resource)
{
	size_t len;
	const char *action = behind(message, PERFORM, &len), *resource;

	if (!action || strstr(message, DENY))
		return false;
	*ret_action = mem_copy_n(action, len);
	resource = behind(action, ON, &len);
	*ret_resource = resource ? mem_copy_n(resource, len) : NULL;
	return true;
}
