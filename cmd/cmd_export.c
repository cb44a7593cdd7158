/* export: what other programs read: the metrics of a run, or the workflow of a spec. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/export/export_series.h"
#include "cmd/export/export_workflow.h"

/* Kinds of exports, a row each: the word, and the files. */
static const struct export_row {
	const char *to;
	bool of_spec;
	int kind; /* enum series_form, or enum workflow_kind */
} rows[] = {
	{ "tensorboard", false, SERIES_TENSORBOARD },
	{ "csv", false, SERIES_CSV },
	{ "jsonl", false, SERIES_JSONL },
	{ "sagemaker-pipeline", true, WORKFLOW_PIPELINE },
	{ "step-functions", true, WORKFLOW_MACHINE },
	{ "airflow", true, WORKFLOW_AIRFLOW },
};

static int row_find(const char *to, const struct export_row **ret, struct err **err)
{
	for (size_t i = 0; to && i < STK_LENGTH(rows); i++)
		if (strcmp(rows[i].to, to) == 0) {
			*ret = &rows[i];
			return 0;
		}
	if (to)
		err_set(err, EXIT_USAGE, "--to: nothing is exported to '%s'", to);
	else
		err_set(err, EXIT_USAGE, "export needs --to");
	return err_hint(err, "give --to tensorboard, csv or jsonl for a run, or --to "
			     "sagemaker-pipeline, step-functions or airflow for a spec");
}

/* Both forms name the place to write to: DEST and -o FILE; NULL: none does, or - does. */
static int dest_of(const struct args *args, const struct export_row *row, const char **ret,
		   struct err **err)
{
	const char *behind = args->operand_count > 1 ? args->operands[1] : NULL;

	*ret = args->given[OPT_OUTPUT] ? args->value[OPT_OUTPUT] : behind;
	if (behind && args->given[OPT_OUTPUT]) {
		err_set(err, EXIT_USAGE, "'%s' and --output name two places", behind);
		return err_hint(err, "omit one of them");
	}
	if (!*ret || strcmp(*ret, "-") != 0)
		return 0;
	*ret = NULL;
	if (row->of_spec || row->kind != SERIES_TENSORBOARD)
		return 0;
	err_set(err, EXIT_USAGE, "--to %s writes a folder, which does not fit on stdout", row->to);
	return err_hint(err, "name a folder, or choose --to csv or --to jsonl");
}

int cmd_export(const struct args *args, struct err **err)
{
	const struct export_row *row = NULL;
	const char *dest;

	if (row_find(args->value[OPT_TO], &row, err) < 0 || dest_of(args, row, &dest, err) < 0)
		return -1;
	if (args->operand_count == 0)
		args->operands[0] = row->of_spec ? "stoker.yaml" : "@last";
	if (row->of_spec)
		return export_workflow(args, (enum workflow_kind)row->kind, row->to, dest, err);
	if (args->given[OPT_SET] || args->given[OPT_ENGINE] || args->given[OPT_USE]) {
		err_set(err, EXIT_USAGE,
			"--set and --use change a spec, and --to %s is about a run", row->to);
		return err_hint(err, "omit them");
	}
	return export_series(args, (enum series_form)row->kind, row->to, dest, err);
}
