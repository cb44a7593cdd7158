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
	struct output_scan *listens; /* a scan per node */
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
static int hear_with(struct toolkit_monitor *outside, const json_t *plan, bool ahead,
		     struct err **err)
{
	bool steps = ahead;

	for (int node = 0; node < outside->nodes; node++) {
		struct output_scan *listen = &outside->listens[node];

		if (output_scan_init(listen, json_object_get(plan, "metrics"),
				     js_str(json_object_get(plan, "compile"), "kind"), err) < 0)
			return -1;
		/* As in an agent: the output of a trial run counts as progress all along. */
		if (ahead)
			regex_freep(&listen->step);
		listen->stall = &outside->stall;
		steps |= listen->step != NULL;
	}
	outside->stall.reports_steps = steps;
	return 0;
}

int toolkit_monitor_new(struct attempt_watch *watch, struct toolkit_monitor **ret, struct err **err)
{
	const json_t *plan = watch->driver->plan, *stall = json_object_get(plan, "stall");
	AUTO(toolkit_monitor_freep) struct toolkit_monitor *outside = NULL;
	int64_t late = LATE_MS + (int64_t)watch->nodes * LATE_NODE_MS;

	*ret = NULL;
	if (toolkit_limits_has_agent(plan))
		return 0;
	outside = mem_zero(1, sizeof *outside);
	outside->nodes = watch->nodes;
	outside->listens = mem_zero((size_t)watch->nodes, sizeof *outside->listens);
	outside->key = mem_format("%s" STOPPED_FILE, watch->prefix);
	stall_init(&outside->stall, mode_of(stall), js_int(stall, "limit_ms", 0) + late, false,
		   clock_mono_now());
	if (hear_with(outside, plan, watch->phase == PHASE_PRECOMPILE, err) < 0)
		return -1;
	*ret = TAKE(outside);
	return 0;
}

void toolkit_monitor_freep(struct toolkit_monitor **outside)
{
	struct toolkit_monitor *o = *outside;

	if (!o)
		return;
	for (int node = 0; node < o->nodes; node++)
		output_scan_release(&o->listens[node]);
	free(o->listens);
	free(o->key);
	json_decref(o->ended);
	free(o);
	*outside = NULL;
}

void toolkit_monitor_hear(struct toolkit_monitor *outside, int node, const char *bytes, size_t len)
{
	if (outside && len > 0)
		output_scan_pass(&outside->listens[node], clock_mono_now(), bytes, len);
}

void toolkit_monitor_go_on(struct toolkit_monitor *outside, int64_t step)
{
	if (outside && step >= 0)
		stall_step(&outside->stall, clock_mono_now(), step);
}

void toolkit_monitor_caught_up(struct toolkit_monitor *outside)
{
	if (outside)
		stall_caught_up(&outside->stall, clock_mono_now());
}

/* ---- stopping it ---------------------------------------------------------------------- */

/* An earlier driver may have asked for the end. */
static int look_back(struct attempt_watch *watch, struct err **err)
{
	struct toolkit_monitor *outside = watch->outside;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(REPORT_MAX);
	int found;

	if (outside->checked)
		return 0;
	found = store_get(watch->driver->workspace, outside->key, REPORT_MAX, &text, NULL, err);
	if (found < 0 ||
	    (found > 0 && js_parse(text.text, text.len, STOPPED_FILE, &outside->ended, err) < 0))
		return -1;
	outside->checked = true;
	return 0;
}

/* Writes the reason for the stop; the stop itself follows. */
static int effect_end(struct attempt_watch *watch, const char *why,
		      const struct stall_silence *stall, struct err **err)
{
	struct toolkit_monitor *outside = watch->outside;
	int64_t now_ms = driver_now(watch->driver).ms;
	json_auto_t *ended =
		json_pack("{s:i, s:s, s:I}", "v", 1, "stopped", why, "at", (json_int_t)now_ms);
	AUTO(auto_free) char *text = NULL;

	if (stall) {
		json_t *said = json_object();

		js_put_str(said, "doing", stall_doing_names[stall->doing]);
		js_put(said, "silent_ms", json_integer(stall->silent_ms));
		js_put(said, "limit_ms", json_integer(stall->limit_ms));
		js_put(said, "since", json_integer(now_ms - stall->silent_ms));
		js_put(ended, "stall", said);
	}
	text = js_line(ended);
	if (store_put_if_absent(watch->driver->workspace, outside->key, text, strlen(text), err) <
	    0)
		return -1;
	outside->ended = TAKE(ended);
	return 0;
}

/* True if phase 1 has run longer than the plan allows. */
static bool is_late(const struct attempt_watch *watch, const struct engine_status *status)
{
	int64_t limit_ms = js_int(json_object_get(watch->driver->plan, "compile"), "timeout_ms", 0);

	return watch->phase == PHASE_PRECOMPILE && limit_ms > 0 && status->started.ms > 0 &&
	       driver_now(watch->driver).ms - status->started.ms > limit_ms;
}

int toolkit_monitor_judge(struct attempt_watch *watch, const struct engine_status *status,
			  struct err **err)
{
	struct driver *driver = watch->driver;
	struct toolkit_monitor *outside = watch->outside;
	struct stall_silence verdict;

	if (!outside)
		return 0;
	if (look_back(watch, err) < 0)
		return -1;
	/* Before there is a container nothing can be silent, nor is a log silent while part of it
	 * is unread. */
	if (status->state != ENGINE_RUNNING || !watch->caught_up || watch->behind_since.ms > 0) {
		outside->stall.last = outside->stall.checked = clock_mono_now();
	} else if (!outside->ended) {
		if (is_late(watch, status) && effect_end(watch, STOPPED_TIMEOUT, NULL, err) < 0)
			return -1;
		if (!outside->ended && stall_check(&outside->stall, clock_mono_now(), &verdict) &&
		    effect_end(watch, STOPPED_STALL, &verdict, err) < 0)
			return -1;
	}
	if (!outside->ended || status->state == ENGINE_ENDED)
		return 0;
	return driver->engine->ops->stop(driver->engine, watch->job, watch->prefix,
					 js_int(driver->plan, "grace_ms", 60000), err);
}

int toolkit_monitor_report(struct attempt_watch *watch, int node, struct node_report *ret,
			   struct err **err)
{
	struct engine *engine = watch->driver->engine;
	AUTO(node_report_release) struct node_report ended = { 0 };
	int found = engine->ops->report(engine, watch->job, watch->prefix, node, ret, err);

	if (found <= 0)
		return found;
	if (look_back(watch, err) < 0)
		return -1;
	if (!watch->outside->ended)
		return 1;
	if (message_decode(node_report_message, watch->outside->ended, &ended, err) < 0)
		return -1;
	MESSAGE_SET_TEXT(ret, stopped, ended.stopped);
	if (ended.has_stall) {
		MESSAGE_MARK(ret, stall);
		ret->stall = ended.stall;
		ended.stall = (struct node_report_stall){ 0 };
	}
	return 1;
}
