/* Forms of a comparison: see compare_text.h. */
#include "cmd/compare/compare_text.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/compare/compare_versions.h"
#include "cmd/view/table.h"
#include "jobs/base/text/text.h"
#include "jobs/run/plan/plan_difference.h"
#include "jobs/store/order.h"

#define DIFFERENCES_TOLD 6

/* The form of a figure for people; programs get all digits. */
enum compare_form {
	FORM_COUNT,
	FORM_SECONDS, /* of a step */
	FORM_TIME,
	FORM_RATE,
	FORM_TIMES,   /* 4.34x */
	FORM_PERCENT, /* of x: +334 % */
	FORM_USD,
	FORM_VALUE,
};

/* The figures of a row, in the order of the columns. */
static const struct compare_figure {
	const char *title, *key;
	size_t member;
	enum compare_form form;
	int rank; /* table.h */
} figures[] = {
#define FIGURE(title, key, member, form, rank)                                                     \
	{                                                                                          \
		title, key, offsetof(struct comparison_row, member), form, rank                    \
	}
	FIGURE("SPEED", "speed", x, FORM_TIMES, 0),
	FIGURE("CHANGE", NULL, x, FORM_PERCENT, 0),
	FIGURE("AT LEAST", "speed_low", low, FORM_TIMES, 3),
	FIGURE("AT MOST", "speed_high", high, FORM_TIMES, 3),
	FIGURE("SAMPLES/S", "samples_per_second", samples_rate, FORM_RATE, 2),
	FIGURE("MEAN", "step_seconds_mean", mean, FORM_SECONDS, 1),
	FIGURE("P50", "step_seconds_p50", p50, FORM_SECONDS, 11),
	FIGURE("P95", "step_seconds_p95", p95, FORM_SECONDS, 12),
	FIGURE("STEPS", "steps", steps, FORM_COUNT, 9),
	FIGURE("VALUE", "value", last_value, FORM_VALUE, 4),
	FIGURE("BASE", "base_value", base_value, FORM_VALUE, 14),
	FIGURE("GAP", "gap", gap, FORM_VALUE, 13),
	FIGURE("REACHED", "reached", reached, FORM_TIME, 4),
	FIGURE("FOR", "reached_cost", reached_cost, FORM_USD, 5),
	FIGURE("WALL", "wall", wall, FORM_TIME, 7),
	FIGURE("BILLABLE", "billable", billable, FORM_TIME, 10),
	FIGURE("COST", "cost", cost, FORM_USD, 6),
	FIGURE("SAMPLES/USD", "samples_per_usd", samples_per_usd, FORM_RATE, 8),
	FIGURE("COMPILE", "compile", compile, FORM_TIME, 8),
	FIGURE("SCALING", "efficiency", efficiency, FORM_PERCENT, 5),
#undef FIGURE
};

static double figure_of(const struct comparison_row *row, const struct compare_figure *figure)
{
	double value;

	memcpy(&value, (const char *)row + figure->member, sizeof value);
	return value;
}

/* Returns the run that calls the row if none of its runs counts, with the reason; NULL if some do.
 */
static const struct measure *uncounted(const struct compare_sheet *sheet, size_t at)
{
	const struct measure *first = &sheet->runs[sheet->rows[at].first];

	return first->why ? first : NULL;
}

static const char *verdict_of(const struct compare_sheet *sheet, size_t at)
{
	const struct measure *none = uncounted(sheet, at);

	if (sheet->runs[sheet->rows[at].first].is_debug)
		return "debug run";
	if (none)
		return js_is(none->status, "state", "stopped") ? "stopped" : "not supported";
	return comparison_words[sheet->rows[at].verdict];
}

/* ---- output for people ---- */

static char *time_text(double seconds)
{
	return isinf(seconds) ? mem_copy("never") : text_format_duration((int64_t)(seconds * 1000));
}

char *compare_text_percent(double times)
{
	double percent = (times - 1) * 100;

	return mem_format(fabs(percent) < 99.95 ? "%+.1f %%" : "%+.0f %%", percent);
}

/* The time after which the target was reached, on average of the runs that reached it. */
static char *reached_text(const struct comparison_row *row)
{
	AUTO(auto_free) char *time = time_text(row->reached);

	return row->reached_runs > 0 && row->reached_runs < row->runs
		       ? mem_format("%s (%zu of %zu)", time, row->reached_runs, row->runs)
		       : TAKE(time);
}

/* True for a value that was read, and is not a number: that is no missing value. */
static bool is_read_nan(const struct comparison_row *row, const struct compare_figure *figure)
{
	return figure->form == FORM_VALUE && row->last_step >= 0 &&
	       figure->member != offsetof(struct comparison_row, gap);
}

static char *show(const struct comparison_row *row, const struct compare_figure *figure)
{
	double value = figure_of(row, figure);

	if (isnan(value))
		return is_read_nan(row, figure) ? mem_copy("nan") : NULL;
	switch (figure->form) {
	case FORM_COUNT:
		return mem_format("%.0f", value);
	case FORM_SECONDS:
		return value < 1 ? mem_format("%.4g ms", value * 1000)
				 : mem_format("%.4g s", value);
	case FORM_TIME:
		return figure->member == offsetof(struct comparison_row, reached)
			       ? reached_text(row)
			       : time_text(value);
	case FORM_RATE:
		return mem_format(value < 9999.5 ? "%.4g" : "%.0f", value);
	case FORM_TIMES:
		return mem_format("%.2fx", value);
	case FORM_PERCENT:
		return figure->key ? mem_format("%.0f %%", value * 100)
				   : compare_text_percent(value);
	case FORM_USD:
		return mem_format("%.2f", value);
	case FORM_VALUE:
		break;
	}
	return mem_format("%.6g", value);
}

static char *run_text(const struct compare_sheet *sheet, size_t row)
{
	return mem_format("%s%s", sheet->runs[sheet->rows[row].first].run,
			  sheet->rows[row].is_best ? " (best)" : "");
}

/* True if no row has the figure. */
static bool is_empty(const struct compare_sheet *sheet, const struct compare_figure *figure)
{
	for (size_t i = 0; i < sheet->row_count; i++)
		if (!isnan(figure_of(&sheet->rows[i], figure)) ||
		    is_read_nan(&sheet->rows[i], figure))
			return false;
	return true;
}

/* Returns the last line that says anything: programs name the error there, below usage and
 * traceback. The caller frees it. */
static char *last_line(const char *text)
{
	size_t end = strlen(text), begin;

	while (end > 0 && strchr(" \t\r\n", text[end - 1]))
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n';)
		begin--;
	while (begin < end && strchr(" \t", text[begin]))
		begin++;
	return mem_copy_n(text + begin, end - begin);
}

char *compare_text_verdict(const struct compare_sheet *sheet, size_t at)
{
	const struct measure *none = uncounted(sheet, at);
	const char *verdict = verdict_of(sheet, at);

	if (none) {
		AUTO(auto_free) char *why = last_line(none->why);

		return mem_format("%s: %s", verdict, why);
	}
	return mem_format("%s%s", verdict,
			  sheet->rows[at].same_quality ? "" : ", quality: not assessed");
}

void compare_text_table(const struct compare_sheet *sheet, size_t width,
			const struct text_style *style, struct sb *ret)
{
	AUTO(table_release) struct table table = { 0 };

	table_add_column(&table, "RUN", 0, 12);
	table_add_column(&table, "RUNS", 3, 0);
	for (size_t k = 0; k < STK_LENGTH(figures); k++)
		if (!is_empty(sheet, &figures[k]))
			table_add_column(&table, figures[k].title, figures[k].rank, 0);
	table_add_column(&table, "VERDICT", 0, 12);
	for (size_t i = 0; i < sheet->row_count; i++) {
		const struct comparison_row *row = &sheet->rows[i];
		size_t column = 2;

		table_add_row(&table, MARK_NONE);
		table_set(&table, 0, run_text(sheet, i));
		table_set(&table, 1, mem_format("%zu", row->runs));
		for (size_t k = 0; k < STK_LENGTH(figures); k++)
			if (!is_empty(sheet, &figures[k]))
				table_set(&table, column++, show(row, &figures[k]));
		table_set(&table, column, compare_text_verdict(sheet, i));
	}
	table_print(&table, width, sheet->row_count, style, ret);
}

void compare_text_differences(const struct compare_sheet *sheet, struct sb *ret)
{
	for (size_t i = 0; i < sheet->row_count; i++) {
		AUTO(auto_free)
		char *words =
			i == 0 ? mem_copy("baseline")
			       : plan_difference_words(sheet->differences[i], DIFFERENCES_TOLD);

		sb_addf(ret, "%s: %s%s\n", sheet->runs[sheet->rows[i].first].run,
			*words ? words : "no setting differs",
			uncounted(sheet, i) ||
					compare_versions_of(&sheet->runs[sheet->rows[i].first])
				? ""
				: "; versions: not known, as no agent told them");
	}
}

static char *lower(const char *title)
{
	char *text = mem_copy(title);

	for (char *c = text; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return text;
}

json_t *compare_text_cells(const struct compare_sheet *sheet)
{
	json_t *cells = json_object(), *columns = json_array(), *rows = json_array();

	json_array_append_new(columns, json_string("run"));
	json_array_append_new(columns, json_string("verdict"));
	json_array_append_new(columns, json_string("runs"));
	for (size_t k = 0; k < STK_LENGTH(figures); k++)
		if (!is_empty(sheet, &figures[k])) {
			AUTO(auto_free) char *title = lower(figures[k].title);

			json_array_append_new(columns, json_string(title));
		}
	for (size_t i = 0; i < sheet->row_count; i++) {
		AUTO(auto_free) char *run = run_text(sheet, i);
		AUTO(auto_free) char *verdict = compare_text_verdict(sheet, i);
		json_t *row = json_array();

		json_array_append_new(row, js_text(run, strlen(run)));
		json_array_append_new(row, js_text(verdict, strlen(verdict)));
		json_array_append_new(row, json_sprintf("%zu", sheet->rows[i].runs));

		for (size_t k = 0; k < STK_LENGTH(figures); k++)
			if (!is_empty(sheet, &figures[k])) {
				AUTO(auto_free) char *text = show(&sheet->rows[i], &figures[k]);

				json_array_append_new(row, text ? json_string(text) : json_null());
			}
		json_array_append_new(rows, row);
		if (sheet->rows[i].is_best)
			js_put(cells, "best", json_integer((json_int_t)i));
	}
	js_put(cells, "columns", columns);
	js_put(cells, "rows", rows);
	return cells;
}

/* Appends a cell that cannot leave its column. */
static void add_markdown(struct sb *ret, const char *text)
{
	sb_adds(ret, " ");
	for (; text && *text; text++) {
		if (*text == '|')
			sb_addc(ret, '\\');
		sb_addc(ret, *text == '\n' ? ' ' : *text);
	}
	sb_adds(ret, text ? " |" : "- |");
}

void compare_text_markdown(const struct compare_sheet *sheet, struct sb *ret)
{
	size_t columns = 3;

	sb_adds(ret, "| run | runs |");
	for (size_t k = 0; k < STK_LENGTH(figures); k++)
		if (!is_empty(sheet, &figures[k])) {
			AUTO(auto_free) char *title = lower(figures[k].title);

			sb_addf(ret, " %s |", title);
			columns++;
		}
	sb_adds(ret, " verdict |\n|");
	for (size_t k = 0; k < columns; k++)
		sb_adds(ret, k >= 1 && k + 1 < columns ? " ---: |" : " --- |");
	sb_addc(ret, '\n');
	for (size_t i = 0; i < sheet->row_count; i++) {
		AUTO(auto_free) char *run = run_text(sheet, i);
		AUTO(auto_free) char *verdict = compare_text_verdict(sheet, i);

		sb_addc(ret, '|');
		add_markdown(ret, run);
		sb_addf(ret, " %zu |", sheet->rows[i].runs);
		for (size_t k = 0; k < STK_LENGTH(figures); k++)
			if (!is_empty(sheet, &figures[k])) {
				AUTO(auto_free) char *text = show(&sheet->rows[i], &figures[k]);

				add_markdown(ret, text);
			}
		add_markdown(ret, verdict);
		sb_addc(ret, '\n');
	}
}

/* ---- output for programs ---- */

static void add_csv_step(struct sb *ret, int64_t step)
{
	sb_addc(ret, ',');
	if (step >= 0)
		sb_addf(ret, "%lld", (long long)step);
}

void compare_text_csv(const struct compare_sheet *sheet, struct sb *ret)
{
	sb_adds(ret, "run,runs");
	for (size_t k = 0; k < STK_LENGTH(figures); k++)
		if (figures[k].key)
			sb_addf(ret, ",%s", figures[k].key);
	sb_adds(ret, ",value_step,gap_step,verdict,same_quality,reached_runs\n");
	for (size_t i = 0; i < sheet->row_count; i++) {
		const struct comparison_row *row = &sheet->rows[i];

		sb_addf(ret, "%s,%zu", sheet->runs[row->first].run, row->runs);
		for (size_t k = 0; k < STK_LENGTH(figures); k++) {
			double value = figure_of(row, &figures[k]);
			char text[TEXT_NUMBER];

			if (figures[k].key)
				sb_addf(ret, ",%s",
					!isfinite(value) ? "" : text_number(value, text));
		}
		add_csv_step(ret, row->last_step);
		add_csv_step(ret, row->gap_step);
		sb_addf(ret, ",%s,%s,", verdict_of(sheet, i), row->same_quality ? "true" : "false");
		if (sheet->target)
			sb_addf(ret, "%zu", row->reached_runs);
		sb_addc(ret, '\n');
	}
}

json_t *compare_text_json(const struct compare_sheet *sheet, size_t at)
{
	const struct comparison_row *row = &sheet->rows[at];
	json_t *object = json_object(), *runs = json_array();

	js_put_str(object, "run", sheet->runs[row->first].run);
	for (size_t i = 0; i < sheet->run_count; i++)
		if (sheet->runs[i].row == at && sheet->runs[i].plan)
			json_array_append_new(runs, json_string(sheet->runs[i].run));
	js_put(object, "runs", runs);
	for (size_t k = 0; k < STK_LENGTH(figures); k++) {
		double value = figure_of(row, &figures[k]);

		if (figures[k].key && isfinite(value))
			js_put(object, figures[k].key, js_number(value));
	}
	if (sheet->runs[row->first].by_epoch)
		js_put_str(object, "unit", METRIC_EPOCH);
	if (row->last_step >= 0)
		js_put(object, "value_step", json_integer(row->last_step));
	if (row->gap_step >= 0)
		js_put(object, "gap_step", json_integer(row->gap_step));
	if (sheet->target)
		js_put(object, "reached_runs", json_integer((json_int_t)row->reached_runs));
	js_put_str(object, "verdict", verdict_of(sheet, at));
	if (uncounted(sheet, at))
		js_put_str(object, "why", uncounted(sheet, at)->why);
	js_put(object, "same_quality", json_boolean(row->same_quality));
	js_put(object, "best", json_boolean(row->is_best));
	js_put(object, "differences", json_incref(sheet->differences[at]));
	js_put(object, "versions",
	       json_incref((json_t *)compare_versions_of(&sheet->runs[row->first])));
	return object;
}
