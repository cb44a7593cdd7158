/* Step times of a run: see step_times.h. */
#include "jobs/report/measure/step_times.h"

#include <math.h>
#include <stdlib.h>

#include "jobs/base/mem.h"

#define SPANS_MIN 16384

void step_times_release(struct step_times *times)
{
	free(times->spans);
	free(times->late);
	free(times->saves);
}

void step_times_add_late(struct step_times *times, int64_t attempt, int64_t after_step)
{
	times->late = mem_room(times->late, times->late_count, sizeof *times->late);
	times->late[times->late_count++] = (struct step_late){ attempt, after_step };
}

/* True if a graph was compiled between these two steps. */
static bool is_late(const struct step_times *times, int64_t attempt, int64_t from, int64_t to)
{
	for (size_t i = 0; i < times->late_count; i++) {
		const struct step_late *late = &times->late[i];

		if (late->attempt == attempt && late->after_step >= from && late->after_step < to)
			return true;
	}
	return false;
}

void step_times_add_save(struct step_times *times, int64_t attempt, int64_t from_ms, int64_t to_ms)
{
	times->saves = mem_room(times->saves, times->save_count, sizeof *times->saves);
	times->saves[times->save_count++] = (struct step_save){ attempt, from_ms, to_ms };
}

/* True if the command saved between these two moments. */
static bool is_saved(const struct step_times *times, int64_t attempt, int64_t from_ms,
		     int64_t to_ms)
{
	size_t low = 0, high = times->save_count;

	/* The first save that does not end before. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct step_save *save = &times->saves[middle];

		if (save->attempt < attempt || (save->attempt == attempt && save->to_ms < from_ms))
			low = middle + 1;
		else
			high = middle;
	}
	return low < times->save_count && times->saves[low].attempt == attempt &&
	       times->saves[low].from_ms <= to_ms;
}

/* Returns the steps at the begin of an attempt that are left out. */
static int64_t warm_up(const struct step_times *times)
{
	return times->epochs ? 1 : STEP_TIMES_WARM;
}

static void begin(struct step_times *times, int64_t attempt, int node, int64_t step, int64_t ms)
{
	times->any = true;
	times->attempt = attempt;
	times->node = node;
	times->first = times->last = step;
	times->last_ms = ms;
	times->inexact = false;
}

static int by_seconds(const void *a, const void *b)
{
	const struct step_span *x = a, *y = b;

	return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Sorts the spans, and joins those of the same time. */
static void join_spans(struct step_times *times)
{
	size_t kept = 0;

	qsort(times->spans, times->count, sizeof *times->spans, by_seconds);
	for (size_t i = 0; i < times->count; i++)
		if (kept > 0 && by_seconds(&times->spans[kept - 1], &times->spans[i]) == 0)
			times->spans[kept - 1].steps += times->spans[i].steps;
		else
			times->spans[kept++] = times->spans[i];
	times->count = kept;
}

static void add_span(struct step_times *times, int64_t attempt, int64_t step, double steps,
		     double seconds)
{
	if (times->count > 0 && times->count == times->join_at) {
		join_spans(times);
		times->join_at = 2 * times->count;
	}
	if (times->join_at < SPANS_MIN)
		times->join_at = SPANS_MIN;
	times->newest = (struct step_span){ attempt, step, seconds / steps, steps };
	times->added++;
	times->spans = mem_room(times->spans, times->count, sizeof *times->spans);
	times->spans[times->count++] = times->newest;
	times->steps += steps;
	times->seconds += seconds;
}

void step_times_start(struct step_times *times, int64_t attempt, size_t start, int node)
{
	if (attempt != times->attempt || (node == times->node && start != times->start))
		times->any = false;
	if (!times->any)
		times->start = start;
}

void step_times_add(struct step_times *times, int64_t attempt, int node, int64_t step, int64_t ms,
		    bool inexact)
{
	bool is_warm, is_known = !inexact && !times->inexact;

	if (!times->any || attempt != times->attempt) {
		begin(times, attempt, node, step, ms);
		times->inexact = inexact;
		return;
	}
	if (node != times->node || step <= times->last)
		return;
	if (is_known && ms >= times->last_ms && ms - times->last_ms < STEP_TIMES_JOIN_MS)
		return;
	is_warm = times->last >= times->first + warm_up(times) - 1;
	/* A clock that was set back gives no time. */
	if (is_warm && is_known && ms > times->last_ms &&
	    !is_late(times, attempt, times->last, step) &&
	    !is_saved(times, attempt, times->last_ms, ms))
		add_span(times, times->attempt, step, (double)(step - times->last),
			 (double)(ms - times->last_ms) / 1000);
	times->last = step;
	times->last_ms = ms;
	times->inexact = inexact;
}

bool step_times_counts(const struct step_times *times, int64_t attempt, int64_t step)
{
	return times->any && attempt == times->attempt && step >= times->first + warm_up(times) &&
	       !is_late(times, attempt, step - 1, step);
}

void step_times_add_told(struct step_times *times, int64_t attempt, int64_t step, double seconds)
{
	add_span(times, attempt, step, 1, seconds);
}

double step_times_mean(const struct step_times *times)
{
	return times->steps > 0 ? times->seconds / times->steps : NAN;
}

double step_times_quantile(struct step_times *times, double q)
{
	double steps = 0;

	if (times->count == 0)
		return NAN;
	join_spans(times);
	for (size_t i = 0; i < times->count; i++) {
		steps += times->spans[i].steps;
		if (steps >= q * times->steps)
			return times->spans[i].seconds;
	}
	return times->spans[times->count - 1].seconds;
}
