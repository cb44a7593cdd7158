/*
 * Numbers read from a training log by the spec's regular expressions. The
 * first group of each says where the number begins; the whole number is read
 * from there, also where the pattern would cut `6.25e-05` to `6.25`.
 *
 * The metric called `step` drives progress: rate and time left come from the
 * steps seen.
 */
#ifndef STK_RUN_METRICS_H
#define STK_RUN_METRICS_H

#include "jobs/base/clock.h"
#include "jobs/base/json.h"

struct metrics;

/* `specs` is the plan's [{"name","regex"}…]. */
int metrics_new(const json_t *specs, struct metrics **ret, struct err **err);
void metrics_freep(struct metrics **metrics);

/* True if the line held a number that is new. */
bool metrics_line(struct metrics *metrics, const char *line, size_t len, struct mono now);

/* What was read until now had been written before: the rate is counted from here. */
void metrics_begin_rate(struct metrics *metrics, struct mono now);

/* All lines that there are now have been read. */
void metrics_looked(struct metrics *metrics, struct mono now);

/* As pace_json(): NULL while there is nothing to tell. A new reference. */
json_t *metrics_throughput(const struct metrics *metrics);

/* {name: last value}, a new reference; infinite values and NaN as texts. */
json_t *metrics_json(const struct metrics *metrics);

struct step_progress {
	bool known;   /* a step was seen */
	int64_t step; /* the largest */
	double rate;  /* steps a second; 0: not known yet */
};
struct step_progress metrics_progress(const struct metrics *metrics);

#endif
