/* SIGINT, SIGTERM and SIGHUP at a driver: see enum interrupt in driver.h. */
#include <signal.h>
#include <unistd.h>

#include "jobs/run/driver_inside.h"

static void request_stop(struct driver *driver)
{
	struct event ev = { .kind = EV_REQUEST_STOP };

	if (driver->flow.stop_requested)
		return;
	EVENT_SET_STR(&ev, reason, "interrupted");
	EVENT_SET(&ev, pid, (int64_t)getpid());
	if (driver_record(driver, &ev, &driver->failure) < 0)
		loop_quit(driver->loop);
	else
		driver_wake(driver);
}

/* A run that waits for another one, or for its next attempt, has none. */
static bool has_job(const struct driver *driver)
{
	enum attempt_state state = driver->flow.attempt_state;

	return (driver->flow.state == FLOW_PRECOMPILE || driver->flow.state == FLOW_TRAIN) &&
	       state != ATTEMPT_NONE && state != ATTEMPT_FAILED && state != ATTEMPT_BACKOFF;
}

/* The run has ended: nothing is left to decide, and who was not told yet can be told by
 * the next driver. */
static bool is_over(struct driver *driver)
{
	if (driver->flow.state != FLOW_ENDED)
		return false;
	loop_quit(driver->loop);
	return true;
}

static void on_readable(void *arg);

static void obey(struct driver *driver, enum interrupt what)
{
	if (driver->answer && what != INTERRUPT_ASK) {
		loop_remove(driver->loop, driver->answer);
		driver->answer = NULL;
	}
	switch (what) {
	case INTERRUPT_DETACH:
		driver_leave(driver,
			     has_job(driver) ? "interrupted: the job runs on"
					     : "interrupted: no job is under way",
			     EXIT_DETACHED);
		break;
	case INTERRUPT_STOP:
		request_stop(driver);
		break;
	case INTERRUPT_ASK:
		if (!driver->answer)
			driver->answer =
				loop_on_readable(driver->loop, STDIN_FILENO, on_readable, driver);
		break;
	case INTERRUPT_GO_ON:
		break;
	}
}

static void on_readable(void *arg)
{
	struct driver *driver = arg;

	if (is_over(driver)) /* since the question was put */
		return;
	obey(driver, driver->options->on_answer(driver->options->arg));
}

static void interrupted(struct driver *driver, int signo)
{
	const struct driver_options *options = driver->options;

	if (driver->left || driver->failure)
		return;
	if (is_over(driver))
		return;
	obey(driver,
	     options->on_interrupt ? options->on_interrupt(options->arg, signo) : INTERRUPT_DETACH);
}

static void on_int(void *arg)
{
	interrupted(arg, SIGINT);
}

static void on_term(void *arg)
{
	interrupted(arg, SIGTERM);
}

static void on_hup(void *arg)
{
	interrupted(arg, SIGHUP);
}

void driver_watch_signals(struct driver *driver)
{
	loop_on_signal(driver->loop, SIGINT, on_int, driver);
	loop_on_signal(driver->loop, SIGTERM, on_term, driver);
	loop_on_signal(driver->loop, SIGHUP, on_hup, driver);
}
