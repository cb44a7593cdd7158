/*
 * Checks whether a resumed attempt went on from its checkpoint. The first step in its log must lie
 * after the checkpoint's step and near it: a script that ignored the checkpoint begins at its own
 * first step and would overwrite the checkpoints that it should have gone on from.
 */
#include "jobs/run/attempt/watch_internal.h"

/* Scripts report every so many steps, so the first report may come that much later. A larger jump
 * means that the script resumed from something else. */
#define AHEAD_STEPS_MAX 1000

static const char *compare_steps(int64_t resumed, int64_t first, enum continuity *ret)
{
	int64_t tolerance = resumed > AHEAD_STEPS_MAX ? resumed : AHEAD_STEPS_MAX;

	*ret = CONTINUITY_FAILED;
	if (first < resumed)
		return "the training began before the step of its checkpoint";
	if (first - resumed > tolerance)
		return "the training began far ahead of the step of its checkpoint";
	*ret = CONTINUITY_VERIFIED;
	return NULL;
}

/* An attempt that the engine restarted may have gone on from a later checkpoint: its agent reports
 * which. */
static void compare_restart(struct attempt_watch *watch, int64_t *step, const char **reason,
			    enum continuity *ret)
{
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	enum continuity other;
	const char *why;

	if (attempt_report(watch, 0, &report, &ignored) <= 0)
		return;
	if (!report.has_resumed)
		return;
	why = compare_steps(report.resumed.step, watch->first_step, &other);
	if (other != CONTINUITY_VERIFIED)
		return;
	*step = report.resumed.step;
	*reason = why;
	*ret = other;
}

int continuity_record(struct attempt_watch *watch, bool at_end, struct err **err)
{
	struct driver *driver = watch->driver;
	enum continuity continuity = CONTINUITY_UNVERIFIED;
	const char *reason = "the log shows no step";
	int64_t step = driver->facts.resume_step;
	struct event ev;

	if (!flow_phases[watch->phase].resumes || driver->facts.resume_step < 0 ||
	    driver->facts.continuity_known || (watch->first_step < 0 && !at_end))
		return 0;
	attempt_event(watch, EV_TRAIN_CONTINUITY, &ev);
	/* Checkpoints are numbered by steps. */
	if (metrics_unit(watch->metrics))
		reason = "the log shows epochs, and no step";
	else if (watch->first_step >= 0) {
		reason = compare_steps(step, watch->first_step, &continuity);
		if (continuity == CONTINUITY_FAILED)
			compare_restart(watch, &step, &reason, &continuity);
		EVENT_SET(&ev, first_step, watch->first_step);
	}
	EVENT_SET(&ev, continuity, continuity);
	EVENT_SET(&ev, step, step);
	EVENT_SET_STR(&ev, reason, reason);
	return driver_record(driver, &ev, err);
}
