/*
 * The driver: the one process that decides for a run. It carries out the effects that the flow asks
 * for, and journals each outcome before anything else follows.
 *
 * It can be killed at any instruction. Driving the run again replays the journal and goes on; the
 * same flow then has the same effects.
 */
#ifndef STK_RUN_DRIVER_H
#define STK_RUN_DRIVER_H

#include "jobs/base/process/loop.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease.h"
#include "jobs/run/plan/plan.h"

/* Reactions of a driver to SIGINT, SIGTERM and SIGHUP. */
enum interrupt {
	INTERRUPT_DETACH,    /* the driver leaves, the job runs on */
	INTERRUPT_HAND_OVER, /* the same, and the caller starts another driver */
	INTERRUPT_STOP,      /* the run is stopped, and driven until it is */
	INTERRUPT_GO_ON,     /* nothing happens */
	INTERRUPT_ASK,       /* a question has been put; on_answer has the answer */
};

struct driver_options {
	const char *run; /* the id, made or given */
	/* Begins the run, or must equal the plan of the existing run. NULL: the run exists, with
	 * any plan. */
	const struct plan *plan;
	/* The inputs of a new run beside its plan: run.created's `inputs`, to which the parent that
	 * `parent.from` names by its place is added here. NULL: nothing. Not used if the run
	 * exists. */
	const json_t *inputs;
	/* The run pauses once it has got past this phase (NULL: it goes on to its end), or as its
	 * last driver was told. A run that is paused is past what it was told. */
	const enum phase *pause_after;
	bool pauses_as_before;
	/* Called with each event as it becomes durable, events of other processes included. */
	void (*on_event)(void *arg, const struct event *ev, json_t *row);
	/* Called with the current train.progress, oftener than it is journalled; what it points at
	 * is gone when this returns. */
	void (*on_progress_update)(void *arg, const struct event *ev);
	/* Called once with the loop that is about to run the driver, then with NULL before it is
	 * freed: for timers and signals of the code that shows the run. */
	void (*on_loop)(void *arg, struct loop *loop);
	/* Called when a service does not answer; it is retried from now on. May be NULL. */
	void (*on_away)(void *arg, const struct err *why);
	/* NULL: detach. After INTERRUPT_ASK on_answer is called whenever descriptor 0
	 * is readable, until it gives another answer. */
	enum interrupt (*on_interrupt)(void *arg, int signo);
	enum interrupt (*on_answer)(void *arg);
	/* Another driver may be dead: called with the longest time that its lease is watched. */
	lease_wait_fn on_wait;
	void *arg;
	const struct lease_rules *lease; /* NULL: LEASE_RULES */
};

/* Journals that the run begins, and publishes what it needs, without driving it. An existing run
 * must have this plan (EXIT_SPEC). */
int driver_begin(struct journal *journal, const struct driver_options *options, struct err **err);

/* Drives the run until it has ended or an interrupt detaches it. `ret_exit` is what the process
 * should exit with. An error means that this driver could not go on (the run is safe where it is).
 * A run that has already ended gives its own exit code; another plan under its id is EXIT_SPEC,
 * another driver EXIT_BUSY. */
int driver_run(struct journal *journal, const struct driver_options *options,
	       enum exit_code *ret_exit, struct err **err);

#endif
