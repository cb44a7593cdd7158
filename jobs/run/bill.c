/* What machines cost, as far as the engine tells: see flow/ledger.h for what is made of it. */
#include "jobs/run/watch_inside.h"

void bill_claimed(const struct engine_status *status, struct event *ev)
{
	if (status->held.ms > 0)
		EVENT_SET(ev, held, status->held.ms);
}

void bill_ended(const struct driver *driver, const struct engine_status *status, struct event *ev)
{
	/* Of an attempt that held the claim it was told then. */
	if (!driver->flow.claimed)
		bill_claimed(status, ev);
	if (status->released.ms > 0)
		EVENT_SET(ev, released, status->released.ms);
	if (status->billable_ms > 0)
		EVENT_SET(ev, billable, status->billable_ms);
}

/* The attempt that ended last, if its machines may have been kept and nobody told so yet. */
static bool may_be_kept(const struct driver *driver)
{
	const struct ledger *ledger = &driver->flow.ledger;

	return driver->engine && driver->engine->ops->release && ledger->ended_attempt > 0 &&
	       !ledger->kept_told;
}

static char *ended_job(const struct driver *driver, char **ret_prefix)
{
	const struct ledger *ledger = &driver->flow.ledger;

	*ret_prefix = attempt_prefix(driver->run, ledger->ended_phase, ledger->ended_attempt);
	return mem_format("stk-%s-%s-%lld", driver->run, phase_names[ledger->ended_phase],
			  (long long)ledger->ended_attempt);
}

static int record_kept(struct driver *driver, double seconds, struct err **err)
{
	struct event ev = { .kind = EV_ATTEMPT_KEPT };

	if (seconds <= 0)
		return 0;
	EVENT_SET(&ev, phase, driver->flow.ledger.ended_phase);
	EVENT_SET(&ev, attempt, driver->flow.ledger.ended_attempt);
	EVENT_SET(&ev, seconds, seconds);
	return driver_record(driver, &ev, err);
}

int bill_kept(struct driver *driver, struct err **err)
{
	struct engine_status status = { .state = ENGINE_UNSEEN };
	AUTO(auto_free) char *prefix = NULL;
	AUTO(auto_free) char *job = NULL;

	if (!may_be_kept(driver))
		return 0;
	job = ended_job(driver, &prefix);
	if (driver->engine->ops->describe(driver->engine, job, prefix, &status, err) < 0)
		return -1;
	return record_kept(driver, (double)status.retained_ms / 1000, err);
}

int bill_release(struct driver *driver, struct err **err)
{
	AUTO(err_freep) struct err *refused = NULL;
	AUTO(auto_free) char *prefix = NULL;
	AUTO(auto_free) char *job = NULL;
	int64_t seconds = 0;
	int kept;

	if (!may_be_kept(driver))
		return 0;
	job = ended_job(driver, &prefix);
	kept = driver->engine->ops->release(driver->engine, job, prefix, &seconds, &refused);
	if (kept < 0 && refused->code == EXIT_UNREACHABLE) {
		*err = TAKE(refused);
		return -1;
	}
	/* Who may not give them back need not: the service does, once their time is over. */
	return kept > 0 ? record_kept(driver, (double)seconds, err) : 0;
}
