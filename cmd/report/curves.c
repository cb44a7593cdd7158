/* Curves of a report: see curves.h. */
#include "cmd/report/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/store/order.h"

#define BIN_FIRST 1e-4 /* seconds at which the first bin begins */
#define BIN_RATIO 1.01

void curves_release(struct curves *curves)
{
	for (size_t i = 0; i < curves->count; i++) {
		struct curves_metric *metric = &curves->metrics[i];

		for (size_t k = 0; k < metric->past_count; k++)
			thin_release(&metric->past[k].line);
		thin_release(&metric->line);
		free(metric->name);
	}
	thin_release(&curves->speed);
	free(curves->metrics);
	free(curves->attempts);
}

/* ---- while a run is measured ---- */

void curves_series(struct curves *curves, const struct run_series *series)
{
	size_t progress =
		order_progress_metric(json_object_get(run_series_plan(series), "metrics"));

	curves->count = run_series_metrics(series);
	curves->metrics = mem_zero(curves->count, sizeof *curves->metrics);
	for (size_t i = 0; i < curves->count; i++) {
		curves->metrics[i].name = mem_copy(run_series_name(series, i));
		curves->metrics[i].node = -1;
	}
	if (progress != SIZE_MAX) {
		curves->by_step = true;
		curves->unit = curves->metrics[progress].name;
	}
}

static void note_attempt(struct curves *curves, const struct run_reading *reading)
{
	struct curves_attempt *newest = NULL;

	if (reading->step < 0)
		return;
	for (size_t i = curves->attempt_count; i-- > 0 && !newest;)
		if (curves->attempts[i].number == reading->attempt &&
		    curves->attempts[i].start == reading->start)
			newest = &curves->attempts[i];
	if (!newest) {
		curves->attempts =
			mem_room(curves->attempts, curves->attempt_count, sizeof *curves->attempts);
		newest = &curves->attempts[curves->attempt_count++];
		*newest = (struct curves_attempt){ reading->attempt, reading->start, reading->step,
						   -1 };
	}
	if (reading->step < newest->first)
		newest->first = reading->step;
	if (reading->replayed && reading->step > newest->replayed_to)
		newest->replayed_to = reading->step;
}

/* Returns the part that attempts behind this one have superseded; NULL: there are too many. */
static struct thin *past_of(struct curves_metric *metric, int64_t attempt)
{
	if (metric->past_count > 0 && metric->past[metric->past_count - 1].attempt == attempt)
		return &metric->past[metric->past_count - 1].line;
	if (metric->past_count == CURVES_PAST_MAX)
		return NULL;
	metric->past[metric->past_count].attempt = attempt;
	return &metric->past[metric->past_count++].line;
}

void curves_reading(struct curves *curves, const struct run_reading *reading)
{
	struct curves_metric *metric = &curves->metrics[reading->metric];
	double x = (double)reading->step, unit = 1;
	struct thin *line = &metric->line;

	note_attempt(curves, reading);
	if (metric->node < 0)
		metric->node = reading->node;
	if (reading->node != metric->node)
		return;
	if (!curves->by_step) {
		x = (double)(reading->at.ms - curves->begun_ms) / 1000;
		unit = 0.001;
	}
	if (curves->by_step ? reading->step < 0 : reading->at.ms == 0) {
		metric->early++;
		return;
	}
	metric->replayed += reading->replayed && reading->counts;
	metric->superseded += !reading->counts;
	if (!reading->counts)
		line = past_of(metric, reading->attempt);
	if (!line) {
		metric->past_left++;
		return;
	}
	thin_add(line, unit, x, reading->value);
	if (line != &metric->line)
		thin_shrink(line, CURVES_PAST_PARTS);
}

void curves_span(struct curves *curves, const struct step_span *span,
		 const struct run_reading *reading)
{
	double bin = floor(log(span->seconds / BIN_FIRST) / log(BIN_RATIO));
	size_t at = bin > 0 ? (size_t)fmin(bin, CURVES_BINS - 1) : 0;

	curves->bins[at] += span->steps;
	curves->longest = fmax(curves->longest, span->seconds);
	if (reading->counts)
		thin_add(&curves->speed, 1, (double)span->step, 1 / span->seconds);
}

/* ---- charts ---- */

/* All curves together. */
#define POINTS_MAX 40000

struct curves_all {
	struct curves *curves;
	const struct measure *runs;
	size_t count; /* curves that are drawn */
	size_t left;  /* curves that are not */
	size_t parts; /* stretches of a curve */
};

json_t *curves_chart_new(const char *title, const char *unit, const char *x)
{
	json_t *chart = json_object();

	js_put_str(chart, "title", title);
	js_put_str(chart, "unit", unit);
	js_put_str(chart, "x", x);
	js_put(chart, "lines", json_array());
	js_put(chart, "marks", json_array());
	js_put(chart, "bands", json_array());
	return chart;
}

void curves_chart_line(json_t *chart, struct thin *thin, size_t parts, char *name, size_t color,
		       bool dashed)
{
	json_t *line = json_object();

	thin_shrink(thin, parts);
	js_put_str(line, "name", name);
	js_put(line, "color", json_integer((json_int_t)color));
	if (dashed)
		js_put(line, "dashed", json_true());
	js_put(line, "points", thin_json(thin));
	json_array_append_new(json_object_get(chart, "lines"), line);
	free(name);
}

static void add_mark(json_t *chart, double x, char *words)
{
	json_t *mark = json_object();

	js_put(mark, "x", json_real(x));
	js_put_str(mark, "words", words);
	json_array_append_new(json_object_get(chart, "marks"), mark);
	free(words);
}

/* Adds a band, or widens those that it touches: no place is shaded twice. */
static void add_band(json_t *bands, double from, double to)
{
	for (size_t i = json_array_size(bands); i-- > 0;) {
		const json_t *other = json_array_get(bands, i);

		if (js_real(other, "from", 0) > to || js_real(other, "to", 0) < from)
			continue;
		from = fmin(from, js_real(other, "from", from));
		to = fmax(to, js_real(other, "to", to));
		json_array_remove(bands, i);
	}
	json_array_append_new(bands, json_pack("{s:f, s:f}", "from", from, "to", to));
}

/* "attempt 2", with the run if there are several, and the start if it is not the first. */
static char *attempt_words(const struct curves_all *all, size_t run,
			   const struct curves_attempt *attempt)
{
	AUTO(auto_free)
	char *start =
		attempt->start > 0 ? mem_format(", start %zu", attempt->start + 1) : mem_copy("");

	return mem_format("%s%sattempt %lld%s", all->count > 1 ? all->runs[run].run : "",
			  all->count > 1 ? ": " : "", (long long)attempt->number, start);
}

/* Marks where the attempts of a run began, and the steps that they made again. */
static void add_attempts(const struct curves_all *all, size_t run, json_t *chart)
{
	const struct curves *curves = &all->curves[run];

	json_t *bands = json_object_get(chart, "bands");

	for (size_t i = 1; i < curves->attempt_count && curves->by_step; i++) {
		const struct curves_attempt *attempt = &curves->attempts[i];

		add_mark(chart, (double)attempt->first, attempt_words(all, run, attempt));
		if (attempt->replayed_to >= 0)
			add_band(bands, (double)attempt->first, (double)attempt->replayed_to);
	}
}

/* Writes the words below a curve. */
static void put_caption(const struct curves_all *all, json_t *chart, double width, const char *more)
{
	AUTO(sb_release) struct sb text = SB_INIT;

	if (width > 1)
		sb_addf(&text,
			"Thinned: of each %.6g of x the least and the greatest value are drawn. ",
			width);
	if (json_array_size(json_object_get(chart, "marks")) > 0)
		sb_adds(&text, "A dashed vertical line: an attempt begins. ");
	if (json_array_size(json_object_get(chart, "bands")) > 0)
		sb_adds(&text, "A grey band: these steps were made again after a resume. ");
	if (all->left > 0)
		sb_addf(&text, "Of %zu runs the first %zu are drawn. ", all->count + all->left,
			all->count);
	sb_adds(&text, more);
	js_put_str(chart, "caption", text.text);
}

/* Draws a metric of a run, and what of it was superseded. */
static void add_metric(const struct curves_all *all, size_t run, struct curves_metric *metric,
		       json_t *chart, double *width, struct sb *more)
{
	const char *id = all->runs[run].run;

	if (metric->line.count > 0)
		curves_chart_line(chart, &metric->line, all->parts, mem_copy(id),
				  all->runs[run].row, false);
	*width = fmax(*width, metric->line.width);
	for (size_t k = 0; k < metric->past_count; k++) {
		size_t parts = all->parts < CURVES_PAST_PARTS ? all->parts : CURVES_PAST_PARTS;

		if (metric->past[k].line.count > 0)
			curves_chart_line(chart, &metric->past[k].line, parts,
					  mem_format("%s attempt %lld, superseded", id,
						     (long long)metric->past[k].attempt),
					  all->runs[run].row, true);
	}
	if (metric->past_left > 0)
		sb_addf(more, "Run %s: superseded readings of later attempts are not drawn: %zu. ",
			id, metric->past_left);
	if (metric->line.odd > 0) {
		sb_addf(more, "Run %s: %llu readings are not finite, the first at %.6g. ", id,
			(unsigned long long)metric->line.odd, metric->line.odd_x);
		add_mark(chart, metric->line.odd_x, mem_copy("not finite"));
	}
	if (metric->early > 0)
		sb_addf(more, "Run %s: %llu readings have no step or time, and no place here. ", id,
			(unsigned long long)metric->early);
	if (metric->node > 0)
		sb_addf(more, "Run %s: of node %d. ", id, metric->node);
}

/* Adds the chart of a metric, with all runs that have it. */
static void add_chart(const struct curves_all *all, const char *name, json_t *charts)
{
	AUTO(sb_release) struct sb more = SB_INIT;
	json_t *chart = NULL;
	bool superseded = false;
	double width = 0;

	for (size_t i = 0; i < all->count; i++)
		for (size_t k = 0; k < all->curves[i].count; k++) {
			struct curves_metric *metric = &all->curves[i].metrics[k];

			if (strcmp(metric->name, name) != 0 ||
			    (metric->line.count == 0 && metric->past_count == 0))
				continue;
			if (!chart)
				chart = curves_chart_new(
					name, "",
					all->curves[i].by_step ? all->curves[i].unit : "seconds");
			add_metric(all, i, metric, chart, &width, &more);
			superseded |= metric->past_count > 0;
			add_attempts(all, i, chart);
		}
	if (!chart)
		return;
	if (superseded)
		sb_adds(&more, "A dashed curve: readings of steps that a later attempt made again, "
			       "which do not count. ");
	put_caption(all, chart, width, more.text);
	json_array_append_new(charts, chart);
}

static void add_speed(const struct curves_all *all, json_t *charts)
{
	json_t *chart;
	bool samples = true, epochs = false;
	double width = 0;

	for (size_t i = 0; i < all->count; i++) {
		epochs |= all->runs[i].by_epoch;
		samples &=
			all->curves[i].speed.count == 0 || isfinite(all->runs[i].measured.samples);
	}
	chart = curves_chart_new("throughput",
				 samples  ? "samples/s"
				 : epochs ? "epochs/s"
					  : "steps/s",
				 epochs ? METRIC_EPOCH : METRIC_STEP);
	for (size_t i = 0; i < all->count; i++) {
		struct thin *speed = &all->curves[i].speed;
		double factor = samples ? all->runs[i].measured.samples : 1;

		if (speed->count == 0)
			continue;
		for (size_t k = 0; k < speed->count; k++) {
			speed->buckets[k].least.y *= factor;
			speed->buckets[k].greatest.y *= factor;
		}
		speed->first.y *= factor;
		speed->last.y *= factor;
		curves_chart_line(chart, speed, all->parts, mem_copy(all->runs[i].run),
				  all->runs[i].row, false);
		width = fmax(width, speed->width);
		add_attempts(all, i, chart);
	}
	put_caption(all, chart, width,
		    "By the times at which the log told the steps; without warm-up, and without "
		    "what a later attempt made again.");
	if (json_array_size(json_object_get(chart, "lines")) > 0)
		json_array_append_new(charts, chart);
	else
		json_decref(chart);
}

/* ---- distribution of step times ---- */

#define BARS 40

/* Finds the bins of all runs that hold the steps, but for the slowest in a hundred. Returns the
 * number of steps. */
static double find_range(const struct curves_all *all, size_t *ret_from, size_t *ret_to)
{
	double steps = 0, seen = 0;
	size_t at, run;

	*ret_from = *ret_to = CURVES_BINS;
	for (at = 0; at < CURVES_BINS; at++)
		for (run = 0; run < all->count; run++)
			steps += all->curves[run].bins[at];
	for (at = 0; at < CURVES_BINS && steps > 0; at++) {
		for (run = 0; run < all->count; run++)
			seen += all->curves[run].bins[at];
		if (seen > 0 && *ret_from == CURVES_BINS)
			*ret_from = at;
		*ret_to = at + 1;
		if (seen >= 0.99 * steps)
			break;
	}
	return steps;
}

static json_t *bars_of(const struct curves *curves, size_t from, size_t to, size_t wide)
{
	json_t *points = json_array();
	double total = 0;

	for (size_t at = 0; at < CURVES_BINS; at++)
		total += curves->bins[at];
	for (size_t at = from; at < to; at += wide) {
		double steps = 0;

		for (size_t k = at; k < at + wide && k < CURVES_BINS; k++)
			steps += curves->bins[k];
		json_array_append_new(points,
				      json_pack("[f, f]", BIN_FIRST * pow(BIN_RATIO, (double)at),
						total > 0 ? steps / total * 100 : 0.0));
	}
	json_array_append_new(points,
			      json_pack("[f, f]", BIN_FIRST * pow(BIN_RATIO, (double)to), 0.0));
	return points;
}

static void add_distribution(const struct curves_all *all, json_t *charts)
{
	AUTO(auto_free) char *slowest = NULL;
	size_t from, to, wide;
	double longest = 0;
	json_t *chart;

	if (!(find_range(all, &from, &to) > 0))
		return;
	for (size_t i = 0; i < all->count; i++)
		longest = fmax(longest, all->curves[i].longest);
	slowest =
		mem_format("Without the slowest of a hundred steps; the longest took %.4g s. Each "
			   "bar begins at its x, and is wider than the one before by the same "
			   "factor.",
			   longest);
	wide = (to - from + BARS - 1) / BARS;
	to = from + (to - from + wide - 1) / wide * wide;
	chart = curves_chart_new("distribution of step times", "% of the steps", "seconds a step");
	js_put(chart, "bars", json_true());
	for (size_t i = 0; i < all->count; i++) {
		json_t *line;

		if (!(all->curves[i].longest > 0)) /* no step of it is measured */
			continue;
		line = json_object();
		js_put_str(line, "name", all->runs[i].run);
		js_put(line, "color", json_integer((json_int_t)all->runs[i].row));
		js_put(line, "points", bars_of(&all->curves[i], from, to, wide));
		json_array_append_new(json_object_get(chart, "lines"), line);
	}
	put_caption(all, chart, 0, slowest);
	json_array_append_new(charts, chart);
}

/* True for a metric that an earlier run, or this one, has had before. */
static bool was_before(const struct curves *curves, size_t run, size_t metric)
{
	for (size_t i = 0; i <= run; i++)
		for (size_t k = 0; k < (i < run ? curves[i].count : metric); k++)
			if (strcmp(curves[i].metrics[k].name, curves[run].metrics[metric].name) ==
			    0)
				return true;
	return false;
}

void curves_charts(struct curves *curves, const struct measure *runs, size_t count, size_t most,
		   json_t *charts)
{
	struct curves_all all = { .curves = curves,
				  .runs = runs,
				  .count = count < most ? count : most,
				  .left = count < most ? 0 : count - most };
	size_t lines = 0;

	for (size_t i = 0; i < all.count; i++)
		for (size_t k = 0; k < curves[i].count; k++)
			lines += 1 + curves[i].metrics[k].past_count;
	all.parts = POINTS_MAX / 2 / (lines ? lines : 1);
	if (all.parts > THIN_BUCKETS)
		all.parts = THIN_BUCKETS;
	if (all.parts < 20)
		all.parts = 20;
	for (size_t i = 0; i < all.count; i++)
		for (size_t k = 0; k < curves[i].count; k++)
			if (strcmp(curves[i].metrics[k].name, METRIC_STEP) != 0 &&
			    !was_before(curves, i, k))
				add_chart(&all, curves[i].metrics[k].name, charts);
	add_speed(&all, charts);
	add_distribution(&all, charts);
}

/* ---- figures ---- */

static void put_point(json_t *row, const char *value, const char *at,
		      const struct thin_point *point)
{
	if (!point)
		return;
	js_put(row, value, json_real(point->y));
	js_put(row, at, json_real(point->x));
}

void curves_metrics(const struct curves *curves, const char *run, json_t *rows)
{
	for (size_t i = 0; i < curves->count; i++) {
		const struct curves_metric *metric = &curves->metrics[i];
		json_t *row;

		if (strcmp(metric->name, METRIC_STEP) == 0)
			continue;
		row = json_object();

		js_put_str(row, "run", run);
		js_put_str(row, "name", metric->name);
		js_put(row, "readings", json_integer((json_int_t)metric->line.points));
		if (metric->line.count > 0) {
			put_point(row, "first", "first_at", &metric->line.first);
			put_point(row, "least", "least_at", thin_least(&metric->line));
			put_point(row, "greatest", "greatest_at", thin_greatest(&metric->line));
			put_point(row, "last", "last_at", &metric->line.last);
		}
		js_put(row, "odd", json_integer((json_int_t)metric->line.odd));
		js_put(row, "superseded", json_integer((json_int_t)metric->superseded));
		js_put(row, "replayed", json_integer((json_int_t)metric->replayed));
		json_array_append_new(rows, row);
	}
}
