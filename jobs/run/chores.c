/*
 * Chores after an attempt has ended: nothing that its end rests on, so its end is journalled first.
 * A chore that fails is retried a few times, then given up with an event of its own.
 *
 * The journal shows that chores are due (replay.c): a driver that takes the run over between the
 * end and the chores does them again. All of them may be done twice.
 */
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

#define TRIES    3
#define FIRST_MS 300 /* before the second try; then twice as long */

/* Clears locks of single graphs that the attempt held to its end. Each agent knows whether anything
 * of it still runs on its node; without their reports the engine must have seen that nothing
 * does. */
static int clear_locks(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err)
{
	int64_t began_ms = status->started.ms, ended_ms = 0;

	for (int node = 0; node < watch->nodes && !status->silent; node++) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (attempt_report(watch, node, &report, err) < 0)
			return -1;
		if (!node_report_is(&report, REPORT_ENDED))
			return 0;
		if (report.ended > ended_ms)
			ended_ms = report.ended;
	}
	/* The log of a killed attempt names each graph that it held, so it held them before its
	 * last sign of life; a newer lock may be another run's. */
	if (status->silent)
		ended_ms = status->last_seen.ms;
	return cache_gate_clear_own_locks(watch->driver, began_ms, ended_ms, err);
}

/* Reads the attempt's log and asks the engine how it ended, again if another driver saw the end.
 * Returns 1 if more of the log is left than a turn has room for. */
static int reread_attempt(struct driver *driver, struct engine_status *ret, struct err **err)
{
	const struct owed *owed = &driver->facts.owed;
	AUTO(auto_free) char *job = NULL;
	bool more;

	if (!watch_is(driver, owed->phase, owed->attempt)) {
		job = order_job_name(driver->run, owed->phase, owed->attempt);
		if (watch_open(driver, owed->phase, owed->attempt, job, err) < 0)
			return -1;
	}
	if (watch_read_log(driver, &more, err) < 0)
		return -1;
	if (more)
		return 1;
	return driver->engine->ops->describe(driver->engine, driver->watch->job,
					     driver->watch->prefix, ret, err);
}

/* Returns 1 if its log is still being read. */
static int do_all(struct driver *driver, struct err **err)
{
	const struct owed *owed = &driver->facts.owed;
	struct engine_status status = { .state = ENGINE_UNKNOWN };
	int seen;

	if (!driver->cache || !driver->kind->caches)
		return 0;
	seen = reread_attempt(driver, &status, err);
	if (seen != 0)
		return seen;
	if (status.state == ENGINE_ENDED && clear_locks(driver->watch, &status, err) < 0)
		return -1;
	return owed->went_well ? cache_gate_join_late(driver, owed->phase, owed->lock_key, err) : 0;
}

int chores_fail(struct driver *driver, enum phase phase, int64_t attempt, const char *what,
		const struct err *why, struct err **err)
{
	AUTO(auto_free) char *words = mem_format("%s: %s", what, why->message);
	struct event ev = { .kind = EV_CHORE_FAILED };

	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET_STR(&ev, reason, words);
	EVENT_SET_STR(&ev, hint, why->hint);
	return driver_record(driver, &ev, err);
}

int chores_do(struct driver *driver, int64_t *ret_wait_ms, struct err **err)
{
	struct owed *owed = &driver->facts.owed;
	AUTO(err_freep) struct err *why = NULL;
	int done;

	*ret_wait_ms = 0;
	if (!owed->due || driver->flow.state == FLOW_ENDED)
		return 0;
	done = do_all(driver, &why);
	if (done >= 0) {
		owed->due = done > 0;
		*ret_wait_ms = done;
		return 0;
	}
	/* The outcome of a chore must be journalled: a failure of that is not a chore's. */
	if (driver->journal_fails || driver->stood_down) {
		*err = TAKE(why);
		return -1;
	}
	if (++owed->tries < TRIES) {
		*ret_wait_ms = (int64_t)FIRST_MS << (owed->tries - 1);
		return 0;
	}
	return chores_fail(driver, owed->phase, owed->attempt,
			   owed->went_well ? "graphs that the job compiled late may be missing "
					     "in the compile manifest"
					   : "locks of the job in the compile cache may be left",
			   why, err);
}
