/* Curves of metrics: see curve.h. */
#include "jobs/report/measure/curve.h"

#include <math.h>
#include <stdlib.h>

#include "jobs/base/mem.h"

void curve_release(struct curve *curve)
{
	free(curve->points);
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

/* Adds a point behind the first: at most two are kept, in order. */
static void add_alone(struct curve *curve, struct curve_point point)
{
	struct curve_point *points = curve->points;

	if (curve->count == 1 && (isfinite(points->value) || point.step < points->step)) {
		curve->points = points = mem_room(points, curve->count, sizeof *points);
		points[curve->count++] = point;
		curve_sort(curve);
	} else if (point.step > points[curve->count - 1].step) {
		points[curve->count - 1] = point;
	} else if (point.step < points->step && isfinite(point.value)) {
		*points = point;
	}
}

void curve_add(struct curve *curve, int64_t step, double value)
{
	if (curve->count > 0 && curve->points[curve->count - 1].step == step) {
		curve->points[curve->count - 1].value = value;
		return;
	}
	if (curve->is_alone && curve->count > 0) {
		add_alone(curve, (struct curve_point){ step, value });
		return;
	}
	curve->points = mem_room(curve->points, curve->count, sizeof *curve->points);
	curve->points[curve->count++] = (struct curve_point){ step, value };
}

const struct curve_point *curve_at(const struct curve *curve, int64_t step)
{
	const struct curve_point key = { .step = step };

	return curve->count == 0 ? NULL
				 : bsearch(&key, curve->points, curve->count, sizeof key, by_step);
}
