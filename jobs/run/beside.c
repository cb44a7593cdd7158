/* Stops that cannot be journalled, on the side of 'stoker stop': see beside.h. */
#include "jobs/run/beside.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/cancel.h"
#include "jobs/run/driver_internal.h"

#define PAUSE_MS  200   /* between two looks at a job that is being stopped */
#define OBEY_MS   15000 /* time for a driver to obey */
#define MARGIN_MS 20000 /* after the grace, until the engine should have ended it */

struct beside {
	struct driver driver;
	struct stop_beside *ret;
	void (*on_step)(void *arg, const char *what);
	void *arg;
};

static void report_step(const struct beside *beside, const char *what)
{
	if (beside->on_step)
		beside->on_step(beside->arg, what);
}

/* A file system without room for data mostly still has room for a name. */
static bool leave_name(const struct driver *driver, const char *key)
{
	const char *directory = store_directory(driver->workspace);
	AUTO(auto_free) char *path = directory ? fs_join(directory, key) : NULL;
	AUTO(auto_close)
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

	return fd >= 0;
}

static bool leave_file(const struct driver *driver, const char *reason)
{
	AUTO(auto_free) char *key = beside_stop_file_key(driver->run);
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *body = json_object();

	js_put(body, "v", json_integer(1));
	js_put_str(body, "reason", reason);
	js_put(body, "at", json_integer(clock_utc_now().ms));
	text = js_line(body);
	return store_put(driver->workspace, key, text, strlen(text), &why) == 0 ||
	       leave_name(driver, key);
}

/* Finds the driver and signals it. A look that fails counts as no driver: then the engine is
 * asked. */
static bool find_driver(struct beside *beside, struct journal *journal, bool *ret_signalled)
{
	struct stop_beside *ret = beside->ret;
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	int nobody = lease_check(journal, beside->driver.run, NULL, &lease, &ignored);

	*ret_signalled = false;
	if (nobody != 0)
		return false;
	snprintf(ret->holder, sizeof ret->holder, "%s", lease_holder(lease));
	*ret_signalled = lease_signal(lease, SIGUSR1);
	return true;
}

static enum engine_state read_job_state(const struct driver *driver, const char *prefix)
{
	struct engine_status status = { .state = ENGINE_UNKNOWN };
	AUTO(err_freep) struct err *ignored = NULL;

	if (driver->engine->ops->describe(driver->engine, driver->flow.job, prefix, &status,
					  &ignored) < 0)
		return ENGINE_UNKNOWN;
	return status.state;
}

static bool wait_for_end(const struct driver *driver, const char *prefix, int64_t ms)
{
	struct mono start = clock_mono_now();

	while (read_job_state(driver, prefix) != ENGINE_ENDED) {
		if (clock_mono_now().ms - start.ms >= ms || !cancel_pause(PAUSE_MS))
			return false;
	}
	return true;
}

/* Asks the engine, else the agents. */
static bool stop_job(struct beside *beside)
{
	struct driver *driver = &beside->driver;
	const struct flow *flow = &driver->flow;
	AUTO(err_freep) struct err *why = NULL;
	AUTO(err_freep) struct err *unrecorded = NULL;

	if (driver_stop_job(driver, flow->phase, flow->attempt, flow->job, &why) == 0) {
		report_step(beside, "the engine was asked to stop the job");
		return true;
	}
	snprintf(beside->ret->trouble, sizeof beside->ret->trouble, "%s", why->message);
	snprintf(beside->ret->cure, sizeof beside->ret->cure, "%s", why->hint ? why->hint : "");
	if (driver_write_drain(driver, flow->phase, flow->attempt, &unrecorded) < 0)
		return false;
	report_step(beside, "the agents were asked to save and stop");
	return true;
}

static void find_by_hand(const struct driver *driver, const char *prefix, struct stop_beside *ret)
{
	const struct engine_ops *ops = driver->engine->ops;
	pid_t pids[16];
	int count = ops->wake ? ops->wake(driver->engine, driver->flow.job, prefix, pids, 16) : 0;
	size_t len = 0;

	if (ops->by_hand) {
		snprintf(ret->by_hand, sizeof ret->by_hand, "%s %s", ops->by_hand,
			 driver->flow.job);
		return;
	}
	for (int i = 0; i < count && len < sizeof ret->by_hand; i++)
		len += (size_t)snprintf(ret->by_hand + len, sizeof ret->by_hand - len, "%s%ld",
					i ? " " : "kill ", (long)pids[i]);
}

static void stop_run(struct beside *beside, struct journal *journal, const char *reason)
{
	struct driver *driver = &beside->driver;
	struct stop_beside *ret = beside->ret;
	AUTO(auto_free)
	char *prefix = order_attempt_prefix(driver->run, driver->flow.phase, driver->flow.attempt);
	int64_t grace_ms = js_int(driver->plan, "grace_ms", 60000) + driver->flow.policy.drain_ms;
	bool signalled;

	ret->left = leave_file(driver, reason);
	ret->driven = find_driver(beside, journal, &signalled);
	ret->idle =
		!flow_may_have_job(&driver->flow) && driver->flow.attempt_state != ATTEMPT_INTENDED;
	if (signalled || (ret->driven && ret->left))
		report_step(beside, "the driver was asked to stop the run");
	if (ret->idle)
		return;
	snprintf(ret->job, sizeof ret->job, "%s", driver->flow.job);
	find_by_hand(driver, prefix, ret);
	/* The driver lets the training save, so it gets the time that takes. */
	if ((signalled || (ret->driven && ret->left)) &&
	    wait_for_end(driver, prefix, OBEY_MS + grace_ms)) {
		ret->ended = true;
		return;
	}
	if (stop_job(beside))
		ret->ended = wait_for_end(driver, prefix, grace_ms + MARGIN_MS);
}

/* The journal is damaged, and the job costs money all the same: uses what is left of the events.
 * `err` holds the damage, and is cleared if they are of any use. */
static int salvage(struct beside *beside, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (!(*err)->damage || replay_salvage(&beside->driver, &ignored) < 0 ||
	    !beside->driver.plan)
		return -1;
	err_freep(err);
	beside->ret->damaged = true;
	return 0;
}

/* Notes a folder of an attempt, such as "train-3"; the newest is the one with the highest phase and
 * number. */
static int keep_newest(void *arg, const char *name, struct err **err)
{
	struct flow *newest = arg;

	(void)err;
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		size_t len = strlen(flow_phase_names[phase]);
		int64_t number;

		if (strncmp(name, flow_phase_names[phase], len) != 0 || name[len] != '-')
			continue;
		number = strtoll(name + len + 1, NULL, 10);
		if (phase < (int)newest->phase ||
		    (phase == (int)newest->phase && number <= newest->attempt))
			continue;
		newest->phase = (enum phase)phase;
		newest->attempt = number;
	}
	return 0;
}

/* The events of the last attempts may be lost: their folders show them. */
static void find_newest_attempt(struct driver *driver)
{
	AUTO(auto_free) char *prefix = mem_format("runs/%s/", driver->run);
	AUTO(err_freep) struct err *ignored = NULL;
	struct flow *flow = &driver->flow;
	struct flow newest = { .phase = flow->phase, .attempt = flow->attempt };

	if (store_folders(driver->workspace, prefix, keep_newest, &newest, &ignored) < 0 ||
	    (newest.phase == flow->phase && newest.attempt == flow->attempt))
		return;
	flow->phase = newest.phase;
	flow->attempt = newest.attempt;
	flow->attempt_state = ATTEMPT_SUBMITTED;
	snprintf(flow->job, sizeof flow->job, "stk-%s-%s-%lld", driver->run,
		 flow_phase_names[flow->phase], (long long)flow->attempt);
}

static void beside_release(struct beside *beside)
{
	ready_release(&beside->driver);
}

int beside_stop(struct journal *journal, const char *run, const char *reason,
		void (*on_step)(void *arg, const char *what), void *arg, struct stop_beside *ret,
		struct err **err)
{
	static const struct driver_options none = { 0 };
	AUTO(beside_release)
	struct beside beside = {
		.driver = { .journal = journal, .options = &none, .run = run },
		.ret = ret,
		.on_step = on_step,
		.arg = arg,
	};

	*ret = (struct stop_beside){ 0 };
	if (replay_all(&beside.driver, err) < 0 && salvage(&beside, err) < 0)
		return -1;
	if (!beside.driver.plan)
		return err_set(err, EXIT_NOT_FOUND, "no run '%s'", run);
	ret->over = beside.driver.flow.state == FLOW_ENDED;
	if (ret->over)
		return 0;
	if (ready_open_outside(&beside.driver, err) < 0)
		return -1;
	if (ret->damaged)
		find_newest_attempt(&beside.driver);
	stop_run(&beside, journal, reason);
	return 0;
}
