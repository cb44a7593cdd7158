/*
 * Decides whether a look or an effect that failed is retried, or this driver ends. Nothing else
 * decides that.
 *
 * While a job may be under way, only a lost lease, a request or limits.unreachable ends its driver,
 * whatever failed and wherever. Without a job, a service that does not answer is waited for as
 * long; a transient local failure gets a few more tries, and a permanent refusal ends the driver at
 * once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/process/cancel.h"
#include "jobs/run/driver_internal.h"

#define BRIEF_MS    300 /* before the second try without a job under way; then twice as long */
#define BRIEF_TRIES 4
#define FIRST_MS    1000 /* the same with a job, up to AWAY_MS */
#define SERVICE_MS  2500 /* after a service's first silence; then AWAY_MS */
/* While a limit is due, a job is to end, or an attempt's end is not journalled yet. */
#define URGENT_MS 2500
#define TOLD_FROM 2 /* failures in a row before it is journalled */

/* True if a job may be under way, including a job that was submitted and is not recorded as such
 * yet. */
static bool has_job(const struct driver *driver)
{
	return flow_may_have_job(&driver->flow) ||
	       (driver->submitted && driver->flow.attempt_state == ATTEMPT_INTENDED);
}

static bool is_waited_for(const struct driver *driver)
{
	const struct err *why = driver->failure;

	if (has_job(driver) || (driver->reaches_out && why->code == EXIT_UNREACHABLE))
		return true;
	return err_passes(why) && driver->away_times < BRIEF_TRIES;
}

static bool is_urgent(const struct driver *driver)
{
	return limit_reached(&driver->flow, driver_now(driver)) != LIMIT_NONE ||
	       driver->flow.stop_requested || driver->flow.recompile || watch_is_ending(driver);
}

static int64_t pause_ms(const struct driver *driver)
{
	int64_t times = driver->away_times - 1, first = has_job(driver) ? FIRST_MS : BRIEF_MS;
	int64_t longest = is_urgent(driver) ? URGENT_MS : AWAY_MS;

	/* The client of a service has already retried for a while. */
	if (driver->reaches_out && driver->failure->code == EXIT_UNREACHABLE)
		return times == 0 ? SERVICE_MS : longest;
	return times < 5 && first << times < longest ? first << times : longest;
}

/* Finds what was told of the failure in this wait: of a missing right, by its cure, since several
 * may be missing by turns; of others, the first. NULL: nothing was told. */
static struct away_told *find_told(struct driver *driver)
{
	const struct err *why = driver->failure;

	if (why->code != EXIT_REFUSED || !why->hint)
		return driver->away_told_count ? &driver->away_told[0] : NULL;
	for (size_t i = 0; i < driver->away_told_count; i++) {
		struct away_told *told = &driver->away_told[i];

		if (told->hint && strcmp(told->hint, why->hint) == 0)
			return told;
	}
	return NULL;
}

/* Journals what the wait is for, once, and not after the first failure: a retry that works at once
 * is no news. */
static void record_wait(struct driver *driver)
{
	struct event ev = { .kind = EV_DRIVER_WAITING };
	struct away_told *told = find_told(driver);
	AUTO(err_freep) struct err *unrecorded = NULL;

	if (!told || told->recorded || driver->away_times < TOLD_FROM || driver->journal_fails ||
	    !lease_is_mine(driver->lease) || driver->flow.state == FLOW_ENDED)
		return;
	EVENT_SET_STR(&ev, reason, driver->failure->message);
	EVENT_SET_STR(&ev, hint, driver->failure->hint);
	told->recorded = driver_record(driver, &ev, &unrecorded) == 0;
}

static void begin_wait(struct driver *driver)
{
	const struct driver_options *options = driver->options;
	const char *hint = driver->failure->hint;

	if (driver->away_since.ms == 0) {
		again_forget(driver);
		driver->away_since = clock_mono_now();
		snprintf(driver->away_nonce, sizeof driver->away_nonce, "%s", driver->flow.nonce);
	} else if (find_told(driver) || driver->away_told_count == AWAY_TOLD_MAX) {
		return;
	}
	driver->away_told[driver->away_told_count++] =
		(struct away_told){ .hint = hint ? mem_copy(hint) : NULL };
	free(driver->away_why);
	driver->away_why = mem_copy(driver->failure->message);
	if (options->on_away)
		options->on_away(options->arg, driver->failure);
}

/* Since when the engine or the journal has been silent, while something fails: a job that is seen,
 * and can be journalled, is not left because something else fails. */
static struct mono silent_since(const struct driver *driver)
{
	struct mono spoke_at = driver->job_seen_at;

	if (driver->journal_spoke_at.ms < spoke_at.ms)
		spoke_at = driver->journal_spoke_at;
	return has_job(driver) && spoke_at.ms > driver->away_since.ms ? spoke_at
								      : driver->away_since;
}

void again_forget(struct driver *driver)
{
	while (driver->away_told_count)
		free(driver->away_told[--driver->away_told_count].hint);
	free(driver->away_why);
	driver->away_why = NULL;
}

bool again_try(struct driver *driver)
{
	int64_t limit_ms = driver->flow.policy.unreachable_ms;

	if (driver->stood_down)
		return false;
	driver->unsure = true;
	if (cancel_is_due()) { /* not the service's fault: a signal is pending */
		err_freep(&driver->failure);
		driver_wake_in(driver, AWAY_MS);
		return true;
	}
	if (!is_waited_for(driver))
		return false;
	/* A wait from before this attempt was intended is over: its service has answered. */
	if (driver->away_since.ms > 0 && strcmp(driver->away_nonce, driver->flow.nonce) != 0)
		again_works(driver);
	begin_wait(driver);
	driver->away_times++;
	if (limit_ms > 0 && clock_mono_now().ms - silent_since(driver).ms >= limit_ms) {
		err_code(&driver->failure, EXIT_UNREACHABLE);
		return false;
	}
	record_wait(driver);
	if (driver->stood_down)
		return false;
	driver_wake_in(driver, pause_ms(driver));
	err_freep(&driver->failure);
	return true;
}

void again_works(struct driver *driver)
{
	struct event ev = { .kind = EV_DRIVER_WENT_ON };
	AUTO(err_freep) struct err *unrecorded = NULL;
	int64_t since = driver->away_since.ms;
	bool news = driver->away_times >= TOLD_FROM;

	if (since == 0)
		return;
	driver->away_since.ms = driver->away_times = 0;
	if (!news || driver->flow.state == FLOW_ENDED)
		return;
	EVENT_SET_STR(&ev, reason, driver->away_why);
	EVENT_SET(&ev, seconds, (double)(clock_mono_now().ms - since) / 1000);
	/* A failure to record does not matter: the work goes on. */
	if (driver_record(driver, &ev, &unrecorded) < 0)
		return;
}

bool again_may_act(struct driver *driver)
{
	if (driver_keep(driver, &driver->failure) == 0)
		return true;
	if (!again_try(driver))
		loop_quit(driver->loop);
	return false;
}
