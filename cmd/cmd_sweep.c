/* sweep: the cells of a spec as runs, and their comparison. */
#include <string.h>

#include "cmd/args/spec_args.h"
#include "cmd/cmd.h"
#include "cmd/compare/compare_print.h"
#include "cmd/compare/compare_runs.h"
#include "cmd/screen/out.h"
#include "cmd/sweep/sweep_cell.h"
#include "cmd/sweep/sweep_work.h"
#include "jobs/base/text/text.h"
#include "jobs/run/sweep/sweep_record.h"

/* Sets the id: the one given, or a fresh one. */
static int sweep_id(const struct args *args, char id[JOURNAL_RUN_MAX], struct err **err)
{
	char fresh[RUN_ID_LEN + 1];

	text_run_id_new(fresh);
	snprintf(id, JOURNAL_RUN_MAX, "%s",
		 args->given[OPT_ID] && text_run_id_valid(args->value[OPT_ID]) ? args->value[OPT_ID]
									       : fresh);
	if (!args->given[OPT_ID] || strcmp(id, args->value[OPT_ID]) == 0)
		return 0;
	err_set(err, EXIT_USAGE, "invalid id of a sweep '%s'", args->value[OPT_ID]);
	return err_hint(err, "use lower-case letters, digits and hyphens, a letter or digit "
			     "first; the ids of its runs are longer, of 40 at most");
}

/* An id that a run has cannot name a sweep: 'compare ID' would have two meanings. */
static int refuse_run(struct journal *journal, const char *id, struct err **err)
{
	json_auto_t *runs = json_array();
	json_t *run;
	size_t i;

	if (journal_runs(journal, runs, err) < 0)
		return -1;
	json_array_foreach (runs, i, run)
		if (strcmp(json_string_value(run), id) == 0) {
			err_set(err, EXIT_SPEC, "'%s' is a run, and no sweep", id);
			return err_hint(err, "choose another --id");
		}
	return 0;
}

/* Reads the record of the sweep, or makes it, and keeps it. */
static int take_record(struct journal *journal, const char *id, const json_t *sweep,
		       const struct plan *base, json_t **ret, struct err **err)
{
	json_auto_t *record = NULL;
	json_t *cell;
	size_t i;
	int found = sweep_record_read(journal, id, &record, err);

	if (found < 0)
		return -1;
	if (found > 0 && sweep_record_go_on(record, sweep, base->digest, err) < 0)
		return -1;
	if (found == 0 &&
	    (refuse_run(journal, id, err) < 0 || sweep_record_clear(journal, id, err) < 0 ||
	     sweep_record_make(id, sweep, base->json, base->digest, &record, err) < 0))
		return -1;
	/* The cause that refused a cell may be mended by now. */
	json_array_foreach (json_object_get(record, "cells"), i, cell)
		json_object_del(cell, "why");
	if (sweep_record_write(journal, record, err) < 0)
		return -1;
	*ret = TAKE(record);
	return 0;
}

static int print_table(const struct args *args, struct journal *journal, const char *id,
		       const struct measure_question *question, struct err **err)
{
	AUTO(compare_runs_release) struct compare compare = { 0 };

	if (compare_runs_add(&compare, journal, id, err) < 0 ||
	    compare_runs_make(&compare, journal, question, err) < 0)
		return -1;
	compare.sheet.target = args->value[OPT_TO];
	compare_print(&compare.sheet, args);
	return 0;
}

static bool has_metric(const json_t *specs, const char *name)
{
	const json_t *spec;
	size_t i;

	json_array_foreach (specs, i, spec)
		if (js_is(spec, "name", name))
			return true;
	return false;
}

/* True if cells have metrics of their own. */
static bool sets_metrics(const json_t *sweep)
{
	const json_t *cell, *set;
	size_t i, k;

	json_array_foreach (json_object_get(sweep, "cells"), i, cell)
		json_array_foreach (json_object_get(cell, "sets"), k, set)
			if (text_starts(json_string_value(set), "metrics"))
				return true;
	return false;
}

/* Metrics that the table is asked for must be there, before hours of runs are for nothing. */
static int check_question(const struct measure_question *question, const json_t *specs,
			  struct err **err)
{
	const char *const asked[] = { question->metric, question->throughput, question->step_time,
				      *question->target.metric ? question->target.metric : NULL };

	for (size_t i = 0; i < STK_LENGTH(asked); i++) {
		if (!asked[i] || has_metric(specs, asked[i]))
			continue;
		err_set(err, EXIT_REFUSED, "the spec has no metric '%s'", asked[i]);
		return err_hint(err, "name the numbers that its log prints: 'stoker help metrics'");
	}
	return 0;
}

int cmd_sweep(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(plan_freep) struct plan *base = NULL;
	struct measure_question question;
	json_auto_t *sweep = NULL, *record = NULL;
	char id[JOURNAL_RUN_MAX];
	struct sweep_options options = { 0 };
	int code;

	if (sweep_id(args, id, err) < 0 || compare_print_check(args, err) < 0 ||
	    compare_runs_question(args, &question, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_WRITE, &journal, err) < 0)
		return -1;
	code = spec_args_plan(args, journal, &spec, &base, err);
	if (code != 0)
		return code;
	sweep = spec_sweep(spec);
	if (!sweep) {
		err_set(err, EXIT_SPEC, "the spec has no section 'sweep'");
		err_at(err, args->operands[0], 0, 0);
		return err_hint(err,
				"write the cells, for example sweep: {grid: "
				"{hyperparameters.batch_size: [16, 32]}}; 'stoker help spec.sweep' "
				"tells more");
	}
	if (sweep_cell_check(spec, sweep, err) < 0 ||
	    (!sets_metrics(sweep) &&
	     check_question(&question, json_object_get(base->json, "metrics"), err) < 0) ||
	    take_record(journal, id, sweep, base, &record, err) < 0)
		return -1;
	out_note("sweep %s", id);
	options = (struct sweep_options){ .journal = journal,
					  .spec = spec,
					  .record = record,
					  .question = &question,
					  .stop_on_interrupt =
						  args_is(args, OPT_ON_INTERRUPT, "stop") };
	code = sweep_work_run(&options, err);
	if (code < 0 || code == EXIT_DETACHED)
		return code;
	return print_table(args, journal, id, &question, err) < 0 ? -1 : code;
}
