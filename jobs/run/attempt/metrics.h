/*
 * The newest numbers of a training log, for the driver. Readings (jobs/series/metric_reader.h) of
 * one step are a row, and only rows are told: a loss of step 10 never stands beside step 20.
 */
#ifndef STK_RUN_ATTEMPT_METRICS_H
#define STK_RUN_ATTEMPT_METRICS_H

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/series/metric_reader.h"

struct metrics;

/* Makes the metrics of a plan; `specs` is the plan's [{"name","regex"}…]. */
int metrics_new(const json_t *specs, struct metrics **ret, struct err **err);
void metrics_freep(struct metrics **metrics);

/* Reads a line of a node's log. `*current` is the newest step of that log, -1 before the first.
 * Returns how many numbers the line held: metrics_readings() has them until the next line. */
size_t metrics_line(struct metrics *metrics, int64_t *current, const char *line, size_t len);
const struct metric_reading *metrics_readings(const struct metrics *metrics);

/* Returns the newest row as {name: value}, with "step" if known, as a new reference; NULL if no
 * metric but the step was read yet. Infinite values and NaN are strings. `ret_step`: the row's
 * step, -1 if not known. */
json_t *metrics_row(const struct metrics *metrics, int64_t *ret_step);

/* State for a process that goes on where this one stopped: metrics_keep() returns it as a new
 * reference, metrics_restore() puts it into fresh metrics of the same plan. */
json_t *metrics_keep(const struct metrics *metrics);
void metrics_restore(struct metrics *metrics, const json_t *kept);

/* Returns, once for each, the name of a metric that was given up because its pattern took too long
 * on lines of this log; else NULL. */
const char *metrics_given_up(struct metrics *metrics);
/* The same of one whose number may go on behind a comma: metric_reader_doubted(). */
const char *metrics_doubted(struct metrics *metrics, const char **ret_text);

/* Returns the samples of a step, by the metric `samples`, which counts those of the training so
 * far, over the steps since this attempt's log began; 0: not known. */
double metrics_samples_per_step(const struct metrics *metrics);

/* Returns "epoch" if progress is counted in epochs, because there is no metric `step`; NULL: in
 * steps. */
const char *metrics_unit(const struct metrics *metrics);

struct step_progress {
	bool known;   /* a step was seen */
	int64_t step; /* the largest */
	int64_t of;   /* the last step, by the second group of its pattern; 0: not known */
};
struct step_progress metrics_progress(const struct metrics *metrics);

#endif
