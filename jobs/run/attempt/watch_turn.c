/*
 * The watcher's turn: asks the engine, reads the logs, and has recorded what is news, by one file
 * for each kind of news. Stands above these files; none of them calls it.
 */
#include <string.h>

#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/attempt/toolkit_series.h"
#include "jobs/run/attempt/watch_internal.h"

static void on_wake(void *arg)
{
	struct attempt_watch *watch = arg;

	watch->wake = NULL; /* the loop has dropped it */
	watch->woken_at = clock_mono_now();
	driver_wake(watch->driver);
}

/* A single process is enough: the next tick asks for another. One that has ended, and of which that
 * cannot be told now (/proc), would wake the driver again at once. */
static void arm_wake(struct attempt_watch *watch)
{
	struct driver *driver = watch->driver;
	bool just_woken =
		watch->woken_at.ms > 0 && clock_mono_now().ms - watch->woken_at.ms < TICK_MS;
	pid_t pid;

	if (!watch->wake && !just_woken && driver->engine->ops->wake &&
	    driver->engine->ops->wake(driver->engine, watch->job, watch->prefix, &pid, 1) > 0)
		watch->wake = loop_on_exit(driver->loop, pid, on_wake, watch);
}

/* `status`: of a job that cannot be seen; NULL: it is seen again. */
static int record_seen(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err)
{
	struct event ev;

	attempt_event(watch, status ? EV_ATTEMPT_LOST : EV_ATTEMPT_FOUND, &ev);
	if (status && status->reason[0])
		EVENT_SET_STR(&ev, reason, status->reason);
	if (status && status->hint[0])
		EVENT_SET_STR(&ev, hint, status->hint);
	return driver_record(watch->driver, &ev, err);
}

/* Records why the engine does not run the attempt yet, whenever the reason changes. */
static int record_wait(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err)
{
	struct event ev;

	if (status->state != ENGINE_QUEUED || !status->reason[0] ||
	    strcmp(status->reason, watch->waits) == 0)
		return 0;
	memcpy(watch->waits, status->reason, sizeof watch->waits);
	attempt_event(watch, EV_ATTEMPT_WAITING, &ev);
	EVENT_SET_STR(&ev, reason, status->reason);
	return driver_record(watch->driver, &ev, err);
}

static int record_checkpoints(struct attempt_watch *watch, bool at_end, struct err **err)
{
	if (flow_phases[watch->phase].has_tasks)
		return at_end ? 0 : tasks_record(watch, false, err); /* tasks_at_end() */
	if (!flow_phases[watch->phase].resumes || watch->monitor ||  /* no agent marks any */
	    (!at_end && watch->marks_at.ms > 0 &&
	     clock_mono_now().ms - watch->marks_at.ms < checkpoints_interval_ms(watch->driver)))
		return 0;
	watch->marks_at = clock_mono_now();
	if (checkpoints_record_marks(watch->driver, watch->attempt, err) < 0)
		return -1;
	return agent_news_record(watch, at_end, err);
}

/* Steps of a job that ended unobserved are dated no later than its end. */
static int date_steps(struct attempt_watch *watch, struct utc last_seen, struct err **err)
{
	AUTO(node_report_release) struct node_report report = { 0 };
	int64_t ended;

	if (attempt_report(watch, 0, &report, err) < 0)
		return -1;
	ended = report.has_ended ? report.ended : last_seen.ms;
	if (ended > 0 && ended < watch->stepped_at.ms)
		watch->stepped_at.ms = ended;
	return 0;
}

/* The command ended well, and the run goes on with what it has made: then the verdict rests on what
 * that is. */
static bool is_success(const struct attempt_watch *watch, const struct engine_status *status)
{
	return status->exit_known && status->exit == 0 && !watch->driver->flow.stop_requested;
}

/* Only the log tells which graphs a successful phase 1 has made, and only the workspace which tasks
 * are done. Until that can be read there is no verdict. */
static int check_success(struct attempt_watch *watch, const struct engine_status *status,
			 struct err **err)
{
	if (!is_success(watch, status))
		return 0;
	if (flow_phases[watch->phase].is_trial && watch->driver->kind->caches && watch->unread) {
		*err = TAKE(watch->unread);
		return -1;
	}
	return tasks_record(watch, true, err);
}

static int claim_at_end(struct attempt_watch *watch, const struct engine_status *status,
			struct err **err)
{
	return watch->driver->flow.attempt_state == ATTEMPT_SUBMITTED
		       ? attempt_start_record_claim(watch, status, err)
		       : 0;
}

static int health_at_end(struct attempt_watch *watch, const struct engine_status *status,
			 struct err **err)
{
	return health_record(watch, err) < 0 ||
			       attempt_start_record(watch, status->started, err) < 0
		       ? -1
		       : 0;
}

static int steps_at_end(struct attempt_watch *watch, const struct engine_status *status,
			struct err **err)
{
	return date_steps(watch, status->last_seen, err);
}

static int checkpoints_at_end(struct attempt_watch *watch, const struct engine_status *status,
			      struct err **err)
{
	(void)status;
	return record_checkpoints(watch, true, err);
}

/* An attempt that failed has failed whatever else it has done: the next one finds that. But a task
 * whose result cannot be seen is not what failed. */
static int tasks_at_end(struct attempt_watch *watch, const struct engine_status *status,
			struct err **err)
{
	if (is_success(watch, status)) /* check_success() has done it */
		return 0;
	watch->tasks_unseen = tasks_record(watch, true, err) < 0;
	return watch->tasks_unseen ? -1 : 0;
}

static int numbers_at_end(struct attempt_watch *watch, const struct engine_status *status,
			  struct err **err)
{
	(void)status;
	return continuity_record(watch, true, err) < 0 || progress_record(watch, true, err) < 0 ? -1
												: 0;
}

static int series_at_end(struct attempt_watch *watch, const struct engine_status *status,
			 struct err **err)
{
	(void)status;
	return toolkit_series_end(watch, err);
}

/* Last looks at an attempt, recorded before its end. The end rests on none of them: each is tried,
 * and one that fails END_TRIES times, or for END_MS, is passed over. */
static const struct last_record {
	const char *what;
	int (*record)(struct attempt_watch *watch, const struct engine_status *status,
		      struct err **err);
} last_records[] = {
	{ "holder of the claim: not known", claim_at_end },
	{ "beginning of the training: not known", health_at_end },
	{ "time of the last step: not known", steps_at_end },
	{ "newest marked checkpoints: not journalled", checkpoints_at_end },
	{ "results of the last tasks: not journalled", tasks_at_end },
	{ "last metrics: not journalled", numbers_at_end },
	{ "last readings: not kept beside the log", series_at_end },
	{ "cost of the machines: not known", attempt_cost_at_end },
};

/* Returns -1 if the looks are to be tried again. `ret_passed` is the first that was passed over,
 * for the reason `ret_why`. */
static int record_last(struct attempt_watch *watch, const struct engine_status *status,
		       const char **ret_passed, struct err **ret_why, struct err **err)
{
	struct mono now = clock_mono_now();
	bool last;

	if (watch->end_tries++ == 0)
		watch->end_since = now;
	last = watch->end_tries >= END_TRIES || now.ms - watch->end_since.ms >= END_MS;
	for (size_t i = 0; i < STK_LENGTH(last_records); i++) {
		AUTO(err_freep) struct err *why = NULL;

		if (last_records[i].record(watch, status, &why) == 0)
			continue;
		/* Nothing can be passed over if nothing can be journalled. */
		if (!last || watch->driver->journal_fails || watch->driver->stood_down) {
			*err = TAKE(why);
			return -1;
		}
		if (*ret_why)
			continue;
		*ret_passed = last_records[i].what;
		*ret_why = TAKE(why);
	}
	return 0;
}

/* Only evidence is recorded before the end. Work that is left to do comes after it: see
 * chores.c. */
static int finish_attempt(struct attempt_watch *watch, const struct engine_status *status,
			  struct err **err)
{
	AUTO(err_freep) struct err *why = NULL;
	const char *passed = NULL;

	if (check_success(watch, status, err) < 0)
		return -1;
	reading_end(watch);
	if (record_last(watch, status, &passed, &why, err) < 0)
		return -1;
	if (why && !watch->passed_recorded &&
	    chores_fail(watch->driver, watch->phase, watch->attempt, passed, why, err) < 0)
		return -1;
	watch->passed_recorded = true;
	workers_record(watch, true);
	return attempt_end_record(watch, status, err);
}

static bool is_ending(const struct driver *driver, const struct engine_status *status)
{
	return status->state == ENGINE_ENDED || status->state == ENGINE_STOPPING ||
	       driver->flow.stop_requested;
}

/* Records what an attempt shows while it goes on. A look that fails keeps no other from being done;
 * -1 comes with the first error. */
static int record_running(struct attempt_watch *watch, const struct engine_status *status,
			  struct err **err)
{
	struct err *why[6] = { NULL };
	bool runs = status->state == ENGINE_STARTING || status->state == ENGINE_RUNNING;
	int failed = 0;

	if (runs && watch->driver->flow.attempt_state == ATTEMPT_SUBMITTED)
		failed |= attempt_start_record_claim(watch, status, &why[0]);
	failed |= record_wait(watch, status, &why[1]);
	failed |= attempt_start_record(watch, status->started, &why[2]);
	failed |= record_checkpoints(watch, false, &why[3]);
	failed |= continuity_record(watch, false, &why[4]);
	failed |= progress_record(watch, false, &why[5]);
	for (size_t i = 0; failed && i < STK_LENGTH(why); i++) {
		if (why[i] && !*err)
			*err = TAKE(why[i]);
		err_freep(&why[i]);
	}
	return failed ? -1 : 0;
}

bool watch_is_ending(const struct driver *driver)
{
	return driver->watch && (driver->watch->end_tries > 0 || driver->watch->log_tries > 0);
}

int watch_turn(struct driver *driver, struct err **err)
{
	struct attempt_watch *watch = driver->watch;
	struct engine_status status = { .state = ENGINE_UNKNOWN };
	AUTO(err_freep) struct err *unread = NULL;
	enum attempt_state known = driver->flow.attempt_state;
	bool more = false;

	/* The engine is asked before the log is read: then all that an ended job wrote is there. */
	if (driver->engine->ops->describe(driver->engine, watch->job, watch->prefix, &status, err) <
	    0)
		return -1;
	if (status.state != ENGINE_UNKNOWN)
		driver->job_seen_at = clock_mono_now();
	if (reading_turn(watch, is_ending(driver, &status), status.state == ENGINE_ENDED, &more,
			 &unread) == 0) {
		toolkit_series_write(watch, false);
		bookmark_put(watch, false);
	} else if (status.state == ENGINE_ENDED) {
		*err = TAKE(unread);
		return -1;
	}
	if (toolkit_monitor_check(watch, &status, err) < 0)
		return -1;
	if (more)
		driver_wake(driver);
	if (status.state == ENGINE_ENDED)
		return more ? progress_record(watch, false, err)
			    : finish_attempt(watch, &status, err);
	arm_wake(watch);
	if (status.state == ENGINE_UNKNOWN)
		return known == ATTEMPT_LOST ? 0 : record_seen(watch, &status, err);
	if (known == ATTEMPT_LOST && record_seen(watch, NULL, err) < 0)
		return -1;
	workers_record(watch, false);
	if (record_running(watch, &status, err) < 0)
		return -1;
	*err = TAKE(unread);
	return *err ? -1 : 0;
}
