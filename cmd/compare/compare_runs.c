/* Runs and sweeps compared: see compare_runs.h. */
#include "cmd/compare/compare_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/compare/compare_versions.h"
#include "cmd/screen/out.h"
#include "jobs/base/text/text.h"
#include "jobs/report/measure/quality.h"
#include "jobs/run/plan/plan_difference.h"
#include "jobs/run/sweep/sweep_record.h"

#define RUNS_MAX 2000

void compare_runs_release(struct compare *compare)
{
	for (size_t i = 0; i < compare->count; i++)
		measure_release(&compare->runs[i]);
	for (size_t i = 0; compare->sheet.differences && i < compare->sheet.row_count; i++)
		json_decref(compare->sheet.differences[i]);
	free(compare->runs);
	free(compare->sheet.rows);
	free(compare->sheet.differences);
	json_decref(compare->known);
}

int compare_runs_question(const struct args *args, struct measure_question *ret, struct err **err)
{
	*ret = (struct measure_question){ .metric = args->value[OPT_METRIC],
					  .throughput = args->value[OPT_THROUGHPUT],
					  .step_time = args->value[OPT_STEP_TIME] };
	return args->given[OPT_TO] ? measure_target_parse(args->value[OPT_TO], &ret->target, err)
				   : 0;
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

/* Returns what a cell sets, as differences: nothing else is known of one that never began. */
static json_t *difference_of_sets(const json_t *sets)
{
	json_t *rows = json_array(), *set;
	size_t i;

	json_array_foreach (sets, i, set) {
		const char *text = json_string_value(set), *value = strchr(text, '=') + 1;
		AUTO(auto_free) char *field = mem_copy_n(text, strcspn(text, "="));
		json_t *new = json_loads(value, JSON_DECODE_ANY, NULL), *row = json_object();

		js_put_str(row, "field", field);
		js_put(row, "old", json_null());
		js_put(row, "new", new ? new : js_text(value, strlen(value)));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* Returns what differs, without what differs between repeats; a new array. */
static json_t *difference(const struct measure *base, const struct measure *other)
{
	bool known = base->plan && other->plan;
	json_auto_t *all =
		known ? plan_difference(base->plan, other->plan) : difference_of_sets(other->sets);
	json_t *kept = json_array(), *row;
	size_t i;

	json_array_foreach (all, i, row)
		if (!is_of_repeats(js_str(row, "field")))
			json_array_append(kept, row);
	compare_versions_add(kept, base, other);
	return kept;
}

/* True if all that differs comes with the machine. */
static bool is_of_machines(const json_t *differences)
{
	const json_t *row;
	size_t i;

	json_array_foreach (differences, i, row)
		if (!compare_versions_is_machine(js_str(row, "field")))
			return false;
	return true;
}

/* True if both are of one row: by the cell of a sweep, or by their settings. */
static bool is_repeat(const struct measure *a, const struct measure *b)
{
	json_auto_t *rows = NULL;

	if (a->cell || b->cell)
		return a->cell && b->cell && strcmp(a->cell, b->cell) == 0;
	rows = difference(a, b);
	return is_of_machines(rows);
}

static bool is_same_quality(const json_t *differences)
{
	const json_t *row;
	size_t i;

	json_array_foreach (differences, i, row) {
		const char *field = js_str(row, "field");
		AUTO(auto_free) char *old = js_line(json_object_get(row, "old"));
		AUTO(auto_free) char *new = js_line(json_object_get(row, "new"));

		/* "datasets" is a package here. */
		if (!compare_versions_is_one(field) && quality_depends_on(field, old, new))
			return false;
	}
	return true;
}

/* True if nothing but the number of workers differs, with the samples of a step if they grow by
 * it. */
static bool is_only_workers(const json_t *differences)
{
	const json_t *row;
	bool workers = false;
	size_t i;

	json_array_foreach (differences, i, row) {
		const char *field = js_str(row, "field");

		if (strcmp(field, "resources.nodes") == 0)
			workers = true;
		else if (strcmp(field, "samples_per_step") != 0 &&
			 !compare_versions_is_machine(field))
			return false;
	}
	return workers;
}

/* Puts each run into a row. Runs that do not count are in one, too, and call it if it has no
 * others. */
static void make_rows(struct compare *compare)
{
	struct compare_sheet *sheet = &compare->sheet;

	sheet->rows = mem_zero(compare->count, sizeof *sheet->rows);
	for (size_t i = 0; i < compare->count; i++) {
		struct measure *measure = &compare->runs[i];
		size_t row = 0;

		while (row < sheet->row_count &&
		       !is_repeat(&compare->runs[sheet->rows[row].first], measure))
			row++;
		if (row == sheet->row_count)
			sheet->rows[sheet->row_count++].first = i;
		measure->row = row;
		measure->measured.row = measure->why ? SIZE_MAX : row;
		if (measure->why)
			continue;
		if (sheet->rows[row].runs++ == 0)
			sheet->rows[row].first = i;
	}
}

/* Sets what differs from the baseline, and what follows from that. */
static void set_differences(struct compare *compare)
{
	struct compare_sheet *sheet = &compare->sheet;
	const struct measure *base = &compare->runs[sheet->rows[0].first];

	sheet->differences = mem_zero(sheet->row_count, sizeof *sheet->differences);
	for (size_t i = 0; i < sheet->row_count; i++) {
		struct comparison_row *row = &sheet->rows[i];

		sheet->differences[i] = difference(base, &compare->runs[row->first]);
		row->same_quality = is_same_quality(sheet->differences[i]);
		row->only_workers = is_only_workers(sheet->differences[i]);
	}
}

/* ---- the runs ---- */

/* Adds a run; EXIT_USAGE if it is there already, or one too many. */
static int add_run(struct compare *compare, const char *run, struct measure **ret, struct err **err)
{
	for (size_t k = 0; k < compare->count; k++)
		if (strcmp(compare->runs[k].run, run) == 0) {
			err_set(err, EXIT_USAGE, "run %s is named twice", run);
			return err_hint(err, "a repeat is a run of its own");
		}
	if (compare->count >= RUNS_MAX) {
		err_set(err, EXIT_USAGE, "at most %d runs can be compared", RUNS_MAX);
		return err_hint(err, "name fewer of them");
	}
	compare->runs = mem_room(compare->runs, compare->count, sizeof *compare->runs);
	*ret = &compare->runs[compare->count++];
	**ret = (struct measure){ 0 };
	snprintf((*ret)->run, sizeof(*ret)->run, "%s", run);
	return 0;
}

/* Notes which runs there are, once. */
static int know_runs(struct compare *compare, struct journal *journal, struct err **err)
{
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;

	if (compare->known)
		return 0;
	if (journal_runs(journal, runs, err) < 0)
		return -1;
	compare->known = json_object();
	json_array_foreach (runs, i, run)
		json_object_set_new(compare->known, json_string_value(run), json_true());
	return 0;
}

/* Adds the runs of a cell that have begun, or the cell as one that could not begin. */
static int add_cell(struct compare *compare, const json_t *record, size_t at, struct err **err)
{
	const json_t *cell = json_array_get(json_object_get(record, "cells"), at);
	const json_t *runs = json_object_get(cell, "runs"), *run;
	const char *why = js_str(cell, "why");
	struct measure *measure = NULL;
	size_t waiting = 0, i;
	bool any = false;

	json_array_foreach (runs, i, run) {
		bool begun = json_object_get(compare->known, json_string_value(run));

		waiting += !begun && !why;
		if (!begun && !(why && !any && i + 1 == json_array_size(runs)))
			continue;
		any = true;
		if (add_run(compare,
			    begun ? json_string_value(run)
				  : json_string_value(json_array_get(runs, 0)),
			    &measure, err) < 0)
			return -1;
		measure->cell = mem_format("%s/%zu", js_str(record, "sweep"), at);
		measure->sets = json_incref(json_object_get(cell, "own"));
		measure->why = begun ? NULL : mem_copy(why);
	}
	if (measure)
		measure->waiting = waiting;
	else
		compare->waiting += waiting;
	return 0;
}

static int add_sweep(struct compare *compare, const json_t *record, struct err **err)
{
	const char *id = js_str(record, "sweep");
	size_t before = compare->count;

	for (size_t i = 0; i < json_array_size(json_object_get(record, "cells")); i++)
		if (add_cell(compare, record, i, err) < 0)
			return -1;
	if (compare->count > before)
		return 0;
	err_set(err, EXIT_REFUSED, "no run of sweep %s has begun, or all are removed", id);
	return err_hint(err, "'stoker sweep SPEC --id %s' goes on with it", id);
}

int compare_runs_add(struct compare *compare, struct journal *journal, const char *ref,
		     struct err **err)
{
	json_auto_t *record = NULL;
	char run[JOURNAL_RUN_MAX];
	struct measure *measure;
	int found = sweep_record_read(journal, ref, &record, err);

	if (found < 0)
		return -1;
	if (found > 0)
		return know_runs(compare, journal, err) < 0 ? -1 : add_sweep(compare, record, err);
	return journal_resolve(journal, ref, run, err) < 0 ? -1
							   : add_run(compare, run, &measure, err);
}

bool compare_runs_have_ended(const struct compare *compare)
{
	size_t waiting = compare->waiting;
	bool stopped = false;

	for (size_t i = 0; i < compare->count; i++) {
		const struct measure *measure = &compare->runs[i];

		if (measure->status && !json_object_get(measure->status, "exit_code"))
			return false;
		/* Repeats of a cell that failed are left out. */
		if (compare->sheet.rows[measure->row].runs > 0)
			waiting += measure->waiting;
		stopped |= measure->cell && js_is(measure->status, "state", "stopped");
	}
	return waiting == 0 || stopped;
}

int compare_runs_name(struct journal *journal, const char *ref, char ret[JOURNAL_RUN_MAX],
		      struct err **err)
{
	json_auto_t *record = NULL;
	int found = sweep_record_read(journal, ref, &record, err);

	if (found <= 0)
		return found < 0 ? -1 : journal_resolve(journal, ref, ret, err);
	snprintf(ret, JOURNAL_RUN_MAX, "%s", ref);
	return 0;
}

/* Steps and epochs have no time in common, unless samples are known of both. */
static int check_units(const struct compare *compare, struct err **err)
{
	const struct measure *steps = NULL, *epochs = NULL;
	bool samples = true;

	for (size_t i = 0; i < compare->count; i++) {
		const struct measure *measure = &compare->runs[i];

		if (measure->why || !(measure->measured.steps > 0))
			continue;
		samples &= measure->measured.samples > 0 || measure->measured.rate > 0;
		if (measure->by_epoch)
			epochs = measure;
		else
			steps = measure;
	}
	if (!steps || !epochs || samples)
		return 0;
	err_set(err, EXIT_REFUSED, "run %s tells its epochs, and run %s its steps", epochs->run,
		steps->run);
	return err_hint(err, "compare runs that tell the same, or give both 'samples_per_step' or "
			     "a metric 'samples'");
}

/* A curve that one run has and another one has not leaves a gap in the table. */
static void warn_of_metric(const struct compare *compare)
{
	bool any = false;

	for (size_t i = 0; i < compare->count; i++)
		any |= compare->runs[i].has_metric;
	for (size_t i = 0; any && i < compare->count; i++)
		if (!compare->runs[i].has_metric && !compare->runs[i].why)
			out_warning("run %s has no metric 'loss': no value of it is compared",
				    compare->runs[i].run);
}

static int measure_runs(struct compare *compare, struct journal *journal,
			const struct measure_question *asked, struct err **err)
{
	struct measure_question question = *asked;

	question.alone = compare->count == 1;
	for (size_t i = 0; i < compare->count; i++) {
		struct measure *measure = &compare->runs[i];
		const char *state;

		if (measure_take(journal, &question, measure, err) < 0)
			return -1;
		if (measure->why)
			continue;
		state = js_str(measure->status, "state");
		if (!json_object_get(measure->status, "exit_code"))
			out_warning("run %s has not ended (%s): its figures are those of now",
				    measure->run, state ? state : "state not known");
		else if (!js_is(measure->status, "state", "succeeded"))
			out_warning(
				"run %s did not succeed (%s): it is compared by what it has done",
				measure->run, state);
		if (measure->measured.steps == 0 && !(measure->measured.rate > 0))
			out_warning("run %s: no %s of an attempt%s", measure->run,
				    measure->by_epoch ? "epoch is measured behind the first"
						      : "step is measured behind the first ten",
				    measure->is_benchmark ? " and outside of its saves" : "");
		if (question.throughput && !measure->why && !(measure->measured.rate > 0))
			out_warning("run %s tells no '%s' above 0 behind the first steps: all "
				    "speeds are taken by the clock",
				    measure->run, question.throughput);
	}
	warn_of_metric(compare);
	return check_units(compare, err);
}

size_t compare_runs_benchmarks(const struct compare_sheet *sheet)
{
	size_t count = 0;

	for (size_t i = 0; i < sheet->run_count; i++)
		count += sheet->runs[i].is_benchmark;
	return count;
}

static const char *source_of(const struct measure *measure)
{
	return js_str(js_path(measure->plan, "source"), "digest");
}

/* Repeats that do not count are missing from a row that has others, and repeats of another source
 * are none. */
static void warn_of_repeats(const struct compare_sheet *sheet)
{
	for (size_t i = 0; i < sheet->run_count; i++) {
		const struct measure *measure = &sheet->runs[i];
		const struct measure *first = &sheet->runs[sheet->rows[measure->row].first];
		const char *mine = source_of(measure), *other = source_of(first);

		if (measure->why && !first->why)
			out_warning("run %s does not count: %s", measure->run, measure->why);
		else if (mine && other && strcmp(mine, other) != 0)
			out_warning("run %s is of another source than %s, and in one row with it",
				    measure->run, first->run);
	}
}

void compare_runs_sheet(struct compare *compare, const char *metric)
{
	struct compare_sheet *sheet = &compare->sheet;
	AUTO(auto_free) struct measured_run *measured = NULL;

	make_rows(compare);
	set_differences(compare);
	measured = mem_zero(compare->count, sizeof *measured);
	for (size_t i = 0; i < compare->count; i++)
		measured[i] = compare->runs[i].measured;
	comparison_make(measured, compare->count, sheet->rows, sheet->row_count);
	sheet->runs = compare->runs;
	sheet->run_count = compare->count;
	warn_of_repeats(sheet);
	sheet->metric = metric;
	for (size_t i = 0; !sheet->metric && i < compare->count; i++)
		sheet->metric = compare->runs[i].has_metric ? "loss" : NULL;
}

int compare_runs_make(struct compare *compare, struct journal *journal,
		      const struct measure_question *question, struct err **err)
{
	size_t benchmarks;

	if (measure_runs(compare, journal, question, err) < 0)
		return -1;
	compare_runs_sheet(compare, question->metric);
	compare->sheet.throughput = question->throughput;
	compare->sheet.step_time = question->step_time;
	benchmarks = compare_runs_benchmarks(&compare->sheet);
	if (benchmarks > 0 && benchmarks < compare->count)
		out_warning("some of the runs are benchmarks, and some are not: the step times of "
			    "the others have their saving and uploads in them");
	return 0;
}
