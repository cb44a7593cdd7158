/* Compares the nodes' figures with each other and with those of earlier runs;
 * health.h has the rule. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/node/health/health_internal.h"

#define MEDIAN_LEAST 3 /* nodes: with fewer, one that differs cannot be told from the others */

json_t *health_sick_row(const json_t *nodes, int node, const char *words)
{
	const json_t *told = json_array_get(nodes, (size_t)node);
	json_t *row = json_object();

	js_put(row, "node", json_integer(node));
	js_put_str(row, "host", js_str(told, "host"));
	js_put_str(row, "words", words);
	return row;
}

bool health_is_sick(const json_t *sick, int node)
{
	const json_t *row;
	size_t i;

	json_array_foreach (sick, i, row)
		if (js_int(row, "node", -1) == node)
			return true;
	return false;
}

static void add_sick(json_t *sick, const json_t *nodes, int node, const char *words)
{
	if (!health_is_sick(sick, node))
		json_array_append_new(sick, health_sick_row(nodes, node, words));
}

/* Blames the node for the sick rows in its own report. */
static void add_sick_rows(json_t *sick, const json_t *nodes, int node)
{
	const json_t *told = json_array_get(nodes, (size_t)node);
	AUTO(auto_free) char *words = health_checkup_sick_words(json_object_get(told, "rows"));

	if (*words)
		add_sick(sick, nodes, node, words);
}

/* Returns the only check that found the node sick, if that is a check of what the image computes
 * with; else NULL. */
static const json_t *failed_program(const json_t *told)
{
	const json_t *row, *found = NULL;
	size_t i;

	json_array_foreach (json_object_get(told, "rows"), i, row) {
		if (!js_is(row, "verdict", ROW_SICK))
			continue;
		if (found ||
		    (!js_is(row, "check", "tensor") && !js_is(row, "check", "collectives")))
			return NULL;
		found = row;
	}
	return found;
}

char *health_common_failure(const json_t *nodes)
{
	const json_t *told, *first = json_array_get(nodes, 0), *row = failed_program(first);
	const char *words = js_str(row, "words");
	size_t i;

	json_array_foreach (nodes, i, told)
		if (!row ||
		    !json_equal(json_object_get(failed_program(told), "check"),
				json_object_get(row, "check")) ||
		    js_int(told, "devices", 0) != js_int(first, "devices", 0))
			return NULL;
	if (i < 2)
		return NULL;
	return mem_format("%s; the same on all %zu nodes, which have the image in common",
			  words ? words : "?", i);
}

/* Blames nodes that have fewer devices than others. */
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
		char *words = mem_format("%lld Neuron devices, other nodes have %lld",
					 (long long)devices, (long long)most);

		if (devices < most)
			add_sick(sick, nodes, (int)i, words);
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

/* Returns -1 if fewer than `least` nodes have a figure. */
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

/* Returns the name of a figure in a baseline; only figures of one name are compared. The
 * caller frees it. */
static char *figure_name(const struct checkup *c, const char *operation, const json_t *figure)
{
	return mem_format("%s of %lld bytes over %lld ranks", operation, (long long)c->order->size,
			  (long long)js_int(figure, "ranks", 0));
}

static char *node_figure_name(const struct checkup *c, const json_t *told, const char *operation)
{
	return figure_name(c, operation,
			   json_object_get(json_object_get(told, "figures"), operation));
}

static char *across_name(const struct checkup *c, const json_t *across)
{
	return mem_format("all_reduce by %s between %d nodes", js_str(across, "how"),
			  c->config->nodes);
}

static void add_slow(struct checkup *c, json_t *sick, const json_t *nodes, int node,
		     const char *operation, const char *against)
{
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)c->order->size);
	AUTO(auto_free)
	char *words = mem_format("%s of %s runs at %.1f GB/s; %s", operation, size,
				 busbw_of(json_array_get(nodes, (size_t)node), operation), against);

	add_sick(sick, nodes, node, words);
}

static void add_below_median(struct checkup *c, json_t *sick, const json_t *nodes,
			     const char *operation, double median)
{
	AUTO(auto_free)
	char *against = mem_format("the median of the nodes is %.1f GB/s", median);

	for (int i = 0; i < c->config->nodes; i++) {
		double found = busbw_of(json_array_get(nodes, (size_t)i), operation);

		if (found >= 0 && found < HEALTH_SLOW * median)
			add_slow(c, sick, nodes, i, operation, against);
	}
}

/* Tells in `ret_slow` which nodes are slower than the baseline. Returns true if all
 * with a figure are. */
static bool find_slow(struct checkup *c, const json_t *nodes, const struct baseline *baseline,
		      const char *operation, bool *ret_slow)
{
	const json_t *told;
	bool all = true;
	size_t i;

	json_array_foreach (nodes, i, told) {
		AUTO(auto_free) char *name = node_figure_name(c, told, operation);
		double found = busbw_of(told, operation);

		ret_slow[i] = health_baseline_is_slow(baseline, name, found);
		all &= ret_slow[i] || found < 0;
	}
	return all;
}

/* Judges too few nodes for a median: a node that is slow where others are not is sick; and so is a
 * node that is alone, until it was seen often enough. Returns true if all are slow. */
static bool add_below_baseline(struct checkup *c, json_t *sick, const json_t *nodes,
			       const struct baseline *baseline, const char *operation)
{
	AUTO(auto_free) bool *slow = mem_zero((size_t)c->config->nodes, sizeof *slow);
	bool all = find_slow(c, nodes, baseline, operation, slow);

	for (int i = 0; i < c->config->nodes; i++) {
		AUTO(auto_free)
		char *name = node_figure_name(c, json_array_get(nodes, (size_t)i), operation);
		bool alone = c->config->nodes == 1 &&
			     health_baseline_slower(baseline, name) < HEALTH_SLOW_RUNS;
		AUTO(auto_free) char *against = health_baseline_words(baseline, name, alone);

		if (slow[i] && (alone || !all))
			add_slow(c, sick, nodes, i, operation, against);
	}
	return all;
}

static void warn_if_slow(const struct baseline *baseline, const char *name, double busbw,
			 const char *what, json_t *warned)
{
	AUTO(auto_free) char *against = health_baseline_words(baseline, name, true);
	AUTO(auto_free) char *words = mem_format("%s runs at %.2f GB/s; %s", what, busbw, against);

	if (health_baseline_is_slow(baseline, name, busbw))
		json_array_append_new(warned, js_text(words, strlen(words)));
}

static void compare_speed(struct checkup *c, json_t *sick, const json_t *nodes,
			  const struct baseline *baseline, const char *operation, json_t *warned)
{
	double median = median_of(nodes, operation, MEDIAN_LEAST);
	AUTO(auto_free) char *name = node_figure_name(c, c->told, operation);
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)c->order->size);
	AUTO(auto_free) char *what = NULL;

	what = c->config->nodes == 1
		       ? mem_format("%s of %s", operation, size)
		       : mem_format("%s of %s on all %d nodes", operation, size, c->config->nodes);
	if (median >= 0)
		add_below_median(c, sick, nodes, operation, median);
	else if (!add_below_baseline(c, sick, nodes, baseline, operation))
		return;
	/* No single node is to blame: it may be the driver, or the compiler. */
	if (c->config->nodes > 1 || json_array_size(sick) == 0)
		warn_if_slow(baseline, name, median_of(nodes, operation, 1), what, warned);
}

void health_compare_across(struct checkup *c, const json_t *across, const struct baseline *baseline,
			   json_t *warned)
{
	const json_t *figure = js_path(across, "figures.all_reduce");

	if (figure) {
		AUTO(auto_free) char *what = across_name(c, across);
		AUTO(auto_free) char *name = figure_name(c, what, figure);

		warn_if_slow(baseline, name, js_real(figure, "busbw", -1), what, warned);
	}
}

json_t *health_compare_nodes(struct checkup *c, const json_t *nodes,
			     const struct baseline *baseline, json_t *warned)
{
	json_t *sick = json_array();
	const json_t *told, *operation;
	size_t i;

	json_array_foreach (nodes, i, told) {
		if (json_is_null(told))
			add_sick(sick, nodes, (int)i, "no report of the check-up");
		else
			add_sick_rows(sick, nodes, (int)i);
	}
	compare_devices(sick, nodes);
	json_array_foreach (c->order->ops, i, operation)
		compare_speed(c, sick, nodes, baseline, json_string_value(operation), warned);
	return sick;
}

void health_remember_figures(struct checkup *c, const json_t *nodes, const json_t *across)
{
	AUTO(health_baseline_release) struct baseline baseline = { 0 };
	const json_t *figure = js_path(across, "figures.all_reduce"), *operation;
	size_t i;

	/* Another run may have stored its own while ours tested the way between its nodes. */
	health_baseline_load(c, &baseline);
	json_array_foreach (c->order->ops, i, operation) {
		const char *text = json_string_value(operation);
		AUTO(auto_free) char *name = node_figure_name(c, c->told, text);

		if (busbw_of(c->told, text) >= 0)
			health_baseline_add(&baseline, name, median_of(nodes, text, 1));
	}
	if (figure) {
		AUTO(auto_free) char *what = across_name(c, across);
		AUTO(auto_free) char *name = figure_name(c, what, figure);

		health_baseline_add(&baseline, name, js_real(figure, "busbw", -1));
	}
	health_baseline_store(c, &baseline);
}
