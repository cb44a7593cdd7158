/* Turns the agent's word on a silent command into events. */
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

int silence_record(struct attempt_watch *watch, struct err **err)
{
	struct driver *driver = watch->driver;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	const struct node_report_silence *silence = &report.silence;
	struct event ev;

	/* Nothing depends on it: a report that cannot be read now is read later. */
	if (attempt_report(watch, 0, &report, &ignored) <= 0)
		return 0;
	if (silence->until == driver->silent_until)
		return 0;
	attempt_event(watch, report.has_silence ? EV_ATTEMPT_STALLED : EV_ATTEMPT_WENT_ON, &ev);
	if (report.has_silence) {
		EVENT_SET(&ev, since, silence->since);
		EVENT_SET(&ev, until, silence->until);
		EVENT_SET_STR(&ev, reason, words_of(silence->doing));
	}
	return driver_record(driver, &ev, err);
}
