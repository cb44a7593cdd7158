/* Turns the agent's list of passed-over checkpoints into events. */
#include "jobs/run/attempt/watch_internal.h"

int passed_record(struct attempt_watch *watch, struct err **err)
{
	struct driver *driver = watch->driver;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };

	/* Nothing depends on it: a report that cannot be read now is read later. */
	if (attempt_report(watch, 0, &report, &ignored) <= 0)
		return 0;
	for (size_t i = 0; i < report.checkpoint.passed.count; i++) {
		const struct node_report_passed *one = &report.checkpoint.passed.items[i];
		struct event ev;

		/* An agent that the engine restarted begins a new list. */
		if (one->at <= driver->passed_at)
			continue;
		attempt_event(watch, EV_CHECKPOINT_REJECTED, &ev);
		EVENT_SET(&ev, since, one->at);
		EVENT_SET_STR(&ev, url, one->path ? one->path : "");
		EVENT_SET_STR(&ev, reason, one->why ? one->why : "");
		EVENT_SET_STR(&ev, hint, one->hint);
		if (one->has_step && one->step >= 0)
			EVENT_SET(&ev, step, one->step);
		if (driver_record(driver, &ev, err) < 0)
			return -1;
	}
	return 0;
}
