/* Worker processes of agents that stay dead: see watch_internal.h. */
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

static void keep_worker(struct attempt_watch *watch, int64_t node, const char *why,
			const char *hint)
{
	if (watch->worker || !why)
		return;
	watch->worker = json_object();
	js_put_str(watch->worker, "why", why);
	js_put_str(watch->worker, "hint", hint);
	watch->worker_node = node >= 0 && node < watch->nodes ? (int)node : 0;
}

/* A single object covers all nodes. */
static void search_drain(struct attempt_watch *watch)
{
	AUTO(auto_free) char *key = mem_format("%s" DRAIN_FILE, watch->prefix);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *drain = NULL;

	if (store_get(watch->driver->workspace, key, REPORT_MAX, &text, NULL, &ignored) > 0 &&
	    js_parse(text.text, text.len, key, &drain, &ignored) == 0)
		keep_worker(watch, js_int(drain, "node", 0),
			    js_str(json_object_get(drain, "worker"), "why"),
			    js_str(json_object_get(drain, "worker"), "hint"));
}

static void search_reports(struct attempt_watch *watch)
{
	for (int node = 0; node < watch->nodes && !watch->worker; node++) {
		AUTO(err_freep) struct err *ignored = NULL;
		AUTO(node_report_release) struct node_report report = { 0 };

		if (attempt_report(watch, node, &report, &ignored) > 0)
			keep_worker(watch, node, report.worker.why, report.worker.hint);
	}
}

static bool is_due(struct attempt_watch *watch)
{
	struct mono now = clock_mono_now();

	if (watch->workers_at.ms > 0 &&
	    now.ms - watch->workers_at.ms < checkpoints_interval_ms(watch->driver))
		return false;
	watch->workers_at = now;
	return true;
}

void workers_record(struct attempt_watch *watch, bool at_end)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct event ev;

	if (watch->monitor) /* no agents, no workers */
		return;
	if (!watch->worker && (at_end || is_due(watch)))
		search_drain(watch);
	if (!watch->worker && at_end)
		search_reports(watch);
	if (!watch->worker || watch->driver->facts.worker_recorded)
		return;
	attempt_event(watch, EV_WORKER_LOST, &ev);
	EVENT_SET(&ev, node, watch->worker_node);
	EVENT_SET_STR(&ev, reason, js_str(watch->worker, "why"));
	EVENT_SET_STR(&ev, hint, js_str(watch->worker, "hint"));
	(void)!driver_record(watch->driver, &ev, &ignored);
}
