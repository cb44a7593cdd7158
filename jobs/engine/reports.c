/* Combines the agents' reports in a workspace: see reports.h. */
#include "jobs/engine/reports.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/store/order.h"

int reports_get(struct workspace_cache *cache, const char *prefix, int node,
		struct node_report *ret, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/%s", prefix, node, REPORT_FILE);
	json_auto_t *json = NULL;
	int there = workspace_cache_json(cache, key, REPORT_MAX, "an agent's report", &json, err);

	if (there > 0 && message_decode(node_report_message, json, ret, err) < 0)
		return -1;
	return there;
}

int reports_beside(struct workspace_cache *cache, const char *prefix, int node, const char *file,
		   json_t **ret, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/%s", prefix, node, file);

	return workspace_cache_json(cache, key, REPORT_MAX, file, ret, err);
}

bool reports_failed(const struct node_report *report)
{
	return node_report_is_final(report) && report->exit != 0 &&
	       !node_report_was_drained(report);
}

bool reports_is_root(const struct node_report *report)
{
	return reports_failed(report) &&
	       (!report->stopped || node_report_was_stopped(report, STOPPED_LOG));
}

/* True if the command ended with 0 without having been told to stop. */
static bool is_done(const struct node_report *report)
{
	return node_report_is(report, REPORT_ENDED) && report->has_exit && report->exit == 0 &&
	       !report->stopped;
}

/* The weight of a node's end for the attempt's: smaller values come first. */
enum worth { WORTH_ROOT, WORTH_FAILED, WORTH_WELL, WORTH_NOTHING };

static enum worth worth_of(const struct node_report *report)
{
	if (reports_is_root(report))
		return WORTH_ROOT;
	if (reports_failed(report))
		return WORTH_FAILED;
	return node_report_is_final(report) ? WORTH_WELL : WORTH_NOTHING;
}

struct best {
	enum worth worth;
	int node;
	struct node_report report; /* owned */
};

static void best_release(struct best *best)
{
	node_report_release(&best->report);
}

/* Replaces the candidate and takes the report over. */
static void best_replace(struct best *best, enum worth worth, int node, struct node_report *report)
{
	node_report_release(&best->report);
	*best = (struct best){ worth, node, *report };
	*report = (struct node_report){ 0 };
}

/* Keeps the better candidate; of several that failed by themselves, the earliest. */
static void compare(struct best *best, int node, struct node_report *report)
{
	enum worth worth = worth_of(report);

	if (worth > best->worth || worth == WORTH_NOTHING)
		return;
	if (worth == best->worth && (worth != WORTH_ROOT || report->ended >= best->report.ended))
		return;
	best_replace(best, worth, node, report);
}

/* Returns the node that the agents agreed on as the first to fail; -1: none. */
static int first_to_fail(struct workspace_cache *cache, const char *prefix, int nodes)
{
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, FAILED_FILE);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *body = NULL;
	int64_t node;

	if (nodes < 2 || workspace_cache_json(cache, key, REPORT_MAX, "a note of a failure", &body,
					      &ignored) <= 0)
		return -1;
	node = js_int(body, "node", -1);
	return node >= 0 && node < nodes ? (int)node : -1;
}

/* True if the attempt's end is decided. "All ended well" needs a final report from every node. */
static bool decides(const struct best *best, const struct reports *reports, int nodes)
{
	return best->worth < WORTH_WELL || (best->worth == WORTH_WELL && reports->final == nodes);
}

static void set_end(struct reports *ret, const struct best *best)
{
	const char *message = best->report.error.message;

	ret->node = best->node;
	ret->exit = (int)best->report.exit;
	if (node_report_is(&best->report, REPORT_NOT_MINE))
		message = "another attempt holds the claim";
	snprintf(ret->reason, sizeof ret->reason, "%s", message ? message : "");
}

int reports_read(struct workspace_cache *cache, const char *prefix, int nodes, struct reports *ret,
		 struct err **err)
{
	AUTO(best_release) struct best best = { .worth = WORTH_NOTHING };
	int first;

	*ret = (struct reports){ .node = -1, .well = true };
	for (int node = 0; node < nodes; node++) {
		AUTO(node_report_release) struct node_report report = { 0 };
		int there = reports_get(cache, prefix, node, &report, err);

		if (there < 0)
			return -1;
		ret->there += there;
		ret->final += node_report_is_final(&report);
		ret->well &= is_done(&report) || (node > 0 && !node_report_is_final(&report));
		ret->running |= node_report_is(&report, REPORT_RUNNING);
		if (report.started > 0 &&
		    (ret->started.ms == 0 || report.started < ret->started.ms))
			ret->started.ms = report.started;
		compare(&best, node, &report);
	}
	/* Read only if it can decide: it may cost a request. */
	first = best.worth < WORTH_WELL ? first_to_fail(cache, prefix, nodes) : -1;
	if (first >= 0 && first != best.node) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (reports_get(cache, prefix, first, &report, err) < 0)
			return -1;
		if (reports_failed(&report))
			best_replace(&best, WORTH_ROOT, first, &report);
	}
	if (decides(&best, ret, nodes))
		set_end(ret, &best);
	return 0;
}
