/* Health check of the nodes, in plan, order and journal: see health.h. */
#include "jobs/run/attempt/health.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/run/plan/plan.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/store/order.h"

/* ---- the plan ------------------------------------------------------------------------- */

/* Value of health.device; "auto" is true on Neuron instances. */
static bool checks_devices(const struct spec *spec)
{
	const json_t *said = spec_get(spec, SPEC_HEALTH_DEVICE);

	if (json_is_boolean(said))
		return json_is_true(said);
	return js_is(spec_instance(spec), "accelerator", INSTANCE_NEURON);
}

json_t *health_plan(const struct spec *spec)
{
	bool device = checks_devices(spec);
	bool collectives = device || spec_is_set(spec, SPEC_HEALTH_COLLECTIVES);
	const char *launcher = spec_str(spec, SPEC_SAGEMAKER_LAUNCHER);
	json_t *health;

	/* The toolkit launcher runs no agent that could check. */
	if (launcher && strcmp(launcher, "toolkit") == 0)
		return NULL;
	if (!collectives)
		return NULL;
	health = json_object();
	js_put(health, "device", json_boolean(device));
	js_put(health, "ops", json_deep_copy(spec_get(spec, SPEC_HEALTH_COLLECTIVES_OPS)));
	js_put(health, "size", json_integer(spec_bytes(spec, SPEC_HEALTH_COLLECTIVES_SIZE)));
	js_put(health, "timeout_ms", json_integer(spec_ms(spec, SPEC_HEALTH_TIMEOUT)));
	return health;
}

/* With several nodes, the others come later, and then all are tested together. */
int64_t health_plan_ms(const json_t *plan)
{
	int64_t timeout = js_int(json_object_get(plan, "health"), "timeout_ms", 0);

	if (timeout <= 0 || js_int(plan, "nodes", 1) == 1)
		return timeout;
	return ORDER_CLAIM_WAIT_MS + 2 * timeout;
}

char *health_plan_words(const json_t *plan)
{
	const json_t *health = json_object_get(plan, "health"), *op;
	AUTO(auto_free) char *time = text_format_duration(js_int(health, "timeout_ms", 0));
	AUTO(auto_free) char *size = text_format_bytes((uint64_t)js_int(health, "size", 0));
	AUTO(sb_release) struct sb words = SB_INIT;
	size_t i;

	if (!health)
		return NULL;
	sb_adds(&words, "disk, memory, clock");
	if (js_bool(health, "device", false)) {
		const json_t *instance = json_object_get(plan, "instance");

		sb_adds(&words, ", devices");
		if (js_int(instance, "devices", 0) > 0)
			sb_addf(&words, " (%lld)", (long long)js_int(instance, "devices", 0));
		sb_adds(&words, ", error counters, a tensor operation on each core");
	}
	json_array_foreach (json_object_get(health, "ops"), i, op)
		sb_addf(&words, "%s%s", i ? ", " : "; ", json_string_value(op));
	if (i > 0)
		sb_addf(&words, " of %s on each node%s", size,
			js_int(plan, "nodes", 1) > 1 ? ", an all_reduce between them" : "");
	sb_addf(&words, "; within %s", time);
	return sb_take(&words);
}

/* ---- the order ------------------------------------------------------------------------- */

void health_order(json_t *order, const json_t *plan, enum phase phase)
{
	const json_t *health = json_object_get(plan, "health");
	const json_t *instance = json_object_get(plan, "instance");
	json_t *asked;

	if (!health)
		return;
	js_put_str(order, "instance", js_str(instance, "type"));
	if (js_int(instance, "devices", 0) > 0)
		js_put(order, "devices", json_integer(js_int(instance, "devices", 0)));
	asked = json_deep_copy(health);
	js_put(asked, "full", json_boolean(phase == PHASE_TRAIN));
	js_put(order, "health", asked);
}

/* ---- the journal ------------------------------------------------------------------------ */

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

/* Node 0 gathers the results. Before a precompile each node checks itself alone, and a healthy node
 * reports nothing. */
int health_record(struct attempt_watch *watch, struct err **err)
{
	struct driver *driver = watch->driver;
	const json_t *health;
	json_auto_t *report = NULL;
	AUTO(auto_free) char *words = NULL;
	const char *verdict;
	struct event ev;
	bool healthy;

	if (!json_object_get(driver->plan, "health") || driver->flow.checked ||
	    !driver->flow.claimed)
		return 0;
	if (attempt_end_report(watch, 0, &report, err) < 0)
		return -1;
	health = json_object_get(report, "health");
	verdict = js_str(health, "verdict");
	if (!verdict || !json_object_get(health, "nodes"))
		return 0;
	healthy = strcmp(verdict, "healthy") == 0;
	if (healthy)
		words = healthy_words(health);
	watch_event(watch, EV_HEALTH_CHECKED, &ev);
	EVENT_SET(&ev, phase, watch->phase);
	EVENT_SET(&ev, healthy, healthy);
	EVENT_SET_STR(&ev, reason, healthy ? words : js_str(health, "words"));
	EVENT_SET(&ev, health, (json_t *)health);
	EVENT_SET(&ev, since, js_int(health, "began", 0));
	EVENT_SET(&ev, finished, js_int(health, "ended", 0));
	return driver_record(driver, &ev, err);
}
