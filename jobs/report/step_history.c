/* Speed and metric of a training: see step_history.h. */
#include "jobs/report/step_history.h"

#include <math.h>
#include <string.h>

#define POINT_MS      1000   /* least distance of two points */
#define WINDOW_MS     120000 /* the recent past */
#define WINDOW_LEAST  8      /* points kept even if they are far apart */
#define STRETCH_MS    5000
#define STRETCH_MAX   6
#define SPAN_LEAST_MS 3000

void step_history_restart(struct step_history *course)
{
	course->point_count = 0;
}

void step_history_step(struct step_history *course, struct utc at, int64_t step)
{
	size_t n = course->point_count;

	if (n && (step < course->points[n - 1].step || at.ms < course->points[n - 1].at_ms))
		n = 0;
	/* The newest point moves on until it is far enough from the one before. */
	if (n > 1 && course->points[n - 1].at_ms - course->points[n - 2].at_ms < POINT_MS)
		n--;
	if (n == STEP_HISTORY_POINTS) {
		memmove(course->points, course->points + 1,
			(STEP_HISTORY_POINTS - 1) * sizeof *course->points);
		n--;
	}
	course->points[n].at_ms = at.ms;
	course->points[n].step = step;
	course->point_count = n + 1;
}

/* Returns the first point of the recent past. */
static size_t window_begin(const struct step_history *course)
{
	size_t n = course->point_count, first = 0;

	while (first + WINDOW_LEAST < n &&
	       course->points[n - 1].at_ms - course->points[first].at_ms > WINDOW_MS)
		first++;
	return first;
}

/* The step at a time between two points. */
static double step_at(const struct step_history *course, size_t first, double at_ms)
{
	for (size_t i = first + 1; i < course->point_count; i++) {
		double from = (double)course->points[i - 1].at_ms;
		double to = (double)course->points[i].at_ms;

		if (at_ms <= to && to > from)
			return (double)course->points[i - 1].step +
			       (double)(course->points[i].step - course->points[i - 1].step) *
				       (at_ms - from) / (to - from);
	}
	return (double)course->points[course->point_count - 1].step;
}

bool step_history_rate(const struct step_history *course, struct step_history_rate *ret)
{
	size_t n = course->point_count, first, stretches;
	double begin, span;

	if (n < 2)
		return false;
	first = window_begin(course);
	begin = (double)course->points[first].at_ms;
	span = (double)course->points[n - 1].at_ms - begin;
	if (span < SPAN_LEAST_MS || course->points[n - 1].step <= course->points[first].step)
		return false;
	ret->mean = (double)(course->points[n - 1].step - course->points[first].step) * 1000 / span;
	ret->low = ret->high = ret->mean;
	stretches = (size_t)(span / STRETCH_MS);
	if (stretches > STRETCH_MAX)
		stretches = STRETCH_MAX;
	for (size_t i = 0; i < stretches; i++) {
		double length = span / (double)stretches, from = begin + length * (double)i;
		double rate =
			(step_at(course, first, from + length) - step_at(course, first, from)) *
			1000 / length;

		ret->low = fmin(ret->low, rate);
		ret->high = fmax(ret->high, rate);
	}
	return true;
}

/* Makes room: each pair of values becomes their mean. */
static void halve(struct step_history *course)
{
	for (size_t i = 0; i < STEP_HISTORY_VALUES / 2; i++)
		course->values[i] = (course->values[2 * i] + course->values[2 * i + 1]) / 2;
	course->value_count = STEP_HISTORY_VALUES / 2;
	course->stride *= 2;
}

void step_history_value(struct step_history *course, double value)
{
	if (course->stride == 0)
		course->stride = 1;
	course->pending += value;
	if (++course->pending_count < course->stride)
		return;
	course->values[course->value_count++] = course->pending / (double)course->stride;
	course->pending = 0;
	course->pending_count = 0;
	if (course->value_count == STEP_HISTORY_VALUES)
		halve(course);
}

/* The mean of the values that fall on a column. */
static double column_value(const struct step_history *course, size_t column, size_t columns)
{
	size_t from = column * course->value_count / columns;
	size_t to = (column + 1) * course->value_count / columns;
	double sum = 0;

	if (to == from)
		to++;
	for (size_t i = from; i < to; i++)
		sum += course->values[i];
	return sum / (double)(to - from);
}

size_t step_history_sparkline(const struct step_history *course, size_t columns, bool utf8,
			      struct sb *out)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
	const size_t top = STK_LENGTH(blocks) - 1;
	double low = INFINITY, high = -INFINITY;

	if (course->value_count < 2 || columns < 2)
		return 0;
	if (columns > course->value_count)
		columns = course->value_count;
	for (size_t i = 0; i < columns; i++) {
		double value = column_value(course, i, columns);

		if (isfinite(value)) {
			low = fmin(low, value);
			high = fmax(high, value);
		}
	}
	for (size_t i = 0; i < columns; i++) {
		double value = column_value(course, i, columns), part = 0;

		if (high > low)
			part = fmin(value / (high - low) - low / (high - low), 1);
		if (!isfinite(value))
			sb_adds(out, utf8 ? "×" : "x");
		else
			sb_adds(out, (utf8 ? blocks : ascii)[(size_t)(part * (double)top + 0.5)]);
	}
	return columns;
}
