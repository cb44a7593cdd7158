/* Turns what node 0's agent reports while its command runs into events: a silent command, and
 * checkpoints that are passed over. */
#include <string.h>

#include "jobs/base/stall.h"
#include "jobs/run/attempt/watch_internal.h"

/* Words for the missing output, by what the command was doing. */
static const char *words_of(const char *doing)
{
	static const char *const words[DOING_COUNT] = {
		[DOING_START] = "no output",
		[DOING_COMPILE] = "nothing from the compiler",
		[DOING_FIRST_STEP] = "no first step",
		[DOING_STEP] = "no step",
		[DOING_SAVE] = "no step after a save began",
	};

	for (int i = 0; doing && i < DOING_COUNT; i++)
		if (strcmp(stall_doing_names[i], doing) == 0)
			return words[i];
	return "no progress";
}

static int record_silence(struct attempt_watch *watch, const struct node_report *report,
			  struct err **err)
{
	const struct node_report_silence *silence = &report->silence;
	struct event ev;

	if (silence->until == watch->driver->facts.silent_until)
		return 0;
	attempt_event(watch, report->has_silence ? EV_ATTEMPT_STALLED : EV_ATTEMPT_WENT_ON, &ev);
	if (report->has_silence) {
		EVENT_SET(&ev, since, silence->since);
		EVENT_SET(&ev, until, silence->until);
		EVENT_SET_STR(&ev, reason, words_of(silence->doing));
	}
	return driver_record(watch->driver, &ev, err);
}

static int record_passed(struct attempt_watch *watch, const struct node_report *report,
			 struct err **err)
{
	struct driver *driver = watch->driver;

	for (size_t i = 0; i < report->checkpoint.passed.count; i++) {
		const struct node_report_passed *one = &report->checkpoint.passed.items[i];
		struct event ev;

		/* An agent that the engine restarted begins a new list. */
		if (one->at <= driver->facts.passed_at)
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

int agent_news_record(struct attempt_watch *watch, bool at_end, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };

	/* Nothing depends on it: a report that cannot be read now is read later. */
	if (attempt_report(watch, 0, &report, &ignored) <= 0)
		return 0;
	if (!at_end && record_silence(watch, &report, err) < 0)
		return -1;
	return record_passed(watch, &report, err);
}
