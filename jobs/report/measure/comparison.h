/*
 * Runs compared by measurement. Runs with the same settings are repeats, and one row; the row of
 * the first run is the baseline.
 *
 * A row is called faster or slower only if an interval around its speed, relative to the
 * baseline's, says so: Student's t over the logarithms of the runs' speeds, at COMPARISON_LEVEL for
 * all rows together (each row gets an equal part of the chance to be wrong), with the spread of
 * repeats pooled over all rows; a row whose own variance is more than COMPARISON_NOISY times as
 * much has its own. By simulation, of sweeps without a difference 0.6 % claim one if all rows are
 * equally noisy, and 3 % if one of nine has four times the deviation of the others. The steps of
 * one run are no repeats: with one run there is no interval, and no claim.
 *
 * Rows that differ from the baseline in what decides about quality (data, evaluation, precision)
 * may be fast for a reason that costs accuracy: they are stamped, and never the best. Neither is a
 * row whose metric became NaN or infinite.
 *
 * Pure. NAN: not known.
 */
#ifndef STK_REPORT_MEASURE_COMPARISON_H
#define STK_REPORT_MEASURE_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/report/measure/curve.h"

#define COMPARISON_LEVEL 0.99
#define COMPARISON_NOISY 2
#define COMPARISON_RULE                                                                            \
	"intervals: 99 % for all rows together, by Student's t over the logarithms of the speeds " \
	"of repeats, their spread pooled over the rows; a row that is evidently noisier has its "  \
	"own"

/* Measurements of a run. */
struct measured_run {
	const char *run;       /* borrowed */
	size_t row;            /* of the comparison; SIZE_MAX: of none, it does not count */
	double steps;          /* steps that are measured */
	double mean, p50, p95; /* seconds a step */
	double samples;        /* a step */
	double rate;           /* samples a second, by the log's own word */
	double workers;
	double wall, billable, compile; /* seconds */
	double cost, price;             /* USD; price: an hour of all nodes */
	double reached;                 /* seconds of training until the target; INFINITY: never */
	struct curve curve;             /* of the metric that is compared */
};

enum comparison_verdict {
	COMPARISON_BASELINE,
	COMPARISON_FASTER,
	COMPARISON_SLOWER,
	COMPARISON_NOISE,       /* the interval says neither */
	COMPARISON_NO_INTERVAL, /* one run */
	COMPARISON_NO_STEPS,    /* nothing to compare */
	COMPARISON_NO_BASE,     /* nothing to compare it with */
};
extern const char *const comparison_words[];

struct comparison_row {
	size_t first, runs; /* first: the run by which the row is called */
	bool same_quality;  /* set by the caller */
	bool only_workers;  /* set by the caller: nothing but the number of workers differs */
	double steps, mean, p50, p95;
	double samples_rate; /* a second: by the log's own word, or from samples and step times */
	double x;            /* speed, relative to the baseline: 2 is twice as fast */
	double low, high;    /* the ratio's interval */
	enum comparison_verdict verdict;
	bool is_best; /* the fastest of those that are faster, of the same quality, not diverged */
	double wall, billable, compile, cost, samples_per_usd;
	double efficiency; /* x for each time as many workers; with only_workers */
	int64_t last_step; /* the last that all runs of the row and the baseline have told; -1 */
	double last_value, base_value; /* of the metric there */
	double gap;                    /* the largest difference at a step that both have */
	int64_t gap_step;
	double reached, reached_cost; /* as in a run, of the runs that reached it */
	size_t reached_runs;
};

/* Fills in the rows, whose members `first`, `runs`, `same_quality` and `only_workers` are set; row
 * 0 is the baseline. */
void comparison_make(const struct measured_run *runs, size_t run_count, struct comparison_row *rows,
		     size_t row_count);

/* The number of steps from which the row that compiles longer has caught up, by compile and step
 * time, and by the samples of a step where they are known; steps are its own. INFINITY: never, NAN:
 * not known, or neither compiles longer. */
double comparison_break_even(const struct comparison_row *a, const struct comparison_row *b);

#endif
