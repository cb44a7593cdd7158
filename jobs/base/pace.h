/*
 * Arrival times and speed of a training's steps: measured on the machine where its output arrives,
 * by that machine's clock, not by a reader that polls it now and then.
 *
 * The speed is that of the newest PACE_WINDOW_MS, pauses (an evaluation, a checkpoint) included:
 * all callers get this same figure. Throughput is that of the whole attempt without its first
 * PACE_WARM_STEPS steps, in which caches, allocators and input queues are still filling: a figure
 * that compares two runs must leave them out of both.
 *
 * Single step times are given only if they are known, that is, if most steps arrive alone. A script
 * that prints every tenth step, or that prints in bursts, shows only sums of steps.
 *
 * A stretch is a period of steady steps: no pause in it was longer than 10 s or, if that is more,
 * eight times the shortest time between two arrivals. The time between two stretches is not counted
 * as stepping.
 *
 * Memory is bounded however long the training: step times are kept in classes that grow by 2 %, so
 * a quantile is right to 1 %.
 */
#ifndef STK_BASE_PACE_H
#define STK_BASE_PACE_H

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"

#define PACE_WARM_STEPS    10
#define PACE_WINDOW_MS     ((int64_t)5 * 60 * 1000)
#define PACE_RECENT_MAX    32 /* newest arrivals that are reported */
#define PACE_STRETCHES_MAX 64 /* newest stretches that are reported */

struct pace;

struct pace *pace_new(void);
void pace_freep(struct pace **pace);

/* Notes a step that was in bytes which arrived at this moment, by both clocks. A step that is not
 * larger than all before changes nothing. */
void pace_step(struct pace *pace, int64_t step, struct mono now, struct utc at);

/* {"v":1, "first_step", "first_at", "step", "at": of the newest, "rate": steps a second,
 *  "throughput": {"mean": steps a second, "n": steps it is made of, "step_seconds": {"p50", "p90",
 *  "p95", "n": steps that came alone}}, "recent": [[step, at]…], "stretches": [[from, to, first
 * step, last step]…]}: instants are UTC in milliseconds; unknown members are absent. NULL if there
 * was no step. A new reference. */
json_t *pace_json(const struct pace *pace);

/* Arrival time of the step in an object made by pace_json(); 0 if unknown. */
int64_t pace_at(const json_t *pace, int64_t step);

#endif
