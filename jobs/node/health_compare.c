/* Holds the nodes' figures against each other and against those of former runs: see
 * health.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/node/health_inside.h"
#include "jobs/store/store.h"

#define BASELINE_MAX  ((size_t)1 << 20)
#define MEDIAN_LEAST  3   /* nodes, of which one that differs can be told from the others */
#define BASELINE_KEPT 0.8 /* of the old figure, with each new one */

json_t *sick_row(const json_t *nodes, int node, const char *words)
{
	const json_t *told = json_array_get(nodes, (size_t)node);
	json_t *row = json_object();

	js_put(row, "node", json_integer(node));
	js_put_str(row, "host", js_str(told, "host"));
	js_put_str(row, "words", words);
	return row;
}

static bool is_listed(const json_t *sick, int node)
{
	const json_t *row;
	size_t i;

	json_array_foreach (sick, i, row)
		if (js_int(row, "node", -1) == node)
			return true;
	return false;
}

static void blame(json_t *sick, const json_t *nodes, int node, const char *words)
{
	if (!is_listed(sick, node))
		json_array_append_new(sick, sick_row(nodes, node, words));
}

/* What it says of itself. */
static void blame_rows(json_t *sick, const json_t *nodes, int node)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(2000);
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(json_array_get(nodes, (size_t)node), "rows"), i, row) {
		const char *verdict = js_str(row, "verdict"), *text = js_str(row, "words");

		if (verdict && strcmp(verdict, ROW_SICK) == 0)
			sb_addf(&words, "%s%s", words.len ? "; " : "", text ? text : "?");
	}
	if (words.len > 0)
		blame(sick, nodes, node, words.text);
}

/* Fewer devices than its neighbours have. */
static void compare_devices(json_t *sick, const json_t *nodes)
{
	const json_t *told;
	int64_t most = 0;
	size_t i;

	json_array_foreach (nodes, i, told)
		if (js_int(told, "devices", 0) > most)
			most = js_int(told, "devices", 0);
	json_array_foreach (nodes, i, told) {
		int64_t devices = js_int(told, "devices", most);
		AUTO(auto_free)
		char *words = mem_format("it has %lld Neuron devices, other nodes have %lld",
					 (long long)devices, (long long)most);

		if (devices < most)
			blame(sick, nodes, (int)i, words);
	}
}

/* ---- bandwidths ------------------------------------------------------------------- */

static double busbw_of(const json_t *told, const char *operation)
{
	return js_real(json_object_get(json_object_get(told, "figures"), operation), "busbw", -1);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* -1: too few have one. */
static double median_of(const json_t *nodes, const char *operation, size_t least)
{
	size_t count = 0, i;
	AUTO(auto_free) double *values = mem_zero(json_array_size(nodes) + 1, sizeof *values);
	const json_t *told;

	json_array_foreach (nodes, i, told)
		if (busbw_of(told, operation) >= 0)
			values[count++] = busbw_of(told, operation);
	if (count < least)
		return -1;
	qsort(values, count, sizeof *values, by_size);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static char *baseline_key(const struct checkup *c)
{
	const char *instance = js_str(c->task->order, "instance");
	char *key = mem_format("health/%s.json", instance && *instance ? instance : "other");

	for (char *at = key + strlen("health/"); *at; at++)
		if (*at == '/')
			*at = '_';
	return key;
}

/* By what a figure of a baseline is known: others do not compare with it. */
static char *figure_name(const struct checkup *c, const char *operation, int64_t ranks)
{
	return mem_format("%s of %lld bytes over %lld ranks", operation,
			  (long long)js_int(c->order, "size", 0), (long long)ranks);
}

static json_t *load_baseline(struct checkup *c, char tag[STORE_TAG], bool *ret_there)
{
	AUTO(auto_free) char *key = baseline_key(c);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(BASELINE_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	json_t *baseline = NULL;
	int there = store_get(c->store, key, BASELINE_MAX, &text, tag, &ignored);

	*ret_there = there > 0;
	if (there <= 0 || js_parse(text.text, text.len, key, &baseline, &ignored) < 0 ||
	    !json_is_object(baseline)) {
		json_decref(baseline);
		return json_object();
	}
	return baseline;
}

static double baseline_of(const struct checkup *c, const json_t *baseline, const json_t *told,
			  const char *operation)
{
	const json_t *figure = json_object_get(json_object_get(told, "figures"), operation);
	AUTO(auto_free) char *name = figure_name(c, operation, js_int(figure, "ranks", 0));

	return js_real(json_object_get(json_object_get(baseline, "figures"), name), "busbw", -1);
}

/* Against the median where that tells, else against the baseline: if all of them are slower
 * than that, it is no single node. */
static void compare_speed(struct checkup *c, json_t *sick, const json_t *nodes,
			  const json_t *baseline, const char *operation)
{
	double median = median_of(nodes, operation, MEDIAN_LEAST);
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)js_int(c->order, "size", 0));
	const json_t *told;
	size_t i;

	json_array_foreach (nodes, i, told) {
		double found = busbw_of(told, operation), before;
		AUTO(auto_free) char *words = NULL;

		before = median >= 0 ? median : baseline_of(c, baseline, told, operation);
		if (found < 0 || before <= 0 || found >= HEALTH_SLOW * before)
			continue;
		words = mem_format(
			"%s of %s runs at %.1f GB/s; %s is %.1f GB/s", operation, size, found,
			median >= 0 ? "the median of the nodes" : "the baseline of healthy runs",
			before);
		blame(sick, nodes, (int)i, words);
	}
}

json_t *compare_nodes(struct checkup *c, const json_t *nodes)
{
	json_t *sick = json_array();
	char tag[STORE_TAG];
	bool there;
	json_auto_t *baseline = load_baseline(c, tag, &there);
	const json_t *told, *operation;
	size_t i;

	json_array_foreach (nodes, i, told) {
		if (json_is_null(told))
			blame(sick, nodes, (int)i, "it has not told how it is");
		else
			blame_rows(sick, nodes, (int)i);
	}
	compare_devices(sick, nodes);
	json_array_foreach (json_object_get(c->order, "ops"), i, operation)
		compare_speed(c, sick, nodes, baseline, json_string_value(operation));
	return sick;
}

/* ---- the baseline ------------------------------------------------------------------- */

static void add_figure(const struct checkup *c, json_t *figures, const char *operation,
		       double busbw, int64_t ranks)
{
	AUTO(auto_free) char *name = figure_name(c, operation, ranks);
	const json_t *old = json_object_get(figures, name);
	double before = js_real(old, "busbw", -1);
	json_t *figure = json_object();

	if (before > 0)
		busbw = BASELINE_KEPT * before + (1 - BASELINE_KEPT) * busbw;
	js_put(figure, "busbw", json_real(busbw));
	js_put(figure, "runs", json_integer(js_int(old, "runs", 0) + 1));
	js_put(figures, name, figure);
}

static bool add_figures(const struct checkup *c, json_t *figures, const json_t *nodes,
			const json_t *across)
{
	const json_t *figure, *operation;
	bool any = false;
	size_t i;

	json_array_foreach (json_object_get(c->order, "ops"), i, operation) {
		const char *name = json_string_value(operation);
		double median = median_of(nodes, name, 1);
		const json_t *first = json_object_get(json_object_get(c->told, "figures"), name);

		if (median <= 0 || !first)
			continue;
		any = true;
		add_figure(c, figures, name, median, js_int(first, "ranks", 0));
	}
	figure = json_object_get(json_object_get(across, "figures"), "all_reduce");
	if (figure) {
		AUTO(auto_free)
		char *name = mem_format("all_reduce by %s between %d nodes", js_str(across, "how"),
					c->task->nodes);

		any = true;
		add_figure(c, figures, name, js_real(figure, "busbw", 0),
			   js_int(figure, "ranks", 0));
	}
	return any;
}

/* Whoever comes between has a newer one: ours is not missed. */
void update_baseline(struct checkup *c, const json_t *nodes, const json_t *across)
{
	AUTO(auto_free) char *key = baseline_key(c);
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *text = NULL;
	char tag[STORE_TAG];
	bool there;
	json_auto_t *baseline = load_baseline(c, tag, &there);
	json_t *figures = json_object_get(baseline, "figures");

	if (!json_is_object(figures)) {
		figures = json_object();
		js_put(baseline, "figures", figures);
	}
	js_put(baseline, "v", json_integer(1));
	if (!add_figures(c, figures, nodes, across))
		return;
	text = js_line(baseline);
	if (there)
		(void)!store_replace_if_same(c->store, key, tag, text, strlen(text), &ignored);
	else
		(void)!store_put_if_absent(c->store, key, text, strlen(text), &ignored);
}
