/*
 * A curve of any length in bounded memory, without losing a peak: of each stretch of x the least
 * and the greatest value stay, where they were, and the first and the last point of the curve. When
 * there are too many stretches, each two become one.
 *
 * Points may come in any order. NaN and infinity have no place in a curve: they are counted, and
 * where the first of them was stays known.
 */
#ifndef STK_REPORT_PAGE_THIN_H
#define STK_REPORT_PAGE_THIN_H

#include <stddef.h>
#include <stdint.h>

#include "jobs/base/text/js.h"

#define THIN_BUCKETS 1000 /* about 2000 points */

struct thin_point {
	double x, y;
	uint64_t order; /* in which it came */
};

struct thin_bucket {
	int64_t index; /* of the stretch, in widths */
	struct thin_point least, greatest;
};

struct thin {
	struct thin_bucket *buckets; /* owned; by index */
	size_t count;
	double width;                  /* of a stretch; 0: no point yet */
	struct thin_point first, last; /* by x */
	uint64_t points, odd;          /* given; of these NaN or infinite */
	double odd_x;                  /* x of the first odd one */
};

void thin_release(struct thin *thin); /* for AUTO(); { 0 } is an empty curve */

/* `unit` is the width of a stretch to begin with: 1 keeps all points of whole numbers while there
 * is room. */
void thin_add(struct thin *thin, double unit, double x, double y);
/* Joins stretches until there are at most so many. */
void thin_shrink(struct thin *thin, size_t most);

/* The greatest and the least point; NULL if there is none. */
const struct thin_point *thin_least(const struct thin *thin);
const struct thin_point *thin_greatest(const struct thin *thin);

/* Returns the points [[x,y],…] by rising x, a new array. */
json_t *thin_json(const struct thin *thin);

#endif
