/*
 * The course of a training for people who watch it: how fast it has lately been, so
 * how long it may still take, and how a metric went.
 *
 * Rates come from points (time, step) of about the last two minutes, in stretches of
 * five seconds and more: the slowest and the fastest stretch are the bounds within
 * which the rest may go. Pure; times come in.
 */
#ifndef STK_REPORT_COURSE_H
#define STK_REPORT_COURSE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/sb.h"

#define COURSE_POINTS 128
#define COURSE_VALUES 256

/* Start from { 0 }. */
struct course {
	struct {
		int64_t at_ms, step;
	} points[COURSE_POINTS]; /* oldest first */
	size_t point_count;
	double values[COURSE_VALUES]; /* each the mean of `stride` that came in */
	size_t value_count;
	size_t stride;  /* 0: none came in yet */
	double pending; /* sum of those that do not make a value yet */
	size_t pending_count;
};

/* This step was seen. One that is behind the last (a resume) begins the points anew;
 * the values go on. */
void course_step(struct course *course, struct utc at, int64_t step);
/* An attempt begins: time in which none ran says nothing of the speed. */
void course_restart(struct course *course);

/* Steps a second; false while there is too little to say. */
struct course_rate {
	double mean, low, high;
};
bool course_rate(const struct course *course, struct course_rate *ret);

/* A value of the metric, not a number where it was none. */
void course_value(struct course *course, double value);

/* All values as a line of at most `columns` characters, the newest at its end; with
 * `utf8` of blocks, else of ASCII. Nothing below two values. */
size_t course_spark(const struct course *course, size_t columns, bool utf8, struct sb *out);

#endif
