/*
 * How fast the steps of an attempt are, as they are seen: throughput, without the first
 * PACE_WARM_STEPS steps of the attempt, in which caches, allocators and input queues
 * are still filling. A figure that compares two runs must leave them out of both.
 *
 * Steps that are seen at one look count with their mean; a look is a tenth of a second
 * away from the next, so a single step is known no better than that. A pause between
 * two steps (a checkpoint, a compilation) belongs to the step after it.
 *
 * Memory is bounded however long the training: step times are kept in classes that grow
 * by 2 %, so a quantile is right to 1 %.
 */
#ifndef STK_RUN_PACE_H
#define STK_RUN_PACE_H

#include "jobs/base/clock.h"
#include "jobs/base/json.h"

#define PACE_WARM_STEPS 10

struct pace;

struct pace *pace_new(void);
void pace_freep(struct pace **pace);

/* Up to here it was written before anybody looked: `first` is the attempt's first step,
 * -1 if there was none yet. */
void pace_begin(struct pace *pace, int64_t first);

/* The largest step so far, as of now; one that is not new changes nothing. */
void pace_look(struct pace *pace, int64_t step, struct mono now);

/* {"mean", "p50", "p95"} in steps a second and {"n"}, the steps they are made of: half of
 * the steps were at least as fast as p50, 95 % as p95. NULL: none counts yet. A new
 * reference. */
json_t *pace_json(const struct pace *pace);

#endif
