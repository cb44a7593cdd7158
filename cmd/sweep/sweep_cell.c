/* Cells as specs: see sweep_cell.h. */
#include "cmd/sweep/sweep_cell.h"

#include <stdlib.h>

/* Sets the error to the first problem that is one. */
static int set_problem(const struct problems *problems, enum exit_code code, struct err **err)
{
	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->list[i];

		if (problem->lint && code == EXIT_SPEC)
			continue;
		err_set(err, code, "%s", problem->message);
		if (problem->line > 0) /* not by an override: the cell is named already */
			err_at(err, problem->file, problem->line, problem->column);
		return problem->hint ? err_hint(err, "%s", problem->hint) : -1;
	}
	return err_set(err, code, "the spec is invalid");
}

static int load_cell(const struct spec *spec, const json_t *sets, struct spec **ret,
		     struct err **err)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(auto_strv) char **all = mem_zero(1, sizeof *all);
	size_t count = 0, i;
	json_t *set;

	json_array_foreach (sets, i, set)
		auto_strv_add(&all, &count, json_string_value(set));
	if (spec_with(spec, all, ret, &problems) < 0)
		return set_problem(&problems, EXIT_SPEC, err);
	return 0;
}

int sweep_cell_plan(const struct spec *spec, const json_t *sets, const struct journal *journal,
		    struct plan **ret, struct err **err)
{
	AUTO(problems_release) struct problems not_yet = { 0 };
	AUTO(spec_freep) struct spec *cell = NULL;

	if (load_cell(spec, sets, &cell, err) < 0)
		return -1;
	if (spec_not_yet(cell, &not_yet) > 0)
		return set_problem(&not_yet, EXIT_REFUSED, err);
	return plan_make(cell, journal, ret, err);
}

int sweep_cell_check(const struct spec *spec, const json_t *sweep, struct err **err)
{
	json_t *cell;
	size_t i;

	json_array_foreach (json_object_get(sweep, "cells"), i, cell) {
		AUTO(spec_freep) struct spec *loaded = NULL;

		if (load_cell(spec, json_object_get(cell, "sets"), &loaded, err) < 0)
			return err_wrap(err, "cell %zu (%s)", i + 1, js_str(cell, "name"));
	}
	return 0;
}
