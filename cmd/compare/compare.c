/* Runs beside each other: see compare.h. */
#include "cmd/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/report/measure/quality.h"
#include "jobs/run/plan/plan_difference.h"

void compare_release(struct compare *compare)
{
	for (size_t i = 0; i < compare->count; i++)
		measure_release(&compare->runs[i]);
	for (size_t i = 0; i < compare->sheet.row_count; i++)
		json_decref(compare->sheet.differences[i]);
	free(compare->runs);
	free(compare->sheet.rows);
	free(compare->sheet.differences);
}

/* ---- rows ---- */

/* The last word of a path. */
static const char *last_word(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

/* True for a difference that makes no other job: repeats have it, too. */
static bool is_of_repeats(const char *field)
{
	static const char *const fields[] = { "name", "workspace" };

	for (size_t i = 0; i < STK_LENGTH(fields); i++)
		if (strcmp(field, fields[i]) == 0)
			return true;
	return strcmp(last_word(field), "seed") == 0;
}

/* Returns what differs, without what differs between repeats; a new array. */
static json_t *difference(const struct measure *base, const struct measure *other)
{
	json_auto_t *all = plan_difference(base->plan, other->plan);
	json_t *kept = json_array(), *row;
	size_t i;

	json_array_foreach (all, i, row)
		if (!is_of_repeats(js_str(row, "field")))
			json_array_append(kept, row);
	return kept;
}

static bool differs(const struct measure *a, const struct measure *b)
{
	json_auto_t *rows = difference(a, b);

	return json_array_size(rows) > 0;
}

static bool is_same_quality(const json_t *differences)
{
	const json_t *row;
	size_t i;

	json_array_foreach (differences, i, row) {
		AUTO(auto_free) char *old = js_line(json_object_get(row, "old"));
		AUTO(auto_free) char *new = js_line(json_object_get(row, "new"));

		if (quality_depends_on(js_str(row, "field"), old, new))
			return false;
	}
	return true;
}

static bool is_only_workers(const json_t *differences)
{
	const json_t *row;
	size_t i;

	json_array_foreach (differences, i, row)
		if (!js_is(row, "field", "resources.nodes"))
			return false;
	return json_array_size(differences) > 0;
}

/* Puts each run into a row: that of the first run with its settings. */
static void make_rows(struct compare *compare)
{
	struct compare_sheet *sheet = &compare->sheet;

	sheet->rows = mem_zero(compare->count, sizeof *sheet->rows);
	sheet->differences = mem_zero(compare->count, sizeof *sheet->differences);
	for (size_t i = 0; i < compare->count; i++) {
		size_t row = 0;

		while (row < sheet->row_count &&
		       differs(&compare->runs[sheet->rows[row].first], &compare->runs[i]))
			row++;
		compare->runs[i].measured.row = row;
		if (row == sheet->row_count) {
			json_t *differences = difference(&compare->runs[0], &compare->runs[i]);

			sheet->rows[sheet->row_count] = (struct comparison_row){
				.first = i,
				.same_quality = is_same_quality(differences),
				.only_workers = is_only_workers(differences),
			};
			sheet->differences[sheet->row_count++] = differences;
		}
		sheet->rows[row].runs++;
	}
}

/* ---- the runs ---- */

int compare_find(struct compare *compare, const struct args *args, int most,
		 struct journal *journal, struct err **err)
{
	if (args->operand_count > most) {
		err_set(err, EXIT_USAGE, "at most %d runs can be compared", most);
		return err_hint(err, "name fewer of them");
	}
	compare->runs = mem_zero((size_t)args->operand_count, sizeof *compare->runs);
	for (int i = 0; i < args->operand_count; i++) {
		struct measure *measure = &compare->runs[compare->count];

		if (journal_resolve(journal, args->operands[i], measure->run, err) < 0)
			return -1;
		for (size_t k = 0; k < compare->count; k++)
			if (strcmp(compare->runs[k].run, measure->run) == 0) {
				err_set(err, EXIT_USAGE, "run %s is named twice", measure->run);
				return err_hint(err, "a repeat is a run of its own");
			}
		compare->count++;
	}
	return 0;
}

/* ---- the sheet ---- */

void compare_make(struct compare *compare, const struct measure_question *question,
		  const char *target)
{
	struct compare_sheet *sheet = &compare->sheet;
	struct measured_run *measured = mem_zero(compare->count, sizeof *measured);

	make_rows(compare);
	for (size_t i = 0; i < compare->count; i++)
		measured[i] = compare->runs[i].measured;
	comparison_make(measured, compare->count, sheet->rows, sheet->row_count);
	free(measured);
	sheet->runs = compare->runs;
	sheet->run_count = compare->count;
	sheet->metric = question->metric              ? question->metric
			: compare->runs[0].has_metric ? "loss"
						      : NULL;
	sheet->target = target;
}
