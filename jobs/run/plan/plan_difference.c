/* Comparison of plans: see plan_difference.h. */
#include "jobs/run/plan/plan_difference.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/columns.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/graph_key.h"

#define SPEC          "spec."
#define VALUE_COLUMNS 80 /* of a value in an error */

/* Parts of a plan that are compared, and the name under which a difference is told. */
static const struct {
	const char *part, *told;
	bool both; /* compared only where both plans have it */
} compared[] = {
	{ "spec", "spec", false },
	{ "source.kind", "source.kind", false },
	{ "source.commit", "source.commit", false },
	{ "source.dirty", "source.dirty", false },
	{ "source.digest", "source.digest", false },
	{ "compile.ingredients.source", "files", false },
	{ "image.reference", "image.reference", false },
	{ "image.digest", "image.digest", true },
	{ "image.env", "image.env", true },
	{ "compile.compiler", "compiler", true },
	{ "aws", "aws", true }, /* a plan that no run was created from has none */
	{ "workspace", "workspace", false },
};

/* Returns the parts of `plan`, each beneath its name, that are compared with those of `other`. */
static json_t *parts_of(const json_t *plan, const json_t *other)
{
	json_t *all = json_object();

	for (size_t i = 0; i < STK_LENGTH(compared); i++) {
		json_t *value = js_path(plan, compared[i].part);

		if (value && (!compared[i].both || js_path(other, compared[i].part)))
			json_object_set(all, compared[i].told, value);
	}
	return all;
}

/* True for a section that is empty on one side and absent on the other, or has members there, which
 * are rows of their own. */
static bool is_bare(const json_t *row)
{
	const json_t *sides[] = { json_object_get(row, "old"), json_object_get(row, "new") };

	for (size_t i = 0; i < STK_LENGTH(sides); i++)
		if (!json_is_null(sides[i]) &&
		    !(json_is_object(sides[i]) && json_object_size(sides[i]) == 0))
			return false;
	return true;
}

/* True for numbers that differ behind the digits that a journal keeps. */
static bool is_alike(const json_t *row)
{
	AUTO(auto_free) char *old = js_line(json_object_get(row, "old"));
	AUTO(auto_free) char *new = js_line(json_object_get(row, "new"));

	return strcmp(old, new) == 0;
}

json_t *plan_difference(const json_t *old_plan, const json_t *new_plan)
{
	json_auto_t *old_parts = parts_of(old_plan, new_plan);
	json_auto_t *new_parts = parts_of(new_plan, old_plan);
	json_t *rows = graph_key_ingredients_diff(old_parts, new_parts), *row;
	size_t i;

	for (i = json_array_size(rows); i-- > 0;)
		if (is_bare(json_array_get(rows, i)) || is_alike(json_array_get(rows, i)))
			json_array_remove(rows, i);
	json_array_foreach (rows, i, row) {
		const char *field = js_str(row, "field");

		if (text_starts(field, SPEC)) {
			AUTO(auto_free) char *path = mem_copy(field + strlen(SPEC));

			js_put_str(row, "field", path);
		}
	}
	return rows;
}

static void add_value(struct sb *words, const json_t *value)
{
	AUTO(auto_free) char *line = js_line(value);

	columns_fit(words, line, strlen(line), VALUE_COLUMNS, true);
}

char *plan_difference_words(const json_t *difference, size_t most)
{
	struct sb words = SB_INIT;

	for (size_t i = 0; i < json_array_size(difference) && i < most; i++) {
		const json_t *row = json_array_get(difference, i);

		sb_addf(&words, "%s%s: ", i > 0 ? "; " : "", js_str(row, "field"));
		add_value(&words, json_object_get(row, "old"));
		sb_adds(&words, " -> ");
		add_value(&words, json_object_get(row, "new"));
	}
	if (json_array_size(difference) > most)
		sb_addf(&words, ", and %zu more", json_array_size(difference) - most);
	return sb_take(&words);
}
