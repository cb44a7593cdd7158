/*
 * The driver: the one process that decides for a run. It does what the flow
 * asks for, and journals what came of it before anything else follows.
 *
 * It can be killed at any instruction. Driving the run again replays the
 * journal and goes on; the same flow then has the same wishes.
 */
#ifndef STK_RUN_DRIVER_H
#define STK_RUN_DRIVER_H

#include "jobs/run/journal.h"
#include "jobs/run/plan.h"

struct driver_options {
	const char *run;         /* the id, made or given */
	const struct plan *plan; /* begins the run, or must equal that of the run there is */
	bool stop_on_interrupt;  /* a signal stops the job instead of leaving it running */
	/* Each event as it becomes durable (also what a driver before this one
	 * journalled, if `replay`). */
	void (*on_event)(void *arg, const struct event *ev, json_t *row);
	void *arg;
};

/* Drive the run until it has ended or an interrupt detaches it. `ret_exit` is
 * what the process should exit with. An error means that this driver could not
 * go on (the run is safe where it is). A run that has ended already gives its
 * own exit code; another plan under its id is EXIT_SPEC, another driver
 * EXIT_BUSY. */
int driver_run(struct journal *journal, const struct driver_options *options,
	       enum exit_code *ret_exit, struct err **err);

#endif
