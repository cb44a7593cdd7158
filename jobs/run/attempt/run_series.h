/*
 * The readings of a whole run: of all attempts of its training and of all nodes, from the series
 * beside their logs, and from the logs themselves where the series lack a part.
 *
 * An attempt, or a start of its job by the service, that resumes from an older checkpoint makes
 * steps again. Readings of both are told: of the later ones, that they are replayed; of the earlier
 * ones, that they do not count, because the weights that came of them are gone.
 */
#ifndef STK_RUN_ATTEMPT_RUN_SERIES_H
#define STK_RUN_ATTEMPT_RUN_SERIES_H

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

struct run_series;

struct run_reading {
	int64_t attempt;
	int node;
	size_t start;     /* number of the command's start in this attempt, from 0 */
	const char *name; /* of the metric; borrowed from the series */
	size_t metric;
	int64_t step;  /* -1: before the first */
	struct utc at; /* ms 0: not known */
	double value;  /* may be infinite, or NaN */
	bool late;     /* `at` is later than the line came */
	bool replayed; /* an earlier attempt or start had made this step */
	bool counts;   /* no later one makes this step */
};

/* Finds the attempts of the run, and opens its workspace. EXIT_REFUSED if its spec has no
 * metrics. */
int run_series_open(struct journal *journal, const char *run, struct run_series **ret,
		    struct err **err);
void run_series_freep(struct run_series **series); /* for AUTO() */

/* The same for a run whose spec may have no metrics: all that it has then are figures of its nodes.
 */
int run_series_open_any(struct journal *journal, const char *run, struct run_series **ret,
			struct err **err);

size_t run_series_metrics(const struct run_series *series);
const char *run_series_name(const struct run_series *series, size_t metric);
/* Returns the metric of that name; SIZE_MAX: none. */
size_t run_series_find(const struct run_series *series, const char *name);
/* Sets the error for a metric that the run does not have: the hint names those that it has.
 * Returns -1. */
int run_series_absent(const struct run_series *series, const char *run, const char *name,
		      enum exit_code code, struct err **err);
const json_t *run_series_plan(const struct run_series *series); /* borrowed */

/* Calls `fn` for each reading, attempt by attempt, node by node, in the order of the log; 1 stops.
 * Memory is bounded, however many there are. */
typedef int (*run_series_fn)(void *arg, const struct run_reading *reading, struct err **err);
int run_series_each(struct run_series *series, run_series_fn fn, void *arg, struct err **err);
/* The same for the figures of the run's nodes (jobs/base/usage.h), whose number `metric` is. All of
 * them count, also those of steps that are made again. */
int run_series_usage(struct run_series *series, run_series_fn fn, void *arg, struct err **err);

#endif
