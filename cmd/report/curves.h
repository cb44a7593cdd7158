/*
 * The curves of runs for a report, collected while the runs are measured: in bounded memory,
 * however many readings there are.
 *
 * cmd/report: what a report shows, collected from journals and series into one JSON object, from
 * which jobs/report/page makes the page. Nothing is printed or written here.
 */
#ifndef STK_CMD_REPORT_CURVES_H
#define STK_CMD_REPORT_CURVES_H

#include "cmd/compare/measure.h"
#include "jobs/report/page/thin.h"

#define CURVES_PAST_MAX   16   /* superseded parts of a metric that are drawn */
#define CURVES_PAST_PARTS 150  /* stretches of each */
#define CURVES_BINS       2400 /* of step times: 1 % wide each, from 0.1 ms on */

/* A metric of one run. */
struct curves_metric {
	char *name; /* owned */
	int node;   /* the node whose readings are drawn: the first that has any; -1: none yet */
	struct thin line;
	struct curves_past {
		int64_t attempt;
		struct thin line;
	} past[CURVES_PAST_MAX]; /* lines that later attempts have superseded */
	size_t past_count, past_left;
	uint64_t superseded, replayed, early; /* readings; early: before the first step */
};

/* A start of the command in an attempt of a training, by its steps. */
struct curves_attempt {
	int64_t number;
	size_t start;               /* from 0 */
	int64_t first, replayed_to; /* -1: none */
};

struct curves {
	struct curves_metric *metrics; /* owned */
	size_t count;
	bool by_step;     /* else by seconds since the run began */
	const char *unit; /* with by_step: step or epoch; borrowed from the metrics */
	int64_t begun_ms;
	struct thin speed;                 /* steps a second */
	double bins[CURVES_BINS], longest; /* steps in each; seconds of the longest */
	struct curves_attempt *attempts;   /* owned */
	size_t attempt_count;
};
void curves_release(struct curves *curves);

/* Functions for struct measure_watch. */
void curves_series(struct curves *curves, const struct run_series *series);
void curves_reading(struct curves *curves, const struct run_reading *reading);
void curves_span(struct curves *curves, const struct step_span *span,
		 const struct run_reading *reading);

/* Appends the charts of all runs to `charts`: one for each metric by name, the speed, and the
 * distribution of step times. No more than `most` runs are drawn. `samples` of each run are those
 * of a step; NaN: not known. Thins the curves so that all of them have a bounded number of
 * points. */
void curves_charts(struct curves *curves, const struct measure *runs, size_t count, size_t most,
		   json_t *charts);
/* Returns a new chart without lines. */
json_t *curves_chart_new(const char *title, const char *unit, const char *x);
/* Adds a line, thinned to so many stretches. Takes the name. */
void curves_chart_line(json_t *chart, struct thin *thin, size_t parts, char *name, size_t color,
		       bool dashed);
/* Appends a row for each metric of a run. */
void curves_metrics(const struct curves *curves, const char *run, json_t *rows);

#endif
