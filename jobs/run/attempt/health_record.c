/* Records the result of the nodes' health check, as the agents report it: see plan/health.h. */
#include <string.h>

#include "jobs/run/attempt/watch_internal.h"

static void add_unchecked(struct sb *words, const json_t *node)
{
	const json_t *row;
	size_t i, count = 0;

	json_array_foreach (json_object_get(node, "checks"), i, row) {
		const char *check = js_str(row, "check");

		if (check && js_is(row, "verdict", "unchecked"))
			sb_addf(words, "%s%s", count++ ? ", " : "; not checked: ", check);
	}
}

static void add_warnings(struct sb *words, const json_t *report, const json_t *nodes)
{
	const json_t *node, *row;
	size_t i, n;

	json_array_foreach (json_object_get(report, "warned"), i, row)
		if (json_string_value(row))
			sb_addf(words, "; warning: %s", json_string_value(row));

	json_array_foreach (nodes, i, node)
		json_array_foreach (json_object_get(node, "checks"), n, row) {
			const char *text = js_str(row, "words");

			if (text && js_is(row, "verdict", "warned"))
				sb_addf(words, "; node %zu: %s", i, text);
		}
}

/* "all_reduce 39.8 to 40.1 GB/s" */
static void add_figures(struct sb *words, const json_t *nodes)
{
	json_t *first = json_object_get(json_array_get(nodes, 0), "figures"), *ignored;
	const char *name;

	json_object_foreach (first, name, ignored) {
		double low = -1, high = -1;
		const json_t *node;
		size_t i;

		if (strcmp(name, "across") == 0)
			continue;
		json_array_foreach (nodes, i, node) {
			double value =
				js_real(json_object_get(json_object_get(node, "figures"), name),
					"busbw", -1);

			if (value >= 0 && (low < 0 || value < low))
				low = value;
			if (value > high)
				high = value;
		}
		/* A smaller difference is shown as one figure. */
		if (low >= 0 && high - low >= 0.05)
			sb_addf(words, "; %s %.1f to %.1f GB/s", name, low, high);
		else if (low >= 0)
			sb_addf(words, "; %s %.1f GB/s", name, low);
	}
}

static char *healthy_words(const json_t *report)
{
	const json_t *nodes = json_object_get(report, "nodes");
	const json_t *across = json_object_get(report, "across");
	const json_t *figure = json_object_get(json_object_get(across, "figures"), "all_reduce");
	AUTO(sb_release) struct sb words = SB_INIT_MAX(4000);
	size_t count = json_array_size(nodes);

	if (count == 1)
		sb_adds(&words, "the node is fit");
	else
		sb_addf(&words, "all %zu nodes are fit", count);
	add_figures(&words, nodes);
	if (figure)
		sb_addf(&words, "; all_reduce between them %.2f GB/s (%s)",
			js_real(figure, "busbw", 0), js_str(across, "how"));
	add_warnings(&words, report, nodes);
	add_unchecked(&words, json_array_get(nodes, 0));
	if (js_str(across, "unchecked"))
		sb_addf(&words, "; not checked: %s", js_str(across, "unchecked"));
	return sb_take(&words);
}

/* The report as events have it: times are in fields of their own, and a duration is seconds. */
static json_t *health_told(const json_t *report)
{
	json_t *told = json_deep_copy(report), *round;
	size_t i;

	json_object_del(told, "began");
	json_object_del(told, "ended");
	json_array_foreach (js_path(told, "across.rounds"), i, round) {
		js_put(round, "limit", json_real((double)js_int(round, "limit_ms", 0) / 1000));
		json_object_del(round, "limit_ms");
	}
	return told;
}

/* Node 0 gathers the results. Before a precompile each node checks itself alone, and a healthy node
 * reports nothing. */
int health_record(struct attempt_watch *watch, struct err **err)
{
	struct driver *driver = watch->driver;
	AUTO(node_report_release) struct node_report report = { 0 };
	AUTO(auto_free) char *words = NULL;
	json_auto_t *told = NULL;
	const char *verdict;
	struct event ev;
	bool healthy;

	if (!json_object_get(driver->plan, "health") || driver->flow.checked ||
	    !driver->flow.claimed)
		return 0;
	if (attempt_report(watch, 0, &report, err) < 0)
		return -1;
	verdict = js_str(report.health, "verdict");
	if (!verdict || !json_object_get(report.health, "nodes"))
		return 0;
	healthy = strcmp(verdict, "healthy") == 0;
	if (healthy)
		words = healthy_words(report.health);
	attempt_event(watch, EV_HEALTH_CHECKED, &ev);
	EVENT_SET(&ev, phase, watch->phase);
	EVENT_SET(&ev, healthy, healthy);
	EVENT_SET_STR(&ev, reason, healthy ? words : js_str(report.health, "words"));
	told = health_told(report.health);
	EVENT_SET(&ev, health, told);
	EVENT_SET(&ev, since, js_int(report.health, "began", 0));
	EVENT_SET(&ev, finished, js_int(report.health, "ended", 0));
	return driver_record(driver, &ev, err);
}
