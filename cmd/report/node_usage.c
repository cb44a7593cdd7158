/* The work of a run's nodes: see node_usage.h. */
#include "cmd/report/node_usage.h"

#include <math.h>
#include <stdlib.h>

#include "cmd/report/curves.h"
#include "jobs/base/usage.h"
#include "jobs/report/measure/usage_rules.h"
#include "jobs/run/attempt/run_usage.h"
#include "jobs/store/order.h"

#define NODES_DRAWN 4
#define PARTS       300   /* stretches of a curve, at most */
#define POINTS_MAX  20000 /* of the curves of all runs together */

enum usage_line {
	LINE_BUSIEST,
	LINE_IDLEST,
	LINE_FULLEST,
	LINE_CPU,
	LINE_TRAINER,
	LINE_LOADERS,
	LINE_SWAP
};
#define LINES (LINE_SWAP + 1)

static const struct {
	const char *title, *unit, *name; /* lines of one title are in one chart */
} rows[LINES] = {
	[LINE_BUSIEST] = { "devices of the nodes", "% busy", "busiest" },
	[LINE_IDLEST] = { "devices of the nodes", "% busy", "idlest" },
	[LINE_FULLEST] = { "memory of the devices", "% in use", "fullest" },
	[LINE_CPU] = { "CPU of the command", "% of a core", "all processes" },
	[LINE_TRAINER] = { "CPU of the command", "% of a core", "training process" },
	[LINE_LOADERS] = { "CPU of the command", "% of a core", "a loader process" },
	[LINE_SWAP] = { "swap of the nodes", "MiB/s", "in and out" },
};

struct usage_curves {
	struct usage_rules *rules;
	struct thin lines[NODES_DRAWN][LINES];
	int64_t attempt, at_ms, begun_ms; /* at_ms 0: none yet */
	size_t start;
	int node;
	json_t *marks, *gaps; /* where the command began again: nobody sampled before that */
	double values[LINES]; /* at that time; NAN: not told */
	size_t runs, parts;   /* runs that are drawn; stretches of a curve, by that */
};

static void end_moment(struct usage_curves *curves)
{
	double x = (double)(curves->at_ms - curves->begun_ms) / 1000;

	for (size_t i = 0; i < LINES; i++) {
		if (curves->at_ms > 0 && curves->node < NODES_DRAWN && isfinite(curves->values[i]))
			thin_add(&curves->lines[curves->node][i], 0.5, x, curves->values[i]);
		curves->values[i] = NAN;
	}
}

/* Notes that the command began again, unless another node has told so. */
static void note_begin(struct usage_curves *curves, const struct run_reading *reading)
{
	double x = (double)(reading->at.ms - curves->begun_ms) / 1000;
	AUTO(auto_free)
	char *start =
		reading->start > 0 ? mem_format(", start %zu", reading->start + 1) : mem_copy("");
	AUTO(auto_free)
	char *words = mem_format("attempt %lld%s", (long long)reading->attempt, start);

	if (reading->attempt < curves->attempt ||
	    (reading->attempt == curves->attempt && reading->start <= curves->start))
		return;
	if (curves->attempt > 0) {
		json_array_append_new(curves->marks,
				      json_pack("{s:f, s:s}", "x", x, "words", words));
		json_array_append_new(curves->gaps, json_real(x));
	}
	curves->attempt = reading->attempt;
	curves->start = reading->start;
}

static void set(double *value, double other, double (*pick)(double, double))
{
	*value = pick(*value, other);
}

static double sum(double a, double b)
{
	return isfinite(a) ? a + b : b;
}

static int on_figure(void *arg, const struct run_reading *reading, struct err **err)
{
	struct usage_curves *curves = arg;
	const struct usage_point point = { .attempt = reading->attempt,
					   .start = reading->start,
					   .node = reading->node,
					   .figure = reading->metric,
					   .step = reading->step,
					   .at_ms = reading->at.ms,
					   .value = reading->value };
	bool is_device = point.figure >= USAGE_DEVICE;

	(void)err;
	usage_rules_add(curves->rules, &point);
	if (point.at_ms != curves->at_ms || point.node != curves->node)
		end_moment(curves);
	if (curves->begun_ms == 0 || point.at_ms < curves->begun_ms)
		curves->begun_ms = point.at_ms;
	note_begin(curves, reading);
	curves->at_ms = point.at_ms;
	curves->node = point.node;
	if (is_device && (point.figure - USAGE_DEVICE) % 2 == 1) {
		set(&curves->values[LINE_FULLEST], point.value, fmax);
	} else if (is_device) {
		set(&curves->values[LINE_BUSIEST], point.value, fmax);
		set(&curves->values[LINE_IDLEST], point.value, fmin);
	} else if (point.figure == USAGE_CPU) {
		curves->values[LINE_CPU] = point.value;
	} else if (point.figure == USAGE_TRAINER) {
		curves->values[LINE_TRAINER] = point.value;
	} else if (point.figure == USAGE_LOADERS) {
		curves->values[LINE_LOADERS] = point.value;
	} else if (point.figure == USAGE_SWAP_IN || point.figure == USAGE_SWAP_OUT) {
		set(&curves->values[LINE_SWAP], point.value, sum);
	}
	return 0;
}

/* A swap that nobody uses needs no curve. */
static bool is_drawn(const struct usage_curves *curves, size_t node, size_t line)
{
	const struct thin *thin = &curves->lines[node][line];

	return thin->count > 0 && (line != LINE_SWAP || thin_greatest(thin)->y > 0);
}

static void add_chart(struct usage_curves *curves, const char *id, size_t color, size_t first,
		      json_t *charts)
{
	AUTO(auto_free)
	char *title = curves->runs > 1 ? mem_format("%s, run %s", rows[first].title, id)
				       : mem_copy(rows[first].title);
	json_t *chart = curves_chart_new(title, rows[first].unit, "seconds since the first sample");
	size_t drawn = 0;

	for (size_t node = 0; node < NODES_DRAWN; node++)
		for (size_t i = first; i < LINES && rows[i].title == rows[first].title; i++)
			if (is_drawn(curves, node, i)) {
				curves_chart_line(chart, &curves->lines[node][i], curves->parts,
						  mem_format("node %zu, %s", node, rows[i].name),
						  color + node, i > first);
				drawn++;
			}
	json_object_set(chart, "marks", curves->marks);
	js_put(chart, "gaps", json_incref(curves->gaps));
	js_put_str(chart, "caption",
		   "Sampled by the agent while the command ran; the first four nodes are drawn. A "
		   "dashed vertical line: the command began again.");
	if (drawn > 0)
		json_array_append_new(charts, chart);
	else
		json_decref(chart);
}

static void add_charts(struct usage_curves *curves, const char *id, size_t color, json_t *charts)
{
	size_t lines = 0;

	for (size_t node = 0; node < NODES_DRAWN; node++)
		for (size_t i = 0; i < LINES; i++)
			lines += is_drawn(curves, node, i);
	if (lines > 0)
		curves->parts = POINTS_MAX / 2 / (curves->runs * lines);
	if (curves->parts > PARTS)
		curves->parts = PARTS;
	for (size_t i = 0; i < LINES; i++)
		if (i == 0 || rows[i].title != rows[i - 1].title)
			add_chart(curves, id, color, i, charts);
}

static bool has_steps(const json_t *plan)
{
	return order_progress_metric(json_object_get(plan, "metrics")) != SIZE_MAX;
}

static void put_findings(struct usage_curves *curves, json_t *run)
{
	double seconds;
	json_t *findings = usage_rules_findings(curves->rules, &seconds), *usage = json_object();

	js_put(usage, "seconds", json_real(seconds));
	if (findings)
		js_put(usage, "findings", findings);
	js_put(run, "usage", usage);
}

int node_usage_put(struct journal *journal, json_t *run, size_t runs, size_t color, json_t *charts,
		   struct err **err)
{
	AUTO(run_series_freep) struct run_series *series = NULL;
	struct usage_curves *curves;
	const char *id = js_str(run, "run");
	int result;

	if (run_series_open_any(journal, id, &series, err) < 0)
		return -1;
	curves = mem_zero(1, sizeof *curves);
	curves->runs = runs;
	curves->marks = json_array();
	curves->gaps = json_array();
	for (size_t i = 0; i < LINES; i++)
		curves->values[i] = NAN;
	curves->rules = usage_rules_new(has_steps(run_series_plan(series)));
	result = run_usage_each(series, on_figure, curves, err);
	end_moment(curves);
	if (result == 0 && curves->at_ms > 0) {
		add_charts(curves, id, color, charts);
		put_findings(curves, run);
	}
	for (size_t node = 0; node < NODES_DRAWN; node++)
		for (size_t i = 0; i < LINES; i++)
			thin_release(&curves->lines[node][i]);
	usage_rules_freep(&curves->rules);
	json_decref(curves->marks);
	json_decref(curves->gaps);
	free(curves);
	return result;
}

void node_usage_verdict(const json_t *run, json_t *verdict)
{
	const json_t *findings = js_path(json_object_get(run, "usage"), "findings"), *finding;
	size_t i;

	json_array_foreach (findings, i, finding)
		json_array_append_new(
			verdict, json_sprintf("Run %s, node %lld: %s: %s.", js_str(run, "run"),
					      (long long)js_int(finding, "node", 0),
					      js_str(finding, "rule"), js_str(finding, "figure")));
}
