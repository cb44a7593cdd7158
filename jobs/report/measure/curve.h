/* A curve of a metric: readings that count, by step. */
#ifndef STK_REPORT_MEASURE_CURVE_H
#define STK_REPORT_MEASURE_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct curve {
	struct curve_point {
		int64_t step;
		double value;
	} * points; /* owned */
	size_t count;
	/* Nothing is compared with it: its first finite point and its last are kept, however many
	 * are added. */
	bool is_alone;
};
void curve_release(struct curve *curve); /* for AUTO(); { 0 } is fine */
/* Adds a reading; the last one of a step counts. */
void curve_add(struct curve *curve, int64_t step, double value);
/* Sorts the points, after which the curve can be compared. */
void curve_sort(struct curve *curve);
/* Returns the point of this step, borrowed; NULL if there is none. */
const struct curve_point *curve_at(const struct curve *curve, int64_t step);

#endif
