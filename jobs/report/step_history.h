/*
 * Progress of a training for display: its recent speed, hence the time left, and the course of a
 * metric.
 *
 * Rates come from points (time, step) of about the last two minutes, in stretches of five seconds
 * and more: the slowest and the fastest stretch bound the estimate for the rest. Pure; times come
 * in.
 */
#ifndef STK_REPORT_STEP_HISTORY_H
#define STK_REPORT_STEP_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/sb.h"

#define STEP_HISTORY_POINTS 128
#define STEP_HISTORY_VALUES 256

/* Start from { 0 }. */
struct step_history {
	struct {
		int64_t at_ms, step;
	} points[STEP_HISTORY_POINTS]; /* oldest first */
	size_t point_count;
	double values[STEP_HISTORY_VALUES]; /* each the mean of `stride` values */
	size_t value_count;
	size_t stride;  /* 0: no value yet */
	double pending; /* sum of the values that do not fill a stride yet */
	size_t pending_count;
};

/* Adds a step. A step below the last one (a resume) starts the points again; the values are
 * kept. */
void step_history_step(struct step_history *course, struct utc at, int64_t step);
/* Starts a new attempt: the time between attempts must not count for the speed. */
void step_history_restart(struct step_history *course);

/* Steps per second. False if there are too few points. */
struct step_history_rate {
	double mean, low, high;
};
bool step_history_rate(const struct step_history *course, struct step_history_rate *ret);

/* Adds a value of the metric; NaN if it was not a number. */
void step_history_value(struct step_history *course, double value);

/* Writes all values as a line of at most `columns` characters, the newest at its end, in block
 * characters with `utf8`, else in ASCII. Returns the columns written; 0 for fewer than two
 * values. */
size_t step_history_sparkline(const struct step_history *course, size_t columns, bool utf8,
			      struct sb *out);

#endif
