/* Cost of machines, as far as the engine reports it: flow/ledger.h says how it is used. */
#include "jobs/run/attempt/watch_internal.h"

#define RELEASE_MS 1000 /* pause between two looks for kept machines */

/* ---- machines that are kept from one attempt to the next ---- */

/* True if an attempt has ended and it is not yet recorded whether its machines were kept. */
static bool may_be_kept(const struct driver *driver)
{
	const struct ledger *ledger = &driver->flow.ledger;

	return driver->engine && driver->engine->ops->release && ledger->ended_attempt > 0 &&
	       !ledger->kept_reported;
}

static char *ended_job(const struct driver *driver, char **ret_prefix)
{
	const struct ledger *ledger = &driver->flow.ledger;

	*ret_prefix = order_attempt_prefix(driver->run, ledger->ended_phase, ledger->ended_attempt);
	return order_job_name(driver->run, ledger->ended_phase, ledger->ended_attempt);
}

static int record_kept(struct driver *driver, double seconds, const struct err *refused,
		       struct err **err)
{
	struct event ev = { .kind = EV_ATTEMPT_KEPT };

	if (seconds <= 0 && !refused)
		return 0;
	EVENT_SET(&ev, phase, driver->flow.ledger.ended_phase);
	EVENT_SET(&ev, attempt, driver->flow.ledger.ended_attempt);
	if (seconds > 0)
		EVENT_SET(&ev, seconds, seconds);
	if (refused) {
		EVENT_SET_STR(&ev, reason, refused->message);
		EVENT_SET_STR(&ev, hint, refused->hint);
	}
	return driver_record(driver, &ev, err);
}

/* Releases machines kept from the ended attempt. `next`: an attempt follows that may still take
 * them over. Returns 1 if the engine does not know yet what becomes of them: ask again in a
 * moment. */
static int release_kept(struct driver *driver, bool next, struct err **err)
{
	enum phase payer = driver->flow.ledger.ended_payer;
	AUTO(err_freep) struct err *refused = NULL;
	AUTO(auto_free) char *prefix = NULL;
	AUTO(auto_free) char *job = NULL;
	int64_t seconds = 0;
	int kept;

	if (!may_be_kept(driver))
		return 0;
	/* Phase 1 may be another stage's by now: that of the training has the training's engine. */
	if (payer == PHASE_PRECOMPILE)
		payer = PHASE_TRAIN;
	if (job_engine_enter(driver, payer, err) < 0)
		return -1;
	job = ended_job(driver, &prefix);
	kept = driver->engine->ops->release(driver->engine, job, prefix, &seconds, &refused);
	if (kept < 0 && refused->code == EXIT_BUSY)
		return 1;
	if (kept < 0 && refused->code == EXIT_UNREACHABLE) {
		*err = TAKE(refused);
		return -1;
	}
	/* Machines that the engine does not release are billed, unless the next attempt takes
	 * them. */
	if (kept < 0 && next)
		seconds = 0;
	return record_kept(driver, (double)seconds, refused, err);
}

/* Machines that the attempt has not taken over by now are kept for no other. */
static int bill_kept(struct driver *driver, struct err **err)
{
	return release_kept(driver, false, err) < 0 ? -1 : 0;
}

int attempt_cost_release(struct driver *driver, bool next, int64_t *ret_wait_ms, struct err **err)
{
	int kept = release_kept(driver, next, err);

	*ret_wait_ms = kept > 0 ? RELEASE_MS : 0;
	return kept < 0 ? -1 : 0;
}

/* ---- the machines of the attempt at hand ---- */

static void set_held(const struct engine_status *status, struct event *ev)
{
	if (status->held.ms > 0)
		EVENT_SET(ev, held, status->held.ms);
}

int attempt_cost_claimed(struct driver *driver, const struct engine_status *status,
			 struct event *ev, struct err **err)
{
	if (bill_kept(driver, err) < 0)
		return -1;
	set_held(status, ev);
	return 0;
}

/* If the attempt held the claim, kept machines and held time were recorded with the claim. */
int attempt_cost_at_end(struct attempt_watch *watch, const struct engine_status *status,
			struct err **err)
{
	bool is_recorded = watch->driver->flow.claimed || status->held.ms <= 0;

	return is_recorded ? 0 : bill_kept(watch->driver, err);
}

void attempt_cost_ended(const struct driver *driver, const struct engine_status *status,
			struct event *ev)
{
	if (!driver->flow.claimed)
		set_held(status, ev);
	if (status->released.ms > 0)
		EVENT_SET(ev, released, status->released.ms);
	if (status->billable_ms > 0)
		EVENT_SET(ev, billable, status->billable_ms);
}
