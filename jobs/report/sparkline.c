/* The course of a metric: see sparkline.h. */
#include "jobs/report/sparkline.h"

#include <math.h>

/* Makes room: each pair of values becomes their mean. */
static void halve(struct sparkline *line)
{
	for (size_t i = 0; i < SPARKLINE_VALUES / 2; i++)
		line->values[i] = (line->values[2 * i] + line->values[2 * i + 1]) / 2;
	line->value_count = SPARKLINE_VALUES / 2;
	line->stride *= 2;
}

void sparkline_add(struct sparkline *line, double value)
{
	if (line->stride == 0)
		line->stride = 1;
	line->pending += value;
	if (++line->pending_count < line->stride)
		return;
	line->values[line->value_count++] = line->pending / (double)line->stride;
	line->pending = 0;
	line->pending_count = 0;
	if (line->value_count == SPARKLINE_VALUES)
		halve(line);
}

/* The mean of the values that fall on a column. */
static double column_value(const struct sparkline *line, size_t column, size_t columns)
{
	size_t from = column * line->value_count / columns;
	size_t to = (column + 1) * line->value_count / columns;
	double sum = 0;

	if (to == from)
		to++;
	for (size_t i = from; i < to; i++)
		sum += line->values[i];
	return sum / (double)(to - from);
}

size_t sparkline_draw(const struct sparkline *line, size_t columns, bool utf8, struct sb *out)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
	const size_t top = STK_LENGTH(blocks) - 1;
	double low = INFINITY, high = -INFINITY;

	if (line->value_count < 2 || columns < 2)
		return 0;
	if (columns > line->value_count)
		columns = line->value_count;
	for (size_t i = 0; i < columns; i++) {
		double value = column_value(line, i, columns);

		if (isfinite(value)) {
			low = fmin(low, value);
			high = fmax(high, value);
		}
	}
	for (size_t i = 0; i < columns; i++) {
		double value = column_value(line, i, columns), part = 0;

		if (high > low)
			part = fmin(value / (high - low) - low / (high - low), 1);
		if (!isfinite(value))
			sb_adds(out, utf8 ? "×" : "x");
		else
			sb_adds(out, (utf8 ? blocks : ascii)[(size_t)(part * (double)top + 0.5)]);
	}
	return columns;
}
