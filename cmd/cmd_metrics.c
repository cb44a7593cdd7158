/* metrics: the readings of a run, as its logs have them. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "cmd/view/csv.h"
#include "cmd/view/reading_line.h"
#include "jobs/base/text/text.h"
#include "jobs/base/text/when.h"
#include "jobs/base/usage.h"
#include "jobs/run/attempt/run_usage.h"

/* The question of a command line. */
struct metrics_query {
	const char *run;
	bool *wanted;    /* by metric; NULL: all */
	bool *figures;   /* of nodes, that are asked for; NULL: none */
	int64_t attempt; /* -1: all */
	int64_t node;    /* -1: all */
	bool metrics;    /* some are asked for */
	bool csv;
	size_t told;
	/* The time of the newest row, as text: many rows have one. */
	struct utc at;
	char at_text[UTC_TEXT > WHEN_TEXT ? UTC_TEXT : WHEN_TEXT];
	struct utc now;
	bool local; /* times for the reader of a terminal */
};

/* Returns in a word what is special about a reading. */
static const char *mark_of(const struct run_reading *reading)
{
	if (!reading->counts)
		return "superseded";
	return reading->replayed ? "replayed" : "";
}

static bool is_asked(const struct metrics_query *query, int64_t attempt, int node)
{
	return (query->attempt < 0 || attempt == query->attempt) &&
	       (query->node < 0 || node == query->node);
}

/* A terminal of 80 columns holds a row with a local time, its day and a mark. */
static int time_columns(const struct metrics_query *query)
{
	return query->local ? 15 : 24;
}

static int print_reading(void *arg, const struct run_reading *reading, struct err **err)
{
	struct metrics_query *query = arg;
	char value[TEXT_NUMBER], step[24] = "";
	const char *at = query->at_text;
	const char *mark = mark_of(reading);

	(void)err;
	if (!is_asked(query, reading->attempt, reading->node))
		return 0;
	query->told++;
	if (out_is_json()) {
		json_auto_t *object = reading_line_json(query->run, reading);

		out_json_exact(object);
		return 0;
	}
	if (reading->step >= 0)
		snprintf(step, sizeof step, "%lld", (long long)reading->step);
	text_number(reading->value, value);
	if (reading->at.ms != query->at.ms && query->local)
		when_instant(reading->at, query->now, true, query->at_text);
	else if (reading->at.ms != query->at.ms)
		clock_utc_format(reading->at, query->at_text);
	query->at = reading->at;
	if (reading->at.ms == 0)
		query->at_text[0] = '\0';
	if (query->csv) {
		AUTO(sb_release) struct sb line = SB_INIT_MAX(1000);

		sb_addf(&line, "%lld,%d,%s,%s", (long long)reading->attempt, reading->node, at,
			step);
		csv_add(&line, false, reading->name);
		out_line("%s,%s,%s", line.text, value, mark);
	} else
		out_line("%-*s  %7lld  %4d  %8s  %-16s %s%s%s", time_columns(query), *at ? at : "-",
			 (long long)reading->attempt, reading->node, *step ? step : "-",
			 reading->name, value, *mark ? "  " : "", mark);
	return 0;
}

static int print_metric(void *arg, const struct run_reading *reading, struct err **err)
{
	const struct metrics_query *query = arg;

	if (query->wanted && !query->wanted[reading->metric])
		return 0;
	return print_reading(arg, reading, err);
}

static int print_figure(void *arg, const struct run_reading *reading, struct err **err)
{
	const struct metrics_query *query = arg;

	return query->figures[reading->metric] ? print_reading(arg, reading, err) : 0;
}

/* Marks the figures of nodes that an operand names: one, or all by their prefix. */
static int choose_figures(struct metrics_query *query, const char *name, struct err **err)
{
	size_t figure = usage_find(name);
	bool all = strcmp(name, USAGE_PREFIX) == 0;

	if (figure == SIZE_MAX && !all) {
		err_set(err, EXIT_USAGE, "no figure of a node is called '%s'", name);
		return err_hint(err,
				"'" USAGE_PREFIX "' alone stands for all of them: 'stoker help "
				"metrics'");
	}
	if (!query->figures)
		query->figures = mem_zero(USAGE_END, sizeof *query->figures);
	for (size_t i = 0; i < USAGE_END; i++)
		query->figures[i] |= all || i == figure;
	return 0;
}

/* Marks the metrics that the operands behind the run name; none: all. */
static int choose(const struct args *args, const struct run_series *series,
		  struct metrics_query *query, struct err **err)
{
	if (args->operand_count < 2)
		return 0;
	query->wanted = mem_zero(run_series_metrics(series) + 1, sizeof *query->wanted);
	for (int i = 1; i < args->operand_count; i++) {
		size_t metric = run_series_find(series, args->operands[i]);

		/* A run of an earlier version may have a metric with such a name. */
		if (metric == SIZE_MAX && usage_is_reserved(args->operands[i])) {
			if (choose_figures(query, args->operands[i], err) < 0)
				return -1;
			continue;
		}
		if (metric == SIZE_MAX)
			return run_series_absent(series, query->run, args->operands[i], EXIT_USAGE,
						 err);
		query->wanted[metric] = query->metrics = true;
	}
	return 0;
}

/* Says where readings are missing, because the service has lost lines of the log. */
static void print_losses(const struct metrics_query *query, const struct run_series *series)
{
	const struct run_series_loss *losses;
	size_t count = run_series_losses(series, &losses);

	for (size_t i = 0; i < count; i++) {
		json_auto_t *object = reading_line_loss_json(query->run, &losses[i]);
		AUTO(sb_release) struct sb place = SB_INIT_MAX(200);

		reading_line_add_loss(&place, &losses[i]);
		if (!is_asked(query, losses[i].attempt, losses[i].node))
			continue;
		if (out_is_json())
			out_json(object);
		else
			out_warning("%s: the service has lost lines of the log, and readings "
				    "with them",
				    place.text);
	}
}

static void query_release(struct metrics_query *query)
{
	free(query->wanted);
	free(query->figures);
}

/* A run without metrics has figures of its nodes, and nothing else. */
static int open_series(const struct args *args, struct journal *journal,
		       struct metrics_query *query, struct run_series **ret, struct err **err)
{
	bool figures = args->operand_count > 1;

	for (int i = 1; i < args->operand_count; i++)
		figures &= usage_is_reserved(args->operands[i]);
	query->metrics = args->operand_count < 2;
	if ((figures ? run_series_open_any : run_series_open)(journal, query->run, ret, err) < 0)
		return -1;
	return choose(args, *ret, query, err);
}

int cmd_metrics(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(run_series_freep) struct run_series *series = NULL;
	char run[JOURNAL_RUN_MAX];
	AUTO(query_release) struct metrics_query query = { .run = run };

	query.csv = args->given[OPT_CSV];
	query.local = !query.csv && out_width() > 0;
	query.now = clock_utc_now();
	if (query.csv && out_is_json()) {
		err_set(err, EXIT_USAGE, "--csv and --json exclude each other");
		return err_hint(err, "give one of them");
	}
	if (args_number(args, OPT_ATTEMPT, -1, &query.attempt, err) < 0 ||
	    args_number(args, OPT_NODE, -1, &query.node, err) < 0 ||
	    cmd_run_open(args, JOURNAL_READ, &journal, run, err) < 0 ||
	    open_series(args, journal, &query, &series, err) < 0)
		return -1;
	out_bulk(true);
	if (query.csv)
		out_line("attempt,node,at,step,name,value,mark");
	else if (!out_is_json())
		out_line("%-*s  %7s  %4s  %8s  %-16s %s", time_columns(&query), "TIME", "ATTEMPT",
			 "NODE", "STEP", "NAME", "VALUE");
	if ((query.metrics && run_series_each(series, print_metric, &query, err) < 0) ||
	    (query.figures && run_usage_each(series, print_figure, &query, err) < 0))
		return -1;
	out_bulk(false);
	print_losses(&query, series);
	if (query.told == 0)
		out_note(query.figures ? "no figure: a node of the training has told no such yet"
				       : "no reading: there is no such number in the logs of the "
					 "training");
	return EXIT_DONE;
}
