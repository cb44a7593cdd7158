/* Watches an attempt without agents from outside: see toolkit_monitor.h. */
#include "jobs/run/attempt/toolkit_monitor.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/stall.h"
#include "jobs/base/text/regex.h"
#include "jobs/cache/kinds/output_scan.h"
#include "jobs/store/order.h"

/* Delay with which a line may come, for each look at all logs. */
#define LATE_MS      5000
#define LATE_NODE_MS 1000 /* plus, for each node, because its log is asked for by itself */
#define STOPPED_FILE "stopped.json"

struct toolkit_monitor {
	struct stall stall;
	struct output_scan *scans; /* a scan per node */
	int nodes;
	char *key;     /* key of stopped.json */
	bool checked;  /* stopped.json was looked for */
	json_t *ended; /* content of stopped.json; NULL: no end was asked for */
};

static enum stall_mode mode_of(const json_t *stall)
{
	if (js_is(stall, "mode", "fixed"))
		return STALL_FIXED;
	return js_is(stall, "mode", "auto") ? STALL_AUTO : STALL_OFF;
}

/* The plan's "compile" serves only to recognise the compiler's messages. */
static int init_scans(struct toolkit_monitor *monitor, const json_t *plan, bool ahead,
		      struct err **err)
{
	bool steps = ahead;

	for (int node = 0; node < monitor->nodes; node++) {
		struct output_scan *scan = &monitor->scans[node];

		if (output_scan_init(scan, json_object_get(plan, "metrics"),
				     js_str(json_object_get(plan, "compile"), "kind"), err) < 0)
			return -1;
		/* The output of a trial run counts as progress all along, as in an agent. */
		if (ahead)
			regex_freep(&scan->step);
		scan->stall = &monitor->stall;
		steps |= scan->step != NULL;
	}
	monitor->stall.reports_steps = steps;
	return 0;
}

int toolkit_monitor_new(struct attempt_watch *watch, struct toolkit_monitor **ret, struct err **err)
{
	const json_t *plan = watch->driver->plan, *stall = json_object_get(plan, "stall");
	AUTO(toolkit_monitor_freep) struct toolkit_monitor *monitor = NULL;
	int64_t late = LATE_MS + (int64_t)watch->nodes * LATE_NODE_MS;

	*ret = NULL;
	if (toolkit_limits_has_agent(plan))
		return 0;
	monitor = mem_zero(1, sizeof *monitor);
	monitor->nodes = watch->nodes;
	monitor->scans = mem_zero((size_t)watch->nodes, sizeof *monitor->scans);
	monitor->key = mem_format("%s" STOPPED_FILE, watch->prefix);
	stall_init(&monitor->stall, mode_of(stall), js_int(stall, "limit_ms", 0) + late, false,
		   clock_mono_now());
	if (init_scans(monitor, plan, flow_phases[watch->phase].is_trial, err) < 0)
		return -1;
	*ret = TAKE(monitor);
	return 0;
}

void toolkit_monitor_freep(struct toolkit_monitor **monitor)
{
	struct toolkit_monitor *o = *monitor;

	if (!o)
		return;
	for (int node = 0; node < o->nodes; node++)
		output_scan_release(&o->scans[node]);
	free(o->scans);
	free(o->key);
	json_decref(o->ended);
	free(o);
	*monitor = NULL;
}

void toolkit_monitor_scan(struct toolkit_monitor *monitor, int node, const char *bytes, size_t len)
{
	if (monitor && len > 0)
		output_scan_pass(&monitor->scans[node], clock_mono_now(), bytes, len);
}

void toolkit_monitor_go_on(struct toolkit_monitor *monitor, int64_t step)
{
	if (monitor && step >= 0)
		stall_step(&monitor->stall, clock_mono_now(), step);
}

void toolkit_monitor_caught_up(struct toolkit_monitor *monitor)
{
	if (monitor)
		stall_caught_up(&monitor->stall, clock_mono_now());
}

/* ---- stopping the job -------------------------------------------------------------- */

/* An earlier driver may have asked for the end. */
static int read_stopped(struct attempt_watch *watch, struct err **err)
{
	struct toolkit_monitor *monitor = watch->monitor;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	int found;

	if (monitor->checked)
		return 0;
	found = store_get(watch->driver->workspace, monitor->key, REPORT_MAX, &text, NULL, err);
	if (found < 0 ||
	    (found > 0 && js_parse(text.text, text.len, STOPPED_FILE, &monitor->ended, err) < 0))
		return -1;
	monitor->checked = true;
	return 0;
}

/* Writes the reason for the stop; the stop itself follows. */
static int write_stopped(struct attempt_watch *watch, const char *why,
			 const struct stall_silence *stall, struct err **err)
{
	struct toolkit_monitor *monitor = watch->monitor;
	int64_t now_ms = driver_now(watch->driver).ms;
	json_auto_t *ended =
		json_pack("{s:i, s:s, s:I}", "v", 1, "stopped", why, "at", (json_int_t)now_ms);
	AUTO(auto_free) char *text = NULL;

	if (stall) {
		json_t *detail = json_object();

		js_put_str(detail, "doing", stall_doing_names[stall->doing]);
		js_put(detail, "silent_ms", json_integer(stall->silent_ms));
		js_put(detail, "limit_ms", json_integer(stall->limit_ms));
		js_put(detail, "since", json_integer(now_ms - stall->silent_ms));
		js_put(ended, "stall", detail);
	}
	text = js_line(ended);
	if (store_put_if_absent(watch->driver->workspace, monitor->key, text, strlen(text), err) <
	    0)
		return -1;
	monitor->ended = TAKE(ended);
	return 0;
}

/* True if phase 1 has run longer than the plan allows. */
static bool is_late(const struct attempt_watch *watch, const struct engine_status *status)
{
	int64_t limit_ms = js_int(json_object_get(watch->driver->plan, "compile"), "timeout_ms", 0);

	return flow_phases[watch->phase].is_trial && limit_ms > 0 && status->started.ms > 0 &&
	       driver_now(watch->driver).ms - status->started.ms > limit_ms;
}

int toolkit_monitor_check(struct attempt_watch *watch, const struct engine_status *status,
			  struct err **err)
{
	struct toolkit_monitor *monitor = watch->monitor;
	struct stall_silence stalled;

	if (!monitor)
		return 0;
	if (read_stopped(watch, err) < 0)
		return -1;
	/* Before there is a container nothing can be silent, nor is a log silent while part of it
	 * is unread. */
	if (status->state != ENGINE_RUNNING || !watch->caught_up || watch->behind_since.ms > 0) {
		monitor->stall.last = monitor->stall.checked = clock_mono_now();
	} else if (!monitor->ended) {
		if (is_late(watch, status) && write_stopped(watch, STOPPED_TIMEOUT, NULL, err) < 0)
			return -1;
		if (!monitor->ended && stall_check(&monitor->stall, clock_mono_now(), &stalled) &&
		    write_stopped(watch, STOPPED_STALL, &stalled, err) < 0)
			return -1;
	}
	if (!monitor->ended || status->state == ENGINE_ENDED)
		return 0;
	return driver_stop_job(watch->driver, watch->phase, watch->attempt, watch->job, err);
}

int toolkit_monitor_report(struct attempt_watch *watch, int node, struct node_report *ret,
			   struct err **err)
{
	struct engine *engine = watch->driver->engine;
	AUTO(node_report_release) struct node_report ended = { 0 };
	int found = engine->ops->report(engine, watch->job, watch->prefix, node, ret, err);

	if (found <= 0)
		return found;
	if (read_stopped(watch, err) < 0)
		return -1;
	if (!watch->monitor->ended)
		return 1;
	if (message_decode(node_report_message, watch->monitor->ended, &ended, err) < 0)
		return -1;
	MESSAGE_SET_TEXT(ret, stopped, ended.stopped);
	if (ended.has_stall) {
		MESSAGE_MARK(ret, stall);
		ret->stall = ended.stall;
		ended.stall = (struct node_report_stall){ 0 };
	}
	return 1;
}
