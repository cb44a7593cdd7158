/* compare: runs beside each other, by what was measured of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/compare/compare_text.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/report/measure/quality.h"
#include "jobs/run/plan/plan_difference.h"

#define RUNS_MAX 2000

struct compare {
	struct measure *runs;
	size_t count;
	struct compare_sheet sheet;
};

static void compare_release(struct compare *compare)
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

static int find_runs(struct compare *compare, const struct args *args, struct journal *journal,
		     struct err **err)
{
	if (args->operand_count > RUNS_MAX) {
		err_set(err, EXIT_USAGE, "at most %d runs can be compared", RUNS_MAX);
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

static int measure_runs(struct compare *compare, struct journal *journal,
			const struct measure_question *question, struct err **err)
{
	for (size_t i = 0; i < compare->count; i++) {
		struct measure *measure = &compare->runs[i];
		const char *state;

		if (measure_take(journal, question, measure, err) < 0)
			return -1;
		state = js_str(measure->status, "state");
		if (!json_object_get(measure->status, "exit_code"))
			out_warning("run %s has not ended (%s): its figures are those of now",
				    measure->run, state ? state : "state not known");
		else if (!js_is(measure->status, "state", "succeeded"))
			out_warning(
				"run %s did not succeed (%s): it is compared by what it has done",
				measure->run, state);
		if (measure->measured.steps == 0)
			out_warning(
				"run %s: no step is measured behind the first ten of an attempt",
				measure->run);
	}
	return 0;
}

/* ---- output ---- */

static void print_break_even(const struct compare_sheet *sheet)
{
	const struct comparison_row *a = &sheet->rows[0], *b = &sheet->rows[1];
	double steps = comparison_break_even(a, b);
	const char *slower = sheet->runs[(a->compile > b->compile ? a : b)->first].run;
	json_auto_t *object = json_object();

	if (out_is_json()) {
		js_put_str(object, "run", slower);
		if (isfinite(steps))
			js_put(object, "break_even_steps", js_number(ceil(steps)));
		if (!isnan(steps))
			js_put(object, "pays", json_boolean(isfinite(steps)));
		out_json(object);
	} else if (isnan(steps)) {
		out_line("break-even: not known: steps and compile time of both runs are needed");
	} else if (isinf(steps)) {
		out_line("break-even: never: %s compiles longer, and its steps are not faster",
			 slower);
	} else {
		out_line("break-even: the longer compilation of %s pays from step %.0f on", slower,
			 ceil(steps));
	}
}

static void print_rules(const struct compare_sheet *sheet)
{
	bool all_same = true;

	for (size_t i = 0; i < sheet->row_count; i++)
		all_same &= sheet->rows[i].same_quality;
	out_note(STEP_TIMES_RULE);
	if (sheet->row_count < sheet->run_count)
		out_note("intervals: %.0f %% for all rows together, by Student's t over the "
			 "logarithms of the speeds of repeats, their spread pooled over the rows",
			 COMPARISON_LEVEL * 100);
	if (!all_same)
		out_note(QUALITY_RULE);
	if (sheet->metric && sheet->row_count > 1)
		out_note("VALUE is %s at the last step that both have, GAP its largest difference "
			 "at a step",
			 sheet->metric);
}

static void print_sheet(const struct compare_sheet *sheet, const struct args *args)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(SIZE_MAX / 2);

	if (out_is_json()) {
		for (size_t i = 0; i < sheet->row_count; i++) {
			json_auto_t *row = compare_text_json(sheet, i);

			out_json(row);
		}
		return;
	}
	if (args->given[OPT_CSV]) {
		compare_text_csv(sheet, &text);
	} else if (args->given[OPT_MARKDOWN]) {
		compare_text_markdown(sheet, &text);
	} else {
		compare_text_differences(sheet, &text);
		sb_addc(&text, '\n');
		compare_text_table(sheet, out_width(), out_style(), &text);
	}
	out_block(text.text);
}

static int check_forms(const struct args *args, struct err **err)
{
	int forms = out_is_json() + args->given[OPT_CSV] + args->given[OPT_MARKDOWN];

	if (forms <= 1)
		return 0;
	err_set(err, EXIT_USAGE, "--json, --csv and --markdown exclude each other");
	return err_hint(err, "give one of them");
}

int cmd_compare(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(compare_release) struct compare compare = { 0 };
	struct measure_question question = { .metric = args->value[OPT_METRIC] };
	struct compare_sheet *sheet = &compare.sheet;
	AUTO(auto_free) struct measured_run *measured = NULL;

	if (check_forms(args, err) < 0 ||
	    (args->given[OPT_TO] &&
	     measure_target_parse(args->value[OPT_TO], &question.target, err) < 0) ||
	    journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    find_runs(&compare, args, journal, err) < 0 ||
	    measure_runs(&compare, journal, &question, err) < 0)
		return -1;
	make_rows(&compare);
	if (args->given[OPT_BREAK_EVEN] && sheet->row_count != 2) {
		err_set(err, EXIT_USAGE, "--break-even needs two rows, and these runs are %zu",
			sheet->row_count);
		return err_hint(err, "name two runs whose settings differ");
	}
	measured = mem_zero(compare.count, sizeof *measured);
	for (size_t i = 0; i < compare.count; i++)
		measured[i] = compare.runs[i].measured;
	comparison_make(measured, compare.count, sheet->rows, sheet->row_count);
	sheet->runs = compare.runs;
	sheet->run_count = compare.count;
	sheet->metric = question.metric              ? question.metric
			: compare.runs[0].has_metric ? "loss"
						     : NULL;
	sheet->target = args->value[OPT_TO];
	print_sheet(sheet, args);
	if (args->given[OPT_BREAK_EVEN])
		print_break_even(sheet);
	print_rules(sheet);
	return EXIT_DONE;
}
