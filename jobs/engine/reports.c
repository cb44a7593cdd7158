/* Combines the agents' reports in a workspace: see reports.h. */
#include "jobs/engine/reports.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/store/order.h"

int reports_get(struct workspace_cache *far, const char *prefix, int node, json_t **ret,
		struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/%s", prefix, node, REPORT_FILE);

	return workspace_cache_json(far, key, REPORT_MAX, "an agent's report", ret, err);
}

int reports_beside(struct workspace_cache *far, const char *prefix, int node, const char *file,
		   json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/%s", prefix, node, file);

	return workspace_cache_json(far, key, REPORT_MAX, file, ret, err);
}

/* True if the node ended and failed. A command that ends while it is drained did as asked. */
static bool failed(const json_t *report)
{
	return order_report_is_final(report) && js_int(report, "exit", 0) != 0 &&
	       !order_report_was_drained(report);
}

/* True if the node failed by itself, and not because it was told to stop. */
static bool is_root(const json_t *report)
{
	const char *stopped = js_str(report, "stopped");

	return failed(report) && (!stopped || strcmp(stopped, STOPPED_LOG) == 0);
}

/* True if the command ended with 0 without having been told to stop. */
static bool is_done(const json_t *report)
{
	return js_is(report, "state", REPORT_ENDED) && js_int(report, "exit", -1) == 0 &&
	       !js_str(report, "stopped");
}

/* How much a node's end decides the attempt: smaller values come first. */
enum worth { WORTH_ROOT, WORTH_FAILED, WORTH_WELL, WORTH_NOTHING };

static enum worth worth_of(const json_t *report)
{
	if (is_root(report))
		return WORTH_ROOT;
	if (failed(report))
		return WORTH_FAILED;
	return order_report_is_final(report) ? WORTH_WELL : WORTH_NOTHING;
}

struct best {
	enum worth worth;
	int node;
	json_t *report; /* owned */
};

static void best_release(struct best *best)
{
	json_decref(best->report);
}

/* Keeps the better candidate; of several that failed by themselves, the earliest. */
static void compare(struct best *best, int node, json_t *report)
{
	enum worth worth = worth_of(report);

	if (worth > best->worth || worth == WORTH_NOTHING)
		return;
	if (worth == best->worth &&
	    (worth != WORTH_ROOT || js_int(report, "ended", 0) >= js_int(best->report, "ended", 0)))
		return;
	json_decref(best->report);
	*best = (struct best){ worth, node, json_incref(report) };
}

/* Returns the node that the agents agreed on as the first to fail; -1: none. */
static int first_to_fail(struct workspace_cache *far, const char *prefix, int nodes)
{
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, FAILED_FILE);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *body = NULL;
	int64_t node;

	if (nodes < 2 ||
	    workspace_cache_json(far, key, REPORT_MAX, "a note of a failure", &body, &ignored) <= 0)
		return -1;
	node = js_int(body, "node", -1);
	return node >= 0 && node < nodes ? (int)node : -1;
}

/* True if the attempt's end is decided. "All ended well" needs a final report from every node. */
static bool decides(const struct best *best, const struct reports *reports, int nodes)
{
	return best->worth < WORTH_WELL || (best->worth == WORTH_WELL && reports->final == nodes);
}

static void tell(struct reports *ret, const struct best *best)
{
	const char *message = js_str(json_object_get(best->report, "error"), "message");

	ret->node = best->node;
	ret->exit = (int)js_int(best->report, "exit", 0);
	if (js_is(best->report, "state", REPORT_NOT_MINE))
		message = "another attempt holds the claim";
	snprintf(ret->reason, sizeof ret->reason, "%s", message ? message : "");
}

int reports_look(struct workspace_cache *far, const char *prefix, int nodes, struct reports *ret,
		 struct err **err)
{
	AUTO(best_release) struct best best = { .worth = WORTH_NOTHING };
	int first;

	*ret = (struct reports){ .node = -1, .well = true };
	for (int node = 0; node < nodes; node++) {
		json_auto_t *report = NULL;
		int there = reports_get(far, prefix, node, &report, err);
		int64_t started = js_int(report, "started", 0);

		if (there < 0)
			return -1;
		ret->there += there;
		ret->final += order_report_is_final(report);
		ret->well &= is_done(report) || (node > 0 && !order_report_is_final(report));
		ret->running |= js_is(report, "state", REPORT_RUNNING);
		if (started > 0 && (ret->started.ms == 0 || started < ret->started.ms))
			ret->started.ms = started;
		compare(&best, node, report);
	}
	/* Read only if it can decide: it may cost a request. */
	first = best.worth < WORTH_WELL ? first_to_fail(far, prefix, nodes) : -1;
	if (first >= 0 && first != best.node) {
		json_auto_t *report = NULL;

		if (reports_get(far, prefix, first, &report, err) < 0)
			return -1;
		if (failed(report)) {
			json_decref(best.report);
			best = (struct best){ WORTH_ROOT, first, json_incref(report) };
		}
	}
	if (decides(&best, ret, nodes))
		tell(ret, &best);
	return 0;
}
