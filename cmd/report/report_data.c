/* The data of a report: see report_data.h. */
#include "cmd/report/report_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/compare/compare_runs.h"
#include "cmd/compare/compare_versions.h"
#include "cmd/report/course.h"
#include "cmd/report/curves.h"
#include "cmd/report/node_usage.h"
#include "cmd/view/reading_line.h"
#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/graph_key.h"
#include "jobs/report/measure/quality.h"
#include "jobs/run/plan/plan_difference.h"

#define DIFFERENCES_TOLD 40
#define VERSIONS_BYTES   ((size_t)8000)

/* ---- measuring ---- */

/* Collects what a report shows of a run while the run is measured. */
struct seen {
	struct curves *curves;
	struct course course;
};

static void on_event(void *arg, const struct event *ev, const json_t *row)
{
	struct seen *seen = arg;

	if (ev->kind == EV_RUN_CREATED)
		seen->curves->begun_ms = ev->at.ms;
	course_add(&seen->course, ev, row);
}

static void on_series(void *arg, const struct run_series *series)
{
	curves_series(((struct seen *)arg)->curves, series);
}

static void on_reading(void *arg, const struct run_reading *reading)
{
	curves_reading(((struct seen *)arg)->curves, reading);
}

static void on_span(void *arg, const struct step_span *span, const struct run_reading *reading)
{
	curves_span(((struct seen *)arg)->curves, span, reading);
}

/* ---- a run ---- */

static void put_real(json_t *object, const char *key, double value)
{
	if (isfinite(value))
		js_put(object, key, json_real(value));
}

static json_t *steps_of(const struct measured_run *measured)
{
	json_t *steps = json_object();

	put_real(steps, "steps", measured->steps);
	put_real(steps, "mean", measured->mean);
	put_real(steps, "p50", measured->p50);
	put_real(steps, "p95", measured->p95);
	return steps;
}

static bool has_ended(const struct measure *measure)
{
	return json_object_get(measure->status, "exit_code") != NULL;
}

static void add_loss(json_t *notes, const struct measure *measure)
{
	AUTO(sb_release) struct sb note = SB_INIT_MAX(400);

	sb_adds(&note, "The service has lost lines of the log, and readings with them: ");
	reading_line_add_loss(&note, &measure->loss);
	if (measure->loss_count > 1)
		sb_addf(&note, ", and at %zu more places", measure->loss_count - 1);
	sb_addc(&note, '.');
	json_array_append_new(notes, json_string(note.text));
}

/* The runs of a sweep are many: those that went well are told in one sentence. */
#define OUTCOMES_TOLD 3

static json_t *notes_of(const struct measure *measure)
{
	json_t *notes = json_array();

	if (measure->is_debug)
		json_array_append_new(
			notes, json_string("This is a debug run ('debug: true'): it is in no "
					   "comparison, and its times mean nothing."));
	if (measure->is_benchmark)
		json_array_append_new(
			notes, json_string("This is a benchmark ('benchmark: true'): no checkpoint "
					   "was uploaded while its command ran, and no step "
					   "is measured in which it saved."));
	if (!has_ended(measure))
		json_array_append_new(notes,
				      json_string("This run goes on: its figures are those of "
						  "the moment at which the report was made."));
	if (json_array_size(json_object_get(measure->plan, "metrics")) == 0)
		json_array_append_new(notes, json_string("The spec has no metrics, so there are no "
							 "curves and no step times: 'stoker help "
							 "metrics'."));
	else if (!measure->is_debug && !(measure->measured.steps > 0))
		json_array_append_new(
			notes, json_string(measure->by_epoch
						   ? "No time of an epoch is known behind the "
						     "first epoch of an attempt."
						   : "No step time is known behind the first ten "
						     "steps of an attempt."));
	if (measure->loss_count > 0)
		add_loss(notes, measure);
	return notes;
}

/* Returns the plan without values whose names look secret. */
static json_t *plan_of(const json_t *plan)
{
	json_t *copy = json_deep_copy(plan);

	graph_key_ingredients_hide_secrets(copy);
	return copy;
}

/* Returns the versions of the run, and those of nodes that differ, in words. */
static json_t *versions_of(const struct measure *measure)
{
	const json_t *attempts = json_object_get(measure->status, "attempts"), *attempt, *row;
	const json_t *known = compare_versions_of(measure);
	AUTO(sb_release) struct sb words = SB_INIT_MAX(VERSIONS_BYTES);
	const char *name;
	json_t *version;
	size_t i, k;

	if (!known)
		return json_string("not known: no agent told them");
	json_object_foreach ((json_t *)known, name, version)
		sb_addf(&words, "%s%s %s", words.len > 0 ? ", " : "", name,
			json_string_value(version));
	json_array_foreach (attempts, i, attempt)
		json_array_foreach (json_object_get(attempt, "elsewhere"), k, row)
			sb_addf(&words, "; in %s %lld node %lld has %s %s",
				js_str(attempt, "phase"), (long long)js_int(attempt, "attempt", 0),
				(long long)js_int(row, "node", 0), js_str(row, "field"),
				js_str(row, "new") ? js_str(row, "new") : "none");
	return js_text(words.text, words.len);
}

static json_t *run_of(const struct measure *measure, struct course *course)
{
	json_t *run = json_object();

	js_put_str(run, "run", measure->run);
	js_put(run, "status", json_incref(measure->status));
	js_put(run, "plan", plan_of(measure->plan));
	js_put(run, "notes", notes_of(measure));
	js_put(run, "versions", versions_of(measure));
	js_put(run, "steps", steps_of(&measure->measured));
	course_put(course, clock_utc_now(), has_ended(measure), run);
	return run;
}

/* ---- the whole ---- */

static void add_text(json_t *array, char *text)
{
	json_array_append_new(array, js_text(text, strlen(text)));
	free(text);
}

/* A sentence about how a run went. */
static char *outcome_of(const struct measure *measure)
{
	const json_t *status = measure->status;
	const char *state = js_str(status, "state"), *reason = js_str(status, "reason");
	double total = js_real(json_object_get(status, "ledger"), "total", 0);
	AUTO(auto_free) char *time = text_format_duration((int64_t)(total * 1000));
	AUTO(auto_free)
	char *cost = json_object_get(json_object_get(status, "cost"), "accrued")
			     ? mem_format(", %.2f USD",
					  js_real(json_object_get(status, "cost"), "accrued", 0))
			     : mem_copy("");

	if (!status)
		return mem_format("Run %s never began: %s.", measure->run, measure->why);
	return mem_format("Run %s: %s%s%s, after %s%s.", measure->run, state ? state : "not known",
			  reason ? ": " : "", reason ? reason : "", time, cost);
}

/* Returns the judgement of the comparison about a row. */
static char *judgement_of(const struct compare *compare, size_t at)
{
	const struct compare_sheet *sheet = &compare->sheet;
	const struct comparison_row *row = &sheet->rows[at];
	const char *run = compare->runs[row->first].run;
	const char *base = compare->runs[sheet->rows[0].first].run;
	AUTO(auto_free) char *verdict = compare_text_verdict(sheet, at);
	AUTO(auto_free) char *change = compare_text_percent(row->x);
	const char *quality = row->same_quality ? "" : "; quality: not assessed";

	if (compare->runs[row->first].is_debug || compare->runs[sheet->rows[0].first].is_debug)
		return mem_format("%s against %s: not compared, as %s is a debug run.", run, base,
				  compare->runs[row->first].is_debug ? run : base);

	if (row->verdict == COMPARISON_FASTER || row->verdict == COMPARISON_SLOWER)
		return mem_format("%s is %s than %s: %.2fx (%s), between %.2fx and %.2fx%s%s.", run,
				  comparison_words[row->verdict], base, row->x, change, row->low,
				  row->high, row->is_best ? "; it is the best" : "", quality);
	if (isfinite(row->x))
		return mem_format("%s against %s: %s; %.2fx (%s) as measured.", run, base, verdict,
				  row->x, change);
	return mem_format("%s: %s.", run, verdict);
}

/* Answers what a team asks first: which row to take. */
static char *best_of(const struct compare *compare)
{
	const struct compare_sheet *sheet = &compare->sheet;
	const char *base = compare->runs[sheet->rows[0].first].run;

	for (size_t i = 1; i < sheet->row_count; i++) {
		AUTO(auto_free) char *words = NULL;
		AUTO(auto_free) char *change = NULL;

		if (!sheet->rows[i].is_best)
			continue;
		words = plan_difference_words(sheet->differences[i], DIFFERENCES_TOLD);
		change = compare_text_percent(sheet->rows[i].x);
		return mem_format("The best is %s, %.2fx (%s) as fast as %s, with %s.",
				  compare->runs[sheet->rows[i].first].run, sheet->rows[i].x, change,
				  base, words);
	}
	return mem_format("No row is shown to be faster than %s with the same quality.", base);
}

/* Adds how the runs went: each, or of many those that did not succeed and how many did. */
static void add_outcomes(const struct compare *compare, json_t *verdict)
{
	size_t succeeded = 0;
	double cost = 0;

	for (size_t i = 0; i < compare->count; i++) {
		const json_t *status = compare->runs[i].status;
		bool well = js_is(status, "state", "succeeded");

		succeeded += well;
		cost += js_real(json_object_get(status, "cost"), "accrued", 0);
		if (!well || compare->count <= OUTCOMES_TOLD)
			add_text(verdict, outcome_of(&compare->runs[i]));
	}
	if (compare->count <= OUTCOMES_TOLD)
		return;
	add_text(verdict,
		 cost > 0 ? mem_format("%zu of %zu runs succeeded; all cost %.2f USD.", succeeded,
				       compare->count, cost)
			  : mem_format("%zu of %zu runs succeeded.", succeeded, compare->count));
}

static json_t *verdict_of(const struct compare *compare, const json_t *runs)
{
	json_t *verdict = json_array(), *run;
	size_t at;

	if (compare->sheet.row_count > 1)
		add_text(verdict, best_of(compare));
	for (size_t i = 1; i < compare->sheet.row_count; i++)
		add_text(verdict, judgement_of(compare, i));
	add_outcomes(compare, verdict);
	json_array_foreach (runs, at, run)
		node_usage_verdict(run, verdict);
	return verdict;
}

static json_t *rules_of(const struct compare *compare)
{
	const struct compare_sheet *sheet = &compare->sheet;
	json_t *rules = json_array();
	bool any_steps = false, any_epochs = false;

	for (size_t i = 0; i < compare->count; i++) {
		any_steps |= !compare->runs[i].by_epoch;
		any_epochs |= compare->runs[i].by_epoch;
	}
	if (any_steps)
		json_array_append_new(rules, json_string(STEP_TIMES_RULE));
	if (any_epochs)
		json_array_append_new(rules, json_string(STEP_TIMES_EPOCHS_RULE));
	if (compare_runs_benchmarks(sheet) > 0)
		json_array_append_new(rules, json_string(STEP_TIMES_BENCHMARK_RULE));
	if (compare->count > 1 && sheet->row_count < sheet->run_count)
		json_array_append_new(rules, json_string(COMPARISON_RULE));
	if (compare->count > 1)
		json_array_append_new(rules, json_string(QUALITY_RULE));
	if (sheet->metric && sheet->row_count > 1)
		add_text(rules, mem_format("value is %s at the last step that both have, gap its "
					   "largest difference at a step",
					   sheet->metric));
	return rules;
}

static json_t *differences_of(const struct compare *compare)
{
	json_t *rows = json_array();

	for (size_t i = 1; i < compare->sheet.row_count; i++) {
		AUTO(auto_free)
		char *words =
			plan_difference_words(compare->sheet.differences[i], DIFFERENCES_TOLD);
		json_t *row = json_object();

		js_put_str(row, "run", compare->runs[compare->sheet.rows[i].first].run);
		js_put_str(row, "words", words);
		json_array_append_new(rows, row);
	}
	return rows;
}

static char *title_of(const struct compare *compare)
{
	const char *name = js_str(compare->runs[0].status, "name");

	if (compare->count == 1)
		return mem_format("%s: run %s", name ? name : "Report", compare->runs[0].run);
	return mem_format("%s: %zu runs", name ? name : "Report", compare->count);
}

/* `used` are the charts of what nodes did. */
static json_t *data_of(struct compare *compare, struct curves *curves, const json_t *runs,
		       json_t *used)
{
	json_t *data = json_object(), *charts = json_array(), *metrics = json_array();
	AUTO(auto_free) char *title = title_of(compare);
	char now[UTC_TEXT];

	js_put_str(data, "title", title);
	js_put_str(data, "made", clock_utc_format(clock_utc_now(), now));
	js_put_str(data, "version", STOKER_VERSION);
	js_put(data, "verdict", verdict_of(compare, runs));
	js_put(data, "rules", rules_of(compare));
	if (compare->count > 1) {
		js_put(data, "comparison", compare_text_cells(&compare->sheet));
		js_put(data, "differences", differences_of(compare));
	}
	for (size_t i = 0; i < compare->count && i < REPORT_DRAWN_MAX; i++)
		curves_metrics(&curves[i], compare->runs[i].run, metrics);
	curves_charts(curves, compare->runs, compare->count, REPORT_DRAWN_MAX, charts);
	json_array_extend(charts, used);
	js_put(data, "charts", charts);
	js_put(data, "metrics", metrics);
	js_put(data, "runs", json_incref((json_t *)runs));
	js_put(data, "runs_left",
	       json_integer((json_int_t)(compare->count - json_array_size(runs))));
	return data;
}

static int measure_all(struct compare *compare, struct curves *curves, struct journal *journal,
		       json_t *runs, json_t *used, struct err **err)
{
	size_t drawn = compare->count < REPORT_DRAWN_MAX ? compare->count : REPORT_DRAWN_MAX;

	for (size_t i = 0; i < compare->count; i++) {
		struct seen seen = { .curves = &curves[i] };
		const struct measure_watch watch = { .arg = &seen,
						     .event = on_event,
						     .series = on_series,
						     .reading = on_reading,
						     .span = on_span };
		const struct measure_question question = { .lenient = true,
							   .alone = compare->count == 1,
							   .watch = &watch };
		int result = measure_take(journal, &question, &compare->runs[i], err);

		if (result == 0 && i < REPORT_DRAWN_MAX && compare->runs[i].plan)
			json_array_append_new(runs, run_of(&compare->runs[i], &seen.course));
		course_release(&seen.course);
		if (result == 0 && i < REPORT_DRAWN_MAX && compare->runs[i].plan)
			result = node_usage_put(journal,
						json_array_get(runs, json_array_size(runs) - 1),
						drawn, i, used, err);
		if (result < 0)
			return -1;
	}
	return 0;
}

/* Finds the runs that are named, or those of a sweep that is. */
static int find_runs(struct compare *compare, const struct args *args, struct journal *journal,
		     struct err **err)
{
	for (int i = 0; i < args->operand_count; i++)
		if (compare_runs_add(compare, journal, args->operands[i], err) < 0)
			return -1;
	if (compare->count <= REPORT_RUNS_MAX)
		return 0;
	err_set(err, EXIT_USAGE, "a report can be of %d runs at most", REPORT_RUNS_MAX);
	return err_hint(err, "name fewer of them");
}

int report_data_collect(const struct args *args, struct journal *journal, bool renewed,
			bool *ret_ended, json_t **ret, struct err **err)
{
	AUTO(compare_runs_release) struct compare compare = { 0 };
	json_auto_t *runs = json_array(), *used = json_array();
	struct curves *curves;
	int result;

	if (find_runs(&compare, args, journal, err) < 0)
		return -1;
	curves = mem_zero(compare.count, sizeof *curves);
	result = measure_all(&compare, curves, journal, runs, used, err);
	if (result == 0) {
		compare_runs_sheet(&compare, NULL);
		*ret_ended = compare_runs_have_ended(&compare);
		*ret = data_of(&compare, curves, runs, used);
		if (renewed && !*ret_ended)
			js_put(*ret, "renewed", json_true());
	}
	for (size_t i = 0; i < compare.count; i++)
		curves_release(&curves[i]);
	free(curves);
	return result;
}
