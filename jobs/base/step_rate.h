/*
 * Speed of a training's steps. All speeds of the product are computed here, and nowhere else are
 * steps divided by time: `progress.rate`, `throughput` and `step_seconds`, each time left, the
 * forecasts of the limits, the range in the live block, and the step time by which the ledger tells
 * saving from steps.
 *
 * Units. A step is a step as the command's log numbers it; a line that prints each tenth step tells
 * ten. Times are milliseconds. A speed is told in steps a second, a step time in seconds.
 *
 * Two speeds of an attempt
 *   recent   of the newest STEP_RATE_WINDOW_MS. It is the one speed that is shown, and the basis of
 *            each time left.
 *   overall  of the whole attempt: `throughput`, for comparing runs. Never shown as the speed.
 *
 * Left out
 *   first steps   The first STEP_RATE_WARM_STEPS of an attempt, in which graphs are compiled, and
 *                 caches, allocators and input queues are filled. The recent speed is that of the
 *                 first steps while there are no others.
 *   known steps   A step that is not larger than all before: a resumed command makes steps again,
 *                 and several ranks print one. The time that they take is a pause.
 *   other attempts  Each attempt is measured by itself, so the time between two is in no speed.
 *   sleep         The time in which the machine slept, if the caller's clock stands still then
 *                 (clock_awake_now()).
 *   clock jumps   If the caller's clock is set back, the time between two samples is lost, and all
 *                 times after it are right. A clock set forward looks like a pause, so a clock that
 *                 cannot be set is to be preferred.
 *
 * Counted
 *   pauses        Evaluation, checkpoints and graphs compiled late. They are in both speeds, and
 * not in the median of the step times.
 *
 * Steps are dated where the log line arrives, on the machine that computes. Lines that arrive
 * within a few milliseconds are one sample: a log that is written in bursts has a right mean, and
 * no single step times. Step times are given if most steps arrive alone, as quantiles right to 1 %
 * (they are counted in classes that grow by 2 %, so memory is bounded).
 *
 * A stretch is a period of steady steps: no pause in it was longer than 10 s or, if that is more,
 * eight times the shortest time between two samples. The time between two stretches is not counted
 * as stepping.
 *
 * The silence limit of stall.h is no speed: it learns from gaps between log lines, whatever number
 * of steps they tell, after a compilation or a save from none.
 *
 * Pure: times come in with each call. The functions in this header are inline because the flow,
 * which is linked to nothing, uses them.
 */
#ifndef STK_BASE_STEP_RATE_H
#define STK_BASE_STEP_RATE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"

struct json_t;

#define STEP_RATE_WARM_STEPS 10
#define STEP_RATE_WINDOW_MS  ((int64_t)5 * 60 * 1000)

/* ---- a speed ---------------------------------------------------------------------------- */

/* Steps, and the time that they took. ms 0: the speed is not known. */
struct step_rate {
	double steps, ms;
};

static inline struct step_rate step_rate_of(double steps, double ms)
{
	return ms > 0 && steps >= 0 ? (struct step_rate){ steps, ms } : (struct step_rate){ 0 };
}

/* The speed that an event or a report tells as steps a second; not positive: not known. */
static inline struct step_rate step_rate_reported(double per_second)
{
	return per_second > 0 ? step_rate_of(per_second, 1000) : (struct step_rate){ 0 };
}

static inline bool step_rate_is_known(struct step_rate rate)
{
	return rate.ms > 0;
}

/* Returns steps a second; 0 if the speed is not known. */
static inline double step_rate_per_second(struct step_rate rate)
{
	return rate.ms > 0 ? rate.steps * 1000 / rate.ms : 0;
}

/* Returns the milliseconds that so many steps take: INFINITY at a speed of no steps at all, 0 if
 * the speed is not known. */
static inline double step_rate_ms(struct step_rate rate, double steps)
{
	if (rate.ms <= 0)
		return 0;
	return rate.steps > 0 ? steps * rate.ms / rate.steps : INFINITY;
}

/* True if `rate` is known, and `other` is slower or not known. */
static inline bool step_rate_is_faster(struct step_rate rate, struct step_rate other)
{
	return rate.ms > 0 && (other.ms <= 0 || rate.steps * other.ms > other.steps * rate.ms);
}

/* ---- steps as they arrive ---------------------------------------------------------------- */

#define STEP_RATE_POINTS 128 /* enough for STEP_RATE_WINDOW_MS */

struct step_rate_point {
	int64_t step, ms;
};

/* The steps of one attempt. { 0 }: none yet. */
struct step_rate_window {
	bool any, warmed;
	int64_t first_step;
	int64_t shift_ms;                   /* by which the clock was set back */
	struct step_rate_point first, last; /* last: with the steps that came with it */
	struct step_rate_point warm;        /* the last one of the first steps */
	struct step_rate_point points[STEP_RATE_POINTS]; /* a ring of earlier arrivals */
	size_t point_count;
};

/* An added step, beside those before it. */
enum step_rate_sample {
	SAMPLE_KNOWN, /* not larger than all before: it changes nothing */
	SAMPLE_FIRST,
	SAMPLE_JOINED, /* with the one before */
	SAMPLE_LATER
};

/* Adds a step that arrived at `ms`, by any clock that is the same for all steps of the window. */
enum step_rate_sample step_rate_window_add(struct step_rate_window *window, int64_t step,
					   int64_t ms);

/* Returns the slowest and the fastest speed of about a sixth of the newest STEP_RATE_WINDOW_MS.
 * `told`, the recent speed as the machine measured it, lies between them. */
void step_rate_window_bounds(const struct step_rate_window *window, struct step_rate recent,
			     struct step_rate *ret_slow, struct step_rate *ret_fast);

/* ---- meter on the machine where steps arrive --------------------------------------------- */

#define STEP_RATE_RECENT_MAX    32 /* newest arrivals that are reported */
#define STEP_RATE_STRETCHES_MAX 64 /* newest stretches that are reported */

struct step_rate_meter;

struct step_rate_meter *step_rate_meter_new(void);
void step_rate_meter_freep(struct step_rate_meter **meter);

/* Notes a step that was in bytes which arrived at this moment: `ms` measures, by any clock that is
 * the same for all steps of the meter; `at` dates. */
void step_rate_meter_step(struct step_rate_meter *meter, int64_t step, int64_t ms, struct utc at);

/* {"v":1, "first_step", "first_at", "step", "at": of the newest, "rate": recent, in steps a second,
 *  "throughput": {"mean": overall, in steps a second, "n": steps it is made of, "step_seconds":
 *  {"p50", "p90", "p95", "n": steps that came alone}}, "recent": [[step, at]…], "stretches":
 *  [[from, to, first step, last step]…]}: instants are UTC in milliseconds; unknown members are
 *  absent. NULL if there was no step. A new reference. */
struct json_t *step_rate_meter_json(const struct step_rate_meter *meter);

/* Returns the sample time of the step in such an object; 0 if unknown. */
int64_t step_rate_arrived_ms(const struct json_t *measured, int64_t step);

#endif
