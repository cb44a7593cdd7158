/* SIGINT, SIGTERM and SIGHUP at a driver: see enum interrupt in driver.h. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "jobs/base/process/cancel.h"
#include "jobs/run/driver_internal.h"

bool interrupt_request_stop(struct driver *driver)
{
	struct event ev = { .kind = EV_REQUEST_STOP };

	if (driver->flow.stop_requested) {
		driver->stop_pending = false;
		return true;
	}
	/* The job need not wait until the stop is journalled. */
	if (driver->journal_fails)
		beside_stop_unrecorded(driver);
	EVENT_SET_STR(&ev, reason, driver->stop_words ? driver->stop_words : "interrupted");
	EVENT_SET(&ev, pid, (int64_t)getpid());
	if (driver_record(driver, &ev, &driver->failure) < 0) {
		/* The request stays: pump tries again. */
		driver->stop_pending = true;
		beside_stop_unrecorded(driver);
		if (!again_try(driver))
			loop_quit(driver->loop);
		return false;
	}
	driver->stop_pending = false;
	beside_stop_file_clear(driver);
	driver_wake(driver);
	return true;
}

/* While the driver waits for a service, its loop stands still. True if a signal or an answer on the
 * terminal is pending. */
static bool has_input(void *arg)
{
	const struct driver *driver = arg;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return loop_stop_pending() || (driver->answer && poll(&input, 1, 0) > 0);
}

/* True if the run has ended: nothing is left to decide, and the next driver can send the messages
 * that are still due. */
static bool is_over(struct driver *driver)
{
	if (driver->flow.state != FLOW_ENDED)
		return false;
	loop_quit(driver->loop);
	return true;
}

/* The stop was requested before and cannot be recorded: a second request means that the user wants
 * to leave. */
static void give_up_stop(struct driver *driver)
{
	err_set(&driver->failure, EXIT_UNREACHABLE,
		"the stop could not be recorded yet, so the job of run %s may run on", driver->run);
	err_hint(&driver->failure, "'stoker stop %s' requests the stop again", driver->run);
	loop_quit(driver->loop);
}

static void on_readable(void *arg);

static void apply_interrupt(struct driver *driver, enum interrupt what)
{
	if (driver->answer && what != INTERRUPT_ASK) {
		loop_remove(driver->loop, driver->answer);
		driver->answer = NULL;
	}
	switch (what) {
	case INTERRUPT_DETACH:
		driver_leave(driver,
			     flow_attempt_is_open(&driver->flow) ? "interrupted: the job runs on"
								 : "interrupted: no job is running",
			     EXIT_DETACHED);
		break;
	case INTERRUPT_HAND_OVER:
		driver_leave(driver, "the terminal hung up: a driver in the background follows",
			     EXIT_DETACHED);
		break;
	case INTERRUPT_STOP:
		if (driver->stop_pending)
			give_up_stop(driver);
		else
			(void)!interrupt_request_stop(driver);
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

	if (is_over(driver)) /* the run has ended since the question was put */
		return;
	apply_interrupt(driver, driver->options->on_answer(driver->options->arg));
}

static void handle_signal(struct driver *driver, int signo)
{
	const struct driver_options *options = driver->options;

	if (driver->left || driver->failure)
		return;
	interrupt_handle_signals(driver); /* the signal has been handled */
	if (is_over(driver))
		return;
	apply_interrupt(driver, options->on_interrupt ? options->on_interrupt(options->arg, signo)
						      : INTERRUPT_DETACH);
}

static void on_int(void *arg)
{
	handle_signal(arg, SIGINT);
}

static void on_term(void *arg)
{
	handle_signal(arg, SIGTERM);
}

static void on_hup(void *arg)
{
	handle_signal(arg, SIGHUP);
}

/* Sent by a 'stoker stop' that cannot journal its request. */
static void on_usr1(void *arg)
{
	struct driver *driver = arg;

	if (driver->left || driver->failure || driver->stop_pending)
		return;
	if (!beside_stop_file_read(driver)) {
		free(driver->stop_words);
		driver->stop_words = mem_copy("'stoker stop', which could not journal it");
	}
	driver->stop_pending = true;
	driver_wake(driver);
}

void interrupt_watch_signals(struct driver *driver)
{
	loop_on_signal(driver->loop, SIGINT, on_int, driver);
	loop_on_signal(driver->loop, SIGTERM, on_term, driver);
	loop_on_signal(driver->loop, SIGHUP, on_hup, driver);
	loop_on_signal(driver->loop, SIGUSR1, on_usr1, driver);
}

void interrupt_handle_signals(struct driver *driver)
{
	cancel_when(has_input, driver);
}

void interrupt_ignore(struct driver *driver)
{
	cancel_when(NULL, NULL);
	while (driver->loop && loop_stop_take())
		;
}
