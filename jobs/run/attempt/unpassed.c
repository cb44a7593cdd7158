/* Looks for variables that a failed command missed: see unpassed.h. */
#include "jobs/run/attempt/unpassed.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/run/plan/own_rows.h"
#include "jobs/run/plan/plan.h"
#include "jobs/spec/fields/names.h"

#define NAMES_MAX 4 /* number of names in a cure */

struct unpassed {
	const json_t *plan, *env;
	json_t *names;
};

static bool receives(const struct unpassed *unpassed, const char *name)
{
	const struct variable_row *row = variable_find(name);

	return (row && row->uses & (VAR_PASSED | VAR_GIVEN)) ||
	       json_object_get(unpassed->env, name) ||
	       json_object_get(json_object_get(unpassed->plan, "secrets"), name);
}

static bool is_listed(const json_t *names, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach (names, i, item)
		if (strcmp(json_string_value(item), name) == 0)
			return true;
	return false;
}

static void consider(void *arg, const char *text, size_t len)
{
	struct unpassed *unpassed = arg;
	AUTO(auto_free) char *name = mem_copy_n(text, len);
	const char *value = getenv(name);

	/* A name that is in pass_env already was not set when the run began. */
	if (value && *value && !receives(unpassed, name) && !names_reserved(name) &&
	    !is_listed(js_path(unpassed->plan, "spec.pass_env"), name) &&
	    !is_listed(unpassed->names, name) && json_array_size(unpassed->names) < NAMES_MAX)
		json_array_append_new(unpassed->names, json_string(name));
}

char *unpassed_hint(const json_t *plan, enum phase phase,
		    const struct failure_classification *classification)
{
	json_auto_t *names = json_array();
	struct unpassed unpassed = {
		plan, json_object_get(plan_phase(plan, flow_phase_names[phase]), "env"), names
	};
	AUTO(sb_release) struct sb list = SB_INIT;
	const json_t *name;
	size_t i;

	/* The author of a row of their own knows the cure better. */
	if (agent_delivery_way(plan) != AGENT_DELIVERY_NONE ||
	    (classification->rule && text_starts(classification->rule, OWN_ROW_PREFIX)))
		return NULL;
	failure_variables(classification, consider, &unpassed);
	json_array_foreach (names, i, name)
		sb_addf(&list, "%s%s", i > 0 ? ", " : "", json_string_value(name));
	if (list.len == 0)
		return NULL;
	return mem_format("%s %s set in your shell, but not passed: add pass_env: [%s]", list.text,
			  json_array_size(names) > 1 ? "are" : "is", list.text);
}
