/* Decides whether a command still makes progress: see stall.h. */
#include "jobs/base/stall.h"

#include <stdlib.h>
#include <string.h>

#define MINUTES ((int64_t)60 * 1000)

#define START_MS      (30 * MINUTES)
#define COMPILE_MS    (120 * MINUTES)
#define FIRST_STEP_MS (60 * MINUTES)
#define SAVE_MS       (30 * MINUTES)
#define SETTLING_MS   (45 * MINUTES) /* limit of steps before enough gaps are known */
#define STEP_MS       (5 * MINUTES)
#define EVALUATE_MS   (15 * MINUTES)
#define OUTPUT_MS     (60 * MINUTES) /* if no metric reports steps */
#define DRAWN_MS      (60 * MINUTES) /* delay of the finding by a progress bar */

#define GAPS_SKIPPED 5
#define GAPS_ENOUGH  5 /* besides the skipped ones */
#define GAP_FACTOR   5

const char *const stall_doing_names[DOING_COUNT] = {
	[DOING_START] = "start", [DOING_COMPILE] = "compile", [DOING_FIRST_STEP] = "first_step",
	[DOING_STEP] = "step",   [DOING_SAVE] = "save",
};

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Time of the last progress or the last redraw of a progress bar. */
static int64_t last_sign(const struct stall *stall)
{
	return larger(stall->last.ms, stall->drawn.ms);
}

void stall_init(struct stall *stall, enum stall_mode mode, int64_t limit_ms, bool reports_steps,
		struct mono now)
{
	*stall = (struct stall){
		.mode = mode,
		.fixed_ms = mode == STALL_FIXED ? limit_ms : 0,
		.reports_steps = reports_steps,
		.last = now,
		.drawn = now,
		.checked = now,
	};
}

/* The activity if the command neither compiles nor saves. */
static enum stall_doing usual(const struct stall *stall)
{
	return stall->stepped || !stall->reports_steps ? DOING_STEP : DOING_FIRST_STEP;
}

void stall_output(struct stall *stall, struct mono now, bool drawn)
{
	if (drawn) {
		if (stall->stepped && stall->skipped == GAPS_SKIPPED)
			stall->longest_gap = larger(stall->longest_gap, now.ms - last_sign(stall));
		stall->drawn = now;
	}
	if (stall->stepped && stall->reports_steps)
		return;
	stall->last = now;
	if (stall->doing == DOING_START)
		stall->doing = usual(stall);
}

static void add_gap(struct stall *stall, int64_t gap_ms)
{
	if (stall->compiled)
		return; /* compilation has its own limit and does not recur */
	if (stall->saved)
		return; /* saving has its own limit: see stall_bytes() */
	if (stall->skipped < GAPS_SKIPPED) {
		stall->skipped++;
		return;
	}
	stall->gaps[stall->gap_count++ % STALL_GAPS] = gap_ms;
	stall->longest_gap = larger(stall->longest_gap, gap_ms);
}

void stall_step(struct stall *stall, struct mono now, int64_t step)
{
	if (stall->stepped && step <= stall->step) {
		stall->last = now;
		return;
	}
	if (stall->saved)
		stall->longest_pause = larger(stall->longest_pause, now.ms - stall->last.ms);
	if (stall->stepped)
		add_gap(stall, now.ms - larger(stall->step_at.ms, stall->drawn.ms));
	else
		stall->first_step_at = now;
	stall->stepped = true;
	stall->step = step;
	stall->step_at = stall->last = now;
	stall->compiled = stall->saved = stall->waits = false;
	stall->doing = DOING_STEP;
}

void stall_compile(struct stall *stall, struct mono now, bool going_on)
{
	stall->last = now;
	stall->compiled = true;
	stall->waits = false;
	stall->doing = going_on ? DOING_COMPILE : usual(stall);
}

void stall_wait(struct stall *stall, struct mono now)
{
	if (stall->waits)
		return;
	stall_compile(stall, now, true);
	stall->waits = true;
}

void stall_cache(struct stall *stall, struct mono now)
{
	stall->last = now;
	stall->compiled = true;
	stall->waits = false;
}

void stall_bytes(struct stall *stall, struct mono now)
{
	int64_t silent = now.ms - stall->last.ms;

	if (stall->saved)
		stall->longest_pause = larger(stall->longest_pause, silent);
	else if (stall->stepped)
		stall->longest_prelude = larger(stall->longest_prelude, silent);
	stall->last = now;
	stall->saved = true;
	stall->waits = false;
	stall->doing = DOING_SAVE;
}

void stall_saved(struct stall *stall)
{
	if (stall->doing == DOING_SAVE)
		stall->doing = usual(stall);
}

void stall_forget_steps(struct stall *stall)
{
	stall->reports_steps = false;
	if (stall->doing == DOING_FIRST_STEP)
		stall->doing = DOING_STEP;
}

void stall_caught_up(struct stall *stall, struct mono now)
{
	stall->gap_count = stall->skipped = 0;
	stall->longest_gap = 0;
	stall->last = stall->drawn = stall->checked = now;
	stall->first_step_at = stall->step_at = now;
}

static int by_size(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

/* The 99th percentile of the gaps in the ring; the largest if there are fewer than a hundred. */
static int64_t usual_gap(const struct stall *stall)
{
	size_t count = stall->gap_count < STALL_GAPS ? stall->gap_count : STALL_GAPS;
	int64_t sorted[STALL_GAPS];

	if (count == 0)
		return 0;
	memcpy(sorted, stall->gaps, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, by_size);
	return sorted[count - 1 - count / 100];
}

static int64_t step_limit(const struct stall *stall)
{
	int64_t limit, stepping;

	if (stall->mode == STALL_FIXED)
		return stall->fixed_ms;
	if (!stall->reports_steps)
		return OUTPUT_MS;
	stepping = stall->step_at.ms - stall->first_step_at.ms;
	limit = larger(STEP_MS, smaller(stepping, EVALUATE_MS));
	limit += GAP_FACTOR * usual_gap(stall);
	if (stall->gap_count < GAPS_ENOUGH)
		limit = larger(limit, SETTLING_MS);
	limit = larger(limit, 2 * stall->longest_gap);
	return larger(limit, 2 * stall->longest_prelude);
}

int64_t stall_limit(const struct stall *stall)
{
	switch (stall->doing) {
	case DOING_START:
		return larger(stall->fixed_ms, START_MS);
	case DOING_COMPILE:
		return larger(stall->fixed_ms, COMPILE_MS);
	case DOING_FIRST_STEP:
		return larger(stall->fixed_ms, FIRST_STEP_MS);
	case DOING_SAVE:
		return larger(larger(SAVE_MS, 2 * stall->longest_pause), step_limit(stall));
	case DOING_STEP:
	case DOING_COUNT:
		break;
	}
	return step_limit(stall);
}

/* Leaves out a period without calls. */
static void forgive(struct stall *stall, int64_t blind_ms)
{
	stall->last.ms += blind_ms;
	stall->drawn.ms += blind_ms;
}

/* The limit, extended if a progress bar is being redrawn. */
static int64_t limit_at(const struct stall *stall, struct mono now)
{
	int64_t limit = stall_limit(stall);

	if (stall->drawn.ms > stall->last.ms && now.ms - stall->drawn.ms <= limit)
		return limit + DRAWN_MS;
	return limit;
}

bool stall_is_half(const struct stall *stall, struct mono now, struct stall_silence *ret)
{
	int64_t silent = now.ms - stall->last.ms;

	if (stall->mode == STALL_OFF ||
	    silent < (stall->mode == STALL_FIXED ? stall->fixed_ms : STEP_MS) / 2)
		return false; /* no limit is lower: spare the look at all gaps */
	*ret = (struct stall_silence){ stall->doing, silent, limit_at(stall, now) };
	return silent >= ret->limit_ms / 2;
}

bool stall_check(struct stall *stall, struct mono now, struct stall_silence *ret)
{
	int64_t blind_ms = now.ms - stall->checked.ms, silent, limit;

	stall->checked = now;
	if (stall->mode == STALL_OFF)
		return false;
	if (blind_ms >= STALL_BLIND_MS)
		forgive(stall, smaller(blind_ms, now.ms - stall->last.ms));
	silent = now.ms - stall->last.ms;
	if (silent <= (stall->mode == STALL_FIXED ? stall->fixed_ms : STEP_MS))
		return false; /* no limit is lower: spare the look at all gaps */
	limit = limit_at(stall, now);
	if (silent <= limit)
		return false;
	*ret = (struct stall_silence){ stall->doing, silent, limit };
	return true;
}
