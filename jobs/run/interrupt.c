/* SIGINT, SIGTERM and SIGHUP at a driver: see enum interrupt in driver.h. */
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "aws/aws.h"
#include "jobs/run/driver_inside.h"

bool driver_request_stop(struct driver *driver)
{
	struct event ev = { .kind = EV_REQUEST_STOP };

	if (driver->flow.stop_requested) {
		driver->stop_wished = false;
		return true;
	}
	EVENT_SET_STR(&ev, reason, "interrupted");
	EVENT_SET(&ev, pid, (int64_t)getpid());
	if (driver_record(driver, &ev, &driver->failure) < 0) {
		/* The wish stays: pump comes back to it. */
		driver->stop_wished = true;
		if (!driver_wait_for_service(driver))
			loop_quit(driver->loop);
		return false;
	}
	driver->stop_wished = false;
	driver_wake(driver);
	return true;
}

/* While the driver waits for a service nothing else of its loop goes on: is there a signal
 * to be obeyed, or an answer on the terminal? */
static bool is_called(void *arg)
{
	const struct driver *driver = arg;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return loop_stop_pending() || (driver->answer && poll(&input, 1, 0) > 0);
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

/* It was wished already and cannot be recorded: who asks again wants to be let go. */
static void give_up_stop(struct driver *driver)
{
	err_set(&driver->failure, EXIT_UNREACHABLE,
		"the stop could not be recorded yet, so the job of run %s may run on", driver->run);
	err_hint(&driver->failure, "'stoker stop %s' asks for it again", driver->run);
	loop_quit(driver->loop);
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
		if (driver->stop_wished)
			give_up_stop(driver);
		else
			(void)!driver_request_stop(driver);
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
	driver_hear_signals(driver); /* this one has been heard */
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

void driver_hear_signals(struct driver *driver)
{
	aws_interrupt(is_called, driver);
}

void driver_deafen(struct driver *driver)
{
	aws_interrupt(NULL, NULL);
	while (driver->loop && loop_stop_take())
		;
}
