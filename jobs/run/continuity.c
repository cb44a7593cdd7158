/*
 * Did a resumed attempt go on from its checkpoint? The first step that its log
 * shows must lie after the checkpoint's and near it: a script that ignored the
 * checkpoint begins at its own first step and would overwrite what it should have
 * gone on from.
 */
#include "jobs/run/watch_inside.h"

/* Scripts report every so many steps: the first report may come that much later.
 * Whoever jumps further ahead has resumed from something else. */
#define NEAR_STEPS 1000

static const char *judge(int64_t resumed, int64_t first, enum continuity *ret)
{
	int64_t near = resumed > NEAR_STEPS ? resumed : NEAR_STEPS;

	*ret = CONTINUITY_FAILED;
	if (first < resumed)
		return "it began before the step of its checkpoint";
	if (first - resumed > near)
		return "it began far ahead of the step of its checkpoint";
	*ret = CONTINUITY_VERIFIED;
	return NULL;
}

int record_continuity(struct attempt_watch *watch, bool at_end, struct err **err)
{
	struct driver *driver = watch->driver;
	enum continuity continuity = CONTINUITY_UNVERIFIED;
	const char *reason = "the log shows no step";
	struct event ev;

	if (watch->phase != PHASE_TRAIN || driver->resume_step < 0 || driver->continuity_known ||
	    (watch->first_step < 0 && !at_end))
		return 0;
	watch_event(watch, EV_TRAIN_CONTINUITY, &ev);
	if (watch->first_step >= 0) {
		reason = judge(driver->resume_step, watch->first_step, &continuity);
		EVENT_SET(&ev, first_step, watch->first_step);
	}
	EVENT_SET(&ev, continuity, continuity);
	EVENT_SET(&ev, step, driver->resume_step);
	EVENT_SET_STR(&ev, reason, reason);
	return driver_record(driver, &ev, err);
}
