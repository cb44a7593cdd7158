/* Runs compared by measurement: see comparison.h. */
#include "jobs/report/measure/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "jobs/flow/student.h"

const char *const comparison_words[] = {
	[COMPARISON_BASELINE] = "baseline",
	[COMPARISON_FASTER] = "faster",
	[COMPARISON_SLOWER] = "slower",
	[COMPARISON_NOISE] = "within noise",
	[COMPARISON_NO_INTERVAL] = "one run: no interval",
	[COMPARISON_NO_STEPS] = "no steps measured",
	[COMPARISON_NO_BASE] = "no steps of the baseline",
};

/* Returns the mean of a member over the runs of a row that have it; NAN if none has. */
static double mean_of(const struct measured_run *runs, size_t count, size_t row, size_t member)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < count; i++) {
		double value;

		memcpy(&value, (const char *)&runs[i] + member, sizeof value);
		if (runs[i].row == row && isfinite(value)) {
			sum += value;
			n++;
		}
	}
	return n > 0 ? sum / n : NAN;
}
#define MEAN_OF(member) mean_of(runs, count, i, offsetof(struct measured_run, member))

/* The unit of speed: the first of these that is known of all runs that count. */
enum speed_unit {
	SPEED_TOLD,    /* samples a second, by the log's own word */
	SPEED_SAMPLES, /* samples a second */
	SPEED_STEPS,   /* steps a second */
};

static double speed_of(const struct measured_run *run, enum speed_unit unit)
{
	if (unit == SPEED_TOLD)
		return run->rate;
	return (unit == SPEED_SAMPLES ? run->samples : 1) / run->mean;
}

/* Logarithms of the speeds of a row's runs: how many, their mean, and the squares about it. */
struct speeds {
	double n, mean, squares;
};

static struct speeds speeds_of(const struct measured_run *runs, size_t count, size_t row,
			       enum speed_unit unit)
{
	struct speeds speeds = { 0 };

	for (size_t i = 0; i < count; i++) {
		double value = log(speed_of(&runs[i], unit)), before = speeds.mean;

		if (runs[i].row != row || !isfinite(value))
			continue;
		speeds.n++;
		speeds.mean += (value - before) / speeds.n;
		speeds.squares += (value - before) * (value - speeds.mean);
	}
	return speeds;
}

static enum speed_unit speed_unit_of(const struct measured_run *runs, size_t count)
{
	bool told = true, samples = true;

	for (size_t i = 0; i < count; i++) {
		if (runs[i].row == SIZE_MAX)
			continue;
		told &= runs[i].rate > 0;
		samples &= runs[i].samples > 0;
	}
	return told ? SPEED_TOLD : samples ? SPEED_SAMPLES : SPEED_STEPS;
}

/* The spread of repeats over all rows: squares about the mean of each row, and degrees of freedom.
 */
struct spread {
	double squares, freedom;
};

static struct spread spread_of(const struct measured_run *runs, size_t count, size_t row_count,
			       enum speed_unit unit)
{
	struct spread spread = { 0 };

	for (size_t i = 0; i < row_count; i++) {
		struct speeds speeds = speeds_of(runs, count, i, unit);

		spread.squares += speeds.squares;
		spread.freedom += speeds.n > 1 ? speeds.n - 1 : 0;
	}
	return spread;
}

/* The variance of a row's mean: by the spread of all rows, or by its own if that is evidently
 * larger. Pooling alone would call the mean of a noisy row a difference. */
static double variance_of(const struct speeds *speeds, const struct spread *all)
{
	double pooled = all->squares / all->freedom, own = speeds->squares / (speeds->n - 1);

	return (own > COMPARISON_NOISY * pooled ? own : pooled) / speeds->n;
}

/* Sets the speed of each row relative to the baseline, its interval and the verdict. */
static void judge(const struct measured_run *runs, size_t count, struct comparison_row *rows,
		  size_t row_count)
{
	enum speed_unit unit = speed_unit_of(runs, count);
	struct speeds base = speeds_of(runs, count, 0, unit);
	struct spread all = spread_of(runs, count, row_count, unit);
	double t = NAN;

	if (all.freedom > 0 && row_count > 1)
		t = student_quantile(1 - (1 - COMPARISON_LEVEL) / 2 / (double)(row_count - 1),
				     all.freedom);
	for (size_t i = 0; i < row_count; i++) {
		struct comparison_row *row = &rows[i];
		struct speeds speeds = speeds_of(runs, count, i, unit);
		double middle = speeds.mean - base.mean, half;

		row->x = row->low = row->high = NAN;
		row->verdict = i == 0         ? COMPARISON_BASELINE
			       : speeds.n > 0 ? COMPARISON_NO_BASE
					      : COMPARISON_NO_STEPS;
		if (speeds.n == 0 || base.n == 0)
			continue;
		row->x = exp(middle);
		if (i == 0)
			continue;
		row->verdict = COMPARISON_NO_INTERVAL;
		if (speeds.n < 2 || base.n < 2)
			continue;
		half = t * sqrt(variance_of(&speeds, &all) + variance_of(&base, &all));
		row->low = exp(middle - half);
		row->high = exp(middle + half);
		row->verdict = row->low > 1    ? COMPARISON_FASTER
			       : row->high < 1 ? COMPARISON_SLOWER
					       : COMPARISON_NOISE;
	}
}

/* Sets what the metric came to at the last step that all runs of both rows have, and where the two
 * were furthest apart. */
static void compare_curves(const struct measured_run *runs, size_t count, size_t at,
			   struct comparison_row *row)
{
	const struct curve *first = &runs[row->first].curve;

	row->last_step = row->gap_step = -1;
	row->last_value = row->base_value = row->gap = NAN;
	for (size_t k = 0; k < first->count; k++) {
		double sum[2] = { 0 }, n[2] = { 0 }, gap;
		bool all = true;

		for (size_t i = 0; i < count && all; i++) {
			const struct curve_point *point;

			if (runs[i].row != at && runs[i].row != 0)
				continue;
			point = curve_at(&runs[i].curve, first->points[k].step);
			all = point != NULL;
			for (int side = 0; all && side < 2; side++)
				if (runs[i].row == (side ? at : 0)) {
					sum[side] += point->value;
					n[side]++;
				}
		}
		/* A side without a run that counts has no value, which is not NaN. */
		if (!all || n[0] == 0 || n[1] == 0)
			continue;
		row->last_step = first->points[k].step;
		row->base_value = sum[0] / n[0];
		row->last_value = sum[1] / n[1];
		gap = fabs(row->last_value - row->base_value);
		if (!(gap <= row->gap) && !isnan(gap)) {
			row->gap = gap;
			row->gap_step = row->last_step;
		}
	}
}

static void set_reached(const struct measured_run *runs, size_t count, size_t at,
			struct comparison_row *row)
{
	double price = 0;

	row->reached = row->reached_cost = NAN;
	for (size_t i = 0; i < count; i++) {
		if (runs[i].row != at || isnan(runs[i].reached))
			continue;
		if (isinf(runs[i].reached)) {
			row->reached = row->reached_runs ? row->reached : INFINITY;
			continue;
		}
		row->reached = row->reached_runs ? row->reached + runs[i].reached : runs[i].reached;
		price += runs[i].price * runs[i].reached / 3600;
		row->reached_runs++;
	}
	if (row->reached_runs > 0) {
		row->reached /= (double)row->reached_runs;
		row->reached_cost = price / (double)row->reached_runs;
	}
}

/* True if the metric became NaN or infinite where the baseline has a number. */
static bool has_diverged(const struct comparison_row *row)
{
	return row->last_step >= 0 && !isfinite(row->last_value) && isfinite(row->base_value);
}

static void mark_best(struct comparison_row *rows, size_t row_count)
{
	struct comparison_row *best = NULL;

	for (size_t i = 1; i < row_count; i++)
		if (rows[i].verdict == COMPARISON_FASTER && rows[i].same_quality &&
		    !has_diverged(&rows[i]) && (!best || rows[i].x > best->x))
			best = &rows[i];
	if (best)
		best->is_best = true;
}

void comparison_make(const struct measured_run *runs, size_t run_count, struct comparison_row *rows,
		     size_t row_count)
{
	size_t count = run_count;
	enum speed_unit unit = speed_unit_of(runs, count);

	judge(runs, count, rows, row_count);
	for (size_t i = 0; i < row_count; i++) {
		struct comparison_row *row = &rows[i];
		double workers = MEAN_OF(workers) / runs[rows[0].first].workers;

		row->steps = MEAN_OF(steps);
		row->mean = MEAN_OF(mean);
		row->p50 = MEAN_OF(p50);
		row->p95 = MEAN_OF(p95);
		/* Told by some only, it would stand beside what the clock says of the others. */
		row->samples_rate = unit == SPEED_TOLD ? MEAN_OF(rate) : NAN;
		if (!(row->samples_rate > 0))
			row->samples_rate = MEAN_OF(samples) / row->mean;
		row->wall = MEAN_OF(wall);
		row->billable = MEAN_OF(billable);
		row->compile = MEAN_OF(compile);
		row->cost = MEAN_OF(cost);
		row->samples_per_usd = row->samples_rate * 3600 / MEAN_OF(price);
		row->efficiency = row->only_workers ? row->x / workers : NAN;
		compare_curves(runs, count, i, row);
		set_reached(runs, count, i, row);
	}
	mark_best(rows, row_count);
}

/* Returns the seconds that `a` takes longer for what `b` makes in one step: steps of another batch
 * size are not worth the same. */
static double gain_of_step(const struct comparison_row *a, const struct comparison_row *b)
{
	double scale = b->samples_rate * b->mean / (a->samples_rate * a->mean);

	/* Rounding alone; also if samples are not known. */
	if (!isfinite(scale) || fabs(scale - 1) < 1e-9)
		scale = 1;
	return a->mean * scale - b->mean;
}

double comparison_break_even(const struct comparison_row *a, const struct comparison_row *b)
{
	double begin = b->compile - a->compile, gain = gain_of_step(a, b);

	if (begin == 0)
		return NAN;
	if (isnan(begin) || isnan(gain))
		return NAN;
	if (begin < 0)
		return comparison_break_even(b, a);
	if (gain <= 0)
		return INFINITY;
	return begin / gain;
}
