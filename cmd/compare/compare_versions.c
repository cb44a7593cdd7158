/* Versions of compared runs: see compare_versions.h. */
#include "cmd/compare/compare_versions.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/flow/flow.h"
#include "jobs/run/attempt/versions.h"

#define PREFIX  "versions."
#define PLANNED "compiler."

const json_t *compare_versions_of(const struct measure *measure)
{
	const json_t *attempts = json_object_get(measure->status, "attempts"), *found = NULL;
	const json_t *attempt, *versions;
	size_t i;

	json_array_foreach (attempts, i, attempt) {
		versions = json_object_get(attempt, "versions");
		if (versions && js_is(attempt, "phase", flow_phase_names[PHASE_TRAIN]))
			found = versions;
	}
	return found;
}

/* True if the rows tell this package as one of the compiler that was planned with. */
static bool is_planned(const json_t *rows, const char *name)
{
	AUTO(auto_free) char *field = mem_format(PLANNED "%s", name);
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row)
		if (js_is(row, "field", field))
			return true;
	return false;
}

void compare_versions_add(json_t *rows, const struct measure *base, const struct measure *other)
{
	const json_t *old = compare_versions_of(base), *new = compare_versions_of(other), *row;
	json_auto_t *differing = NULL;
	size_t i;

	if (!old || !new)
		return;
	differing = versions_difference(old, new);
	json_array_foreach (differing, i, row) {
		AUTO(auto_free) char *field = mem_format(PREFIX "%s", js_str(row, "field"));
		json_t *told;

		if (is_planned(rows, js_str(row, "field")))
			continue;
		told = json_copy((json_t *)row);
		js_put_str(told, "field", field);
		json_array_append_new(rows, told);
	}
}

bool compare_versions_is_machine(const char *field)
{
	return strcmp(field, PREFIX "kernel") == 0 || strcmp(field, PREFIX "os") == 0;
}

bool compare_versions_is_one(const char *field)
{
	return text_starts(field, PREFIX);
}
