/* Curves of metrics: see curve.h. */
#include "jobs/report/measure/curve.h"

#include <stdlib.h>

#include "jobs/base/mem.h"

void curve_release(struct curve *curve)
{
	free(curve->points);
}

void curve_add(struct curve *curve, int64_t step, double value)
{
	if (curve->count > 0 && curve->points[curve->count - 1].step == step) {
		curve->points[curve->count - 1].value = value;
		return;
	}
	curve->points = mem_room(curve->points, curve->count, sizeof *curve->points);
	curve->points[curve->count++] = (struct curve_point){ step, value };
}

static int by_step(const void *a, const void *b)
{
	const struct curve_point *x = a, *y = b;

	return (x->step > y->step) - (x->step < y->step);
}

void curve_sort(struct curve *curve)
{
	if (curve->count > 1)
		qsort(curve->points, curve->count, sizeof *curve->points, by_step);
}

const struct curve_point *curve_at(const struct curve *curve, int64_t step)
{
	const struct curve_point key = { .step = step };

	return curve->count == 0 ? NULL
				 : bsearch(&key, curve->points, curve->count, sizeof key, by_step);
}
