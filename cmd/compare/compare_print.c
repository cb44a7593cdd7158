/* Printing a comparison: see compare_print.h. */
#include "cmd/compare/compare_print.h"

#include <math.h>

#include "cmd/compare/compare_runs.h"
#include "cmd/screen/out.h"
#include "jobs/report/measure/quality.h"

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
	} else if (a->compile == b->compile) {
		out_line("break-even: none: neither compiles longer");
	} else if (isnan(steps)) {
		out_line("break-even: not known: steps and compile time of both runs are needed");
	} else if (isinf(steps)) {
		out_line("break-even: never: %s compiles longer, and it is not faster", slower);
	} else {
		out_line("break-even: the longer compilation of %s pays from step %.0f on", slower,
			 ceil(steps));
	}
}

/* True if the log of each run that counts tells the speed. */
static bool is_told(const struct compare_sheet *sheet)
{
	for (size_t i = 0; i < sheet->run_count; i++)
		if (!sheet->runs[i].why && !(sheet->runs[i].measured.rate > 0))
			return false;
	return sheet->throughput;
}

static void print_rules(const struct compare_sheet *sheet)
{
	bool all_same = true, any_steps = false, any_epochs = false;

	for (size_t i = 0; i < sheet->row_count; i++)
		all_same &= sheet->rows[i].same_quality;
	for (size_t i = 0; i < sheet->run_count; i++) {
		any_steps |= !sheet->runs[i].by_epoch;
		any_epochs |= sheet->runs[i].by_epoch;
	}
	if (sheet->step_time)
		out_note("step times: %s, as the log tells it, without the first %d steps, or the "
			 "first epoch, of each attempt",
			 sheet->step_time, STEP_TIMES_WARM);
	if (!sheet->step_time && any_steps)
		out_note("%s", STEP_TIMES_RULE);
	if (!sheet->step_time && any_epochs)
		out_note("%s", STEP_TIMES_EPOCHS_RULE);
	if (is_told(sheet))
		out_note("speed: %s, as the log tells it, without the first %d steps, or the first "
			 "epoch, of each attempt; of several values the harmonic mean",
			 sheet->throughput, STEP_TIMES_WARM);
	if (compare_runs_benchmarks(sheet) > 0)
		out_note(STEP_TIMES_BENCHMARK_RULE);
	if (sheet->row_count < sheet->run_count)
		out_note("%s", COMPARISON_RULE);
	if (!all_same)
		out_note("%s", QUALITY_RULE);
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
		text.len -= text.len > 0; /* out_block() ends the last line */
		text.text[text.len] = '\0';
	} else if (args->given[OPT_MARKDOWN]) {
		compare_text_markdown(sheet, &text);
	} else {
		compare_text_differences(sheet, &text);
		sb_addc(&text, '\n');
		compare_text_table(sheet, out_width(), out_style(), &text);
	}
	out_block(text.text);
}

void compare_print(const struct compare_sheet *sheet, const struct args *args)
{
	print_sheet(sheet, args);
	if (args->given[OPT_BREAK_EVEN])
		print_break_even(sheet);
	print_rules(sheet);
}

int compare_print_check(const struct args *args, struct err **err)
{
	int forms = out_is_json() + args->given[OPT_CSV] + args->given[OPT_MARKDOWN];

	if (forms <= 1)
		return 0;
	err_set(err, EXIT_USAGE, "--json, --csv and --markdown exclude each other");
	return err_hint(err, "give one of them");
}
