/* Simulations of IAM: see doctor_role.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/run/doctor/doctor_role.h"

#define RESULTS_MAX "1000"
#define WORDS_MAX   600

void doctor_simulation_release(struct doctor_simulation *simulation)
{
	json_decref(simulation->missing);
	sb_release(&simulation->words);
}

/* ---- what is asked ---- */

/* Adds a name for a pattern: IAM compares what it is asked for with patterns, so it must be none.
 */
static void add_plain(json_t *list, const char *pattern)
{
	AUTO(sb_release) struct sb name = SB_INIT;

	sb_adds(&name, "");
	for (const char *at = pattern; *at; at++) {
		if (at[0] == '$' && at[1] == '{' && at[2] && at[3] == '}') {
			sb_addc(&name, at[2]);
			at += 3;
		} else {
			sb_addc(&name, *at == '*' || *at == '?' ? 'x' : *at);
		}
	}
	json_array_append_new(list, js_text(name.text, name.len));
}

/* Returns {"member": [names]} of a text, or of a list. */
static json_t *members_of(const json_t *patterns)
{
	json_t *names = json_array();
	const json_t *row;
	size_t i;

	if (json_is_string(patterns))
		add_plain(names, json_string_value(patterns));
	json_array_foreach (patterns, i, row)
		add_plain(names, json_string_value(row));
	return json_pack("{s:o}", "member", names);
}

static json_t *body_of(const struct doctor_simulation *simulation, const json_t *statement)
{
	const json_t *resource = json_object_get(statement, "Resource");
	json_t *body = json_pack("{s:s, s:s}", "PolicySourceArn", simulation->who, "MaxItems",
				 RESULTS_MAX);

	js_put(body, "ActionNames", members_of(json_object_get(statement, "Action")));
	/* An action without a type of resource is asked for without one. */
	if (!json_is_string(resource) || strcmp(json_string_value(resource), "*") != 0)
		js_put(body, "ResourceArns", members_of(resource));
	return body;
}

/* Puts what a condition is about into the body; of several values the one at `at`. Returns how many
 * there are. */
static size_t put_context(json_t *body, const json_t *condition, size_t at)
{
	json_t *entries = json_array(), *keys, *value;
	const char *comparison, *key;
	size_t most = 1;

	json_object_foreach ((json_t *)(uintptr_t)condition, comparison, keys)
		json_object_foreach (keys, key, value) {
			size_t count = json_is_array(value) ? json_array_size(value) : 1;
			const json_t *one =
				json_is_array(value) ? json_array_get(value, at % count) : value;

			most = count > most ? count : most;
			json_array_append_new(entries,
					      json_pack("{s:s, s:o, s:s}", "ContextKeyName", key,
							"ContextKeyValues", members_of(one),
							"ContextKeyType", "string"));
		}
	if (json_array_size(entries) > 0)
		js_put(body, "ContextEntries", json_pack("{s:o}", "member", entries));
	else
		json_decref(entries);
	return most;
}

/* ---- what is answered ---- */

static bool is_allowed(const json_t *result)
{
	const json_t *organizations = json_object_get(result, "OrganizationsDecisionDetail");
	const json_t *boundary = json_object_get(result, "PermissionsBoundaryDecisionDetail");
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(result, "ResourceSpecificResults"), i, row)
		if (!js_is(row, "EvalResourceDecision", "allowed"))
			return false;
	return js_is(result, "EvalDecision", "allowed") &&
	       !js_is(organizations, "AllowedByOrganizations", "false") &&
	       !js_is(boundary, "AllowedByPermissionsBoundary", "false");
}

/* Returns whether something of the statement is not allowed. */
static bool read_results(struct doctor_simulation *simulation, const json_t *results)
{
	const json_t *row;
	bool lacks = false;
	size_t i;

	json_array_foreach (results, i, row) {
		const char *on = js_str(row, "EvalResourceName");

		simulation->asked++;
		if (is_allowed(row))
			continue;
		lacks = true;
		simulation->is_forbidden |= js_is(row, "EvalDecision", "explicitDeny");
		simulation->denied++;
		sb_addf(&simulation->words, "%s%s on %s", simulation->words.len > 0 ? ", " : "",
			js_str(row, "EvalActionName"), on ? on : "*");
	}
	return lacks;
}

static int ask(struct doctor_simulation *simulation, const json_t *statement, struct err **err)
{
	json_auto_t *body = body_of(simulation, statement);
	const json_t *condition = json_object_get(statement, "Condition");
	size_t values = put_context(body, condition, 0);
	bool lacks = false;

	for (size_t i = 0; i < values; i++) {
		json_auto_t *results = NULL;

		if (i > 0)
			put_context(body, condition, i);
		results = doctor_ask(simulation->aws, AWS_SIMULATE_PRINCIPAL_POLICY, body,
				     "EvaluationResults", err);
		if (!results)
			return -1;
		lacks |= read_results(simulation, results);
	}
	if (lacks)
		json_array_append(simulation->missing, (json_t *)(uintptr_t)statement);
	return 0;
}

int doctor_simulate(struct doctor_simulation *simulation, const json_t *policy, struct err **err)
{
	const json_t *statement;
	size_t i;

	simulation->missing = json_array();
	simulation->words = SB_INIT_MAX(WORDS_MAX);
	json_array_foreach (json_object_get(policy, "Statement"), i, statement)
		if (ask(simulation, statement, err) < 0)
			return -1;
	return 0;
}
