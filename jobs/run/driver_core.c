/*
 * Services of the driver that its other files need: the clock, the journal, the lease, the next
 * turn, leaving. Nothing here calls an effect, an attempt or the dispatcher: a file that needs the
 * driver to do something wakes it, and the dispatcher (driver.c) decides at its next turn.
 */
#include <string.h>

#include "jobs/base/process/cancel.h"
#include "jobs/run/driver_internal.h"
#include "jobs/run/journal/event_json.h"
#include "jobs/run/journal/lease.h"
#include "jobs/store/order.h"

struct utc driver_now(const struct driver *driver)
{
	struct utc now = clock_utc_now();
	int64_t least = driver->flow.at.ms;

	if (driver->live) {
		struct mono mono = clock_mono_now();

		now.ms = driver->live_at.ms + (mono.ms - driver->live_since.ms);
		least += mono.ms - driver->seq_at.ms;
	}
	if (now.ms < least)
		now.ms = least;
	return now;
}

static int fail_taken_over(const struct driver *driver, struct err **err)
{
	return err_set(err, EXIT_BUSY, "another driver took run %s over", driver->run);
}

int driver_absorb(struct driver *driver, struct err **err)
{
	driver->journal_fails = replay_rest(driver, err) < 0;
	if (driver->journal_fails)
		return -1;
	/* A journal that can be read need not be one that can be written. */
	if (!driver->append_fails)
		driver->journal_spoke_at = clock_mono_now();
	return driver->stood_down ? fail_taken_over(driver, err) : 0;
}

int driver_try_record(struct driver *driver, struct event *ev, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	struct event read;
	int appended;

	/* A turn goes on after a look that failed, and would add to what the other one has written.
	 */
	if (driver->stood_down)
		return fail_taken_over(driver, err);
	ev->seq = driver->seq + 1;
	ev->at = driver_now(driver);
	appended = journal_append(driver->journal, driver->run, ev, err);
	driver->journal_fails = driver->append_fails = appended < 0;
	if (appended < 0)
		return -1;
	driver->journal_spoke_at = clock_mono_now();
	if (appended == 0)
		return driver_absorb(driver, err);
	driver->seq = ev->seq;
	/* The plan as a driver will read it that takes over: this one must decide alike. */
	if (event_decode(journal_appended(driver->journal), &read, &ignored) <= 0)
		read = *ev;
	replay_apply(driver, &read);
	replay_keep(driver);
	if (driver->options->on_event)
		driver->options->on_event(driver->options->arg, &read,
					  journal_appended(driver->journal));
	return 1;
}

int driver_record(struct driver *driver, struct event *ev, struct err **err)
{
	int64_t before = driver->seq;
	int recorded;

	while ((recorded = driver_try_record(driver, ev, err)) == 0) {
		if (driver->seq == before)
			return journal_contradicts(driver->journal, driver->run, before + 1, err);
		before = driver->seq;
	}
	return recorded < 0 ? -1 : 0;
}

/* The dispatcher's turn is due. */
static void on_timer(void *arg)
{
	struct driver *driver = arg;

	driver->timer = NULL;
	driver->turn(driver);
}

void driver_wake_in(struct driver *driver, int64_t delay_ms)
{
	/* No wait is longer than until the next limit is due. One that is due already does not end
	 * a wait: it could not be acted on. */
	int64_t due_ms = limit_next_ms(&driver->flow) - driver_now(driver).ms;

	if (due_ms > 0 && due_ms < delay_ms)
		delay_ms = due_ms;
	loop_remove(driver->loop, driver->timer);
	driver->timer = loop_after(driver->loop, delay_ms < 1 ? 1 : delay_ms, on_timer, driver);
}

void driver_wake(struct driver *driver)
{
	driver_wake_in(driver, 0);
}

int driver_keep(struct driver *driver, struct err **err)
{
	if (lease_keep(driver->lease, err) == 0)
		return 0;
	driver->stood_down |= (*err)->code != EXIT_UNREACHABLE;
	return -1;
}

int driver_write_drain(struct driver *driver, enum phase phase, int64_t attempt, struct err **err)
{
	AUTO(auto_free) char *prefix = order_attempt_prefix(driver->run, phase, attempt);
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, DRAIN_FILE);
	json_auto_t *drain = json_object();
	AUTO(auto_free) char *text = NULL;

	js_put(drain, "v", json_integer(1));
	js_put_str(drain, "reason", driver->flow.stop_reason);
	js_put(drain, "at", json_integer(driver_now(driver).ms));
	text = js_line(drain);
	return store_put_if_absent(driver->workspace, key, text, strlen(text), err) < 0 ? -1 : 0;
}

int driver_stop_job(struct driver *driver, enum phase phase, int64_t attempt, const char *job,
		    struct err **err)
{
	AUTO(auto_free) char *prefix = order_attempt_prefix(driver->run, phase, attempt);

	if (job_engine_enter(driver, phase, err) < 0)
		return -1;
	return driver->engine->ops->stop(driver->engine, job, prefix,
					 js_int(driver->plan, "grace_ms", 60000), err);
}

void driver_record_left(struct driver *driver, const char *reason)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event left = { .kind = EV_DRIVER_LEFT };

	EVENT_SET(&left, epoch, driver->flow.epoch);
	EVENT_SET_STR(&left, reason, reason);
	/* The driver leaves even if that cannot be recorded. */
	if (driver_record(driver, &left, &err) < 0)
		return;
}

void driver_leave(struct driver *driver, const char *reason, enum exit_code exit_code)
{
	driver->left = true;
	cancel_after(LEAVE_MS);
	driver->exit_code = exit_code;
	driver_record_left(driver, reason);
	loop_quit(driver->loop);
}
