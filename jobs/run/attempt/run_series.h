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

/* A place where a service has lost lines of a log, and readings with them, as far as that can be
 * known: it does not have what was read last, or not the end that must have come. Nobody can tell
 * what it loses in the middle of a log before anybody has read it. */
struct run_series_loss {
	int64_t attempt;
	int node;
	int64_t after_step; /* -1: before the first */
};

/* Returns those of the latest run_series_each(), at most 1000; borrowed. */
size_t run_series_losses(const struct run_series *series, const struct run_series_loss **ret);

/* Calls `fn` for each reading, attempt by attempt, node by node, in the order of the log; 1 stops.
 * Memory is bounded, however many there are. */
typedef int (*run_series_fn)(void *arg, const struct run_reading *reading, struct err **err);
int run_series_each(struct run_series *series, run_series_fn fn, void *arg, struct err **err);
/* Returns the prefix of an attempt in the workspace, borrowed; NULL behind the last. */
const char *run_series_attempt(const struct run_series *series, size_t at, int64_t *ret_number);
struct store *run_series_workspace(const struct run_series *series); /* borrowed */

#endif
