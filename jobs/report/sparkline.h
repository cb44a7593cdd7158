/*
 * The course of a metric as one line of characters. Values are kept evenly over all of the course
 * in bounded memory: when there is no more room, each two become their mean.
 */
#ifndef STK_REPORT_SPARKLINE_H
#define STK_REPORT_SPARKLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/sb.h"

#define SPARKLINE_VALUES 256

/* Start from { 0 }. */
struct sparkline {
	double values[SPARKLINE_VALUES]; /* each the mean of `stride` values */
	size_t value_count;
	size_t stride;  /* 0: no value yet */
	double pending; /* sum of the values that do not fill a stride yet */
	size_t pending_count;
};

/* Adds a value of the metric; NaN if it was not a number. */
void sparkline_add(struct sparkline *line, double value);

/* Writes all values as a line of at most `columns` characters, the newest at its end, in block
 * characters with `utf8`, else in ASCII. Returns the columns written; 0 for fewer than two
 * values. */
size_t sparkline_draw(const struct sparkline *line, size_t columns, bool utf8, struct sb *out);

#endif
