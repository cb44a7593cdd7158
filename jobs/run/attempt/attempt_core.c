/*
 * Of an attempt that is watched, what every file needs that records something of it: the event's
 * skeleton, and the agents' reports. Nothing here records or decides.
 */
#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

void attempt_event(const struct attempt_watch *watch, enum event_kind kind, struct event *ret)
{
	*ret = (struct event){ .kind = kind };
	if (event_rows[kind].allowed & UINT64_C(1) << EVF_phase)
		EVENT_SET(ret, phase, watch->phase);
	EVENT_SET(ret, attempt, watch->attempt);
}

int attempt_read_report(const struct driver *driver, const char *prefix, int node,
			struct node_report *ret, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/%s", prefix, node, REPORT_FILE);
	AUTO(sb_release) struct sb text = SB_INIT;
	int found = store_get(driver->workspace, key, REPORT_MAX, &text, NULL, err);

	if (found <= 0)
		return found;
	return node_report_parse(text.text, text.len, ret, err) < 0 ? -1 : 1;
}

int attempt_report(struct attempt_watch *watch, int node, struct node_report *ret, struct err **err)
{
	struct engine *engine = watch->driver->engine;

	if (watch->monitor)
		return toolkit_monitor_report(watch, node, ret, err);
	if (engine->ops->report)
		return engine->ops->report(engine, watch->job, watch->prefix, node, ret, err);
	return attempt_read_report(watch->driver, watch->prefix, node, ret, err);
}
