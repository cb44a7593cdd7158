/*
 * The driver: the one process that decides for a run. It does what the flow
 * asks for, and journals what came of it before anything else follows.
 *
 * It can be killed at any instruction. Driving the run again replays the
 * journal and goes on; the same flow then has the same wishes.
 */
#ifndef STK_RUN_DRIVER_H
#define STK_RUN_DRIVER_H

#include "jobs/base/loop.h"
#include "jobs/run/journal.h"
#include "jobs/run/lease.h"
#include "jobs/run/plan.h"

/* What SIGINT, SIGTERM and SIGHUP do to a run that is being driven. */
enum interrupt {
	INTERRUPT_DETACH, /* the driver leaves, the job runs on */
	INTERRUPT_STOP,   /* the run is stopped, and driven until it is */
	INTERRUPT_GO_ON,  /* nothing happens */
	INTERRUPT_ASK,    /* a question has been put; on_answer has the answer */
};

struct driver_options {
	const char *run; /* the id, made or given */
	/* Begins the run, or must equal that of the run there is. NULL: the run is
	 * there, whatever its plan. */
	const struct plan *plan;
	/* Each event as it becomes durable, those of others included. */
	void (*on_event)(void *arg, const struct event *ev, json_t *row);
	/* A train.progress as it is now, oftener than it is journalled; what it points at
	 * is gone when this returns. */
	void (*on_glimpse)(void *arg, const struct event *ev);
	/* The loop that is about to run the driver, once, then NULL before it is gone: for
	 * timers and signals of whoever shows the run. */
	void (*on_loop)(void *arg, struct loop *loop);
	/* A service does not answer; it is tried again and again from now on. May be NULL. */
	void (*on_away)(void *arg, const struct err *why);
	/* NULL: detach. After INTERRUPT_ASK on_answer is called whenever descriptor 0
	 * is readable, until it gives another answer. */
	enum interrupt (*on_interrupt)(void *arg, int signo);
	enum interrupt (*on_answer)(void *arg);
	/* Another driver may be dead: how long its lease is watched at most. */
	lease_wait_fn on_wait;
	void *arg;
	const struct lease_rules *lease; /* NULL: LEASE_RULES */
};

/* Journal that the run begins, and publish what it needs, without driving it.
 * A run that is there already must have this plan (EXIT_SPEC). */
int driver_begin(struct journal *journal, const struct driver_options *options, struct err **err);

/* Drive the run until it has ended or an interrupt detaches it. `ret_exit` is
 * what the process should exit with. An error means that this driver could not
 * go on (the run is safe where it is). A run that has ended already gives its
 * own exit code; another plan under its id is EXIT_SPEC, another driver
 * EXIT_BUSY. */
int driver_run(struct journal *journal, const struct driver_options *options,
	       enum exit_code *ret_exit, struct err **err);

#endif
