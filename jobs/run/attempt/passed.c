/* Turns the agent's list of passed-over checkpoints into events. */
#include "jobs/run/attempt/watch_internal.h"

int passed_record(struct attempt_watch *watch, struct err **err)
{
	struct driver *driver = watch->driver;
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *report = NULL;
	const json_t *one;
	size_t i;

	/* Nothing depends on it: a report that cannot be read now is read later. */
	if (attempt_report(watch, 0, &report, &ignored) <= 0)
		return 0;
	json_array_foreach (js_path(report, "checkpoint.passed"), i, one) {
		struct event ev;

		/* An agent that the engine restarted begins a new list. */
		if (js_int(one, "at", 0) <= driver->passed_at)
			continue;
		attempt_event(watch, EV_CHECKPOINT_REJECTED, &ev);
		EVENT_SET(&ev, since, js_int(one, "at", 0));
		EVENT_SET_STR(&ev, url, js_str(one, "path") ? js_str(one, "path") : "");
		EVENT_SET_STR(&ev, reason, js_str(one, "why") ? js_str(one, "why") : "");
		EVENT_SET_STR(&ev, hint, js_str(one, "hint"));
		if (js_int(one, "step", -1) >= 0)
			EVENT_SET(&ev, step, js_int(one, "step", -1));
		if (driver_record(driver, &ev, err) < 0)
			return -1;
	}
	return 0;
}
