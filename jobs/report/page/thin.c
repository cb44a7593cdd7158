/* Thinned curves: see thin.h. */
#include "jobs/report/page/thin.h"

#include <math.h>
#include <stdlib.h>

#include "jobs/base/mem.h"

void thin_release(struct thin *thin)
{
	free(thin->buckets);
	*thin = (struct thin){ 0 };
}

static void take(struct thin_bucket *bucket, const struct thin_point *point)
{
	if (point->y < bucket->least.y)
		bucket->least = *point;
	if (point->y > bucket->greatest.y)
		bucket->greatest = *point;
}

/* Makes stretches twice as wide, until there are at most so many. */
void thin_shrink(struct thin *thin, size_t most)
{
	while (thin->count > most && thin->count > 1) {
		size_t kept = 0;

		thin->width *= 2;
		for (size_t i = 0; i < thin->count; i++) {
			struct thin_bucket bucket = thin->buckets[i];

			/* Rounded down, below zero too. */
			bucket.index = (bucket.index - (bucket.index & 1)) / 2;
			if (kept > 0 && thin->buckets[kept - 1].index == bucket.index) {
				take(&thin->buckets[kept - 1], &bucket.least);
				take(&thin->buckets[kept - 1], &bucket.greatest);
			} else {
				thin->buckets[kept++] = bucket;
			}
		}
		thin->count = kept;
	}
}

/* Returns the place of the stretch, or that at which it is to be put in. */
static size_t place_of(const struct thin *thin, int64_t index)
{
	size_t low = 0, high = thin->count;

	if (high > 0 && thin->buckets[high - 1].index <= index)
		return thin->buckets[high - 1].index == index ? high - 1 : high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thin->buckets[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void thin_add(struct thin *thin, double unit, double x, double y)
{
	struct thin_point point = { x, y, thin->points++ };
	int64_t index;
	size_t at;

	if (!isfinite(y)) {
		if (thin->odd++ == 0)
			thin->odd_x = x;
		return;
	}
	if (thin->width <= 0) {
		thin->width = unit;
		thin->first = thin->last = point;
	}
	if (x < thin->first.x)
		thin->first = point;
	if (x >= thin->last.x)
		thin->last = point;
	index = (int64_t)floor(x / thin->width);
	at = place_of(thin, index);
	if (at < thin->count && thin->buckets[at].index == index) {
		take(&thin->buckets[at], &point);
		return;
	}
	thin->buckets = mem_room(thin->buckets, thin->count, sizeof *thin->buckets);
	for (size_t i = thin->count++; i > at; i--)
		thin->buckets[i] = thin->buckets[i - 1];
	thin->buckets[at] = (struct thin_bucket){ index, point, point };
	thin_shrink(thin, THIN_BUCKETS);
}

const struct thin_point *thin_least(const struct thin *thin)
{
	const struct thin_point *found = NULL;

	for (size_t i = 0; i < thin->count; i++)
		if (!found || thin->buckets[i].least.y < found->y)
			found = &thin->buckets[i].least;
	return found;
}

const struct thin_point *thin_greatest(const struct thin *thin)
{
	const struct thin_point *found = NULL;

	for (size_t i = 0; i < thin->count; i++)
		if (!found || thin->buckets[i].greatest.y > found->y)
			found = &thin->buckets[i].greatest;
	return found;
}

static int by_x(const void *a, const void *b)
{
	const struct thin_point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return (p->order > q->order) - (p->order < q->order);
}

json_t *thin_json(const struct thin *thin)
{
	struct thin_point *points = mem_zero(2 * thin->count + 2, sizeof *points);
	json_t *array = json_array();
	size_t count = 0;

	if (thin->count > 0) {
		points[count++] = thin->first;
		points[count++] = thin->last;
	}
	for (size_t i = 0; i < thin->count; i++) {
		points[count++] = thin->buckets[i].least;
		points[count++] = thin->buckets[i].greatest;
	}
	qsort(points, count, sizeof *points, by_x);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || points[i].order != points[i - 1].order)
			json_array_append_new(array, json_pack("[f, f]", points[i].x, points[i].y));
	free(points);
	return array;
}
