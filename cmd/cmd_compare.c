/* compare: runs beside each other, by what was measured of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/compare/compare.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/report/measure/quality.h"

/* ---- the runs ---- */

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

	if (check_forms(args, err) < 0 ||
	    (args->given[OPT_TO] &&
	     measure_target_parse(args->value[OPT_TO], &question.target, err) < 0) ||
	    journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    compare_find(&compare, args, COMPARE_RUNS_MAX, journal, err) < 0 ||
	    measure_runs(&compare, journal, &question, err) < 0)
		return -1;
	compare_make(&compare, &question, args->value[OPT_TO]);
	if (args->given[OPT_BREAK_EVEN] && sheet->row_count != 2) {
		err_set(err, EXIT_USAGE, "--break-even needs two rows, and these runs are %zu",
			sheet->row_count);
		return err_hint(err, "name two runs whose settings differ");
	}
	print_sheet(sheet, args);
	if (args->given[OPT_BREAK_EVEN])
		print_break_even(sheet);
	print_rules(sheet);
	return EXIT_DONE;
}
