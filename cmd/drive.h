/* Driving a run in the foreground: what people see of it, and their Ctrl-C. */
#ifndef STK_CMD_DRIVE_H
#define STK_CMD_DRIVE_H

#include "cmd/cmd.h"
#include "jobs/run/background.h"
#include "jobs/run/driver.h"

/* One plain line per change on stderr, or with --json the event on stdout. */
void drive_show_event(void *arg, const struct event *ev, json_t *row);

/* With --json the journal of the run so far on stdout, else nothing. */
int drive_replay(struct journal *journal, const char *run, struct err **err);

/* A lease_wait_fn that tells people who is waited for. */
void drive_show_wait(void *arg, const char *holder, int64_t at_most_ms);

/* The rules of leases, as the command line has them. */
int drive_lease_rules(const struct args *args, struct lease_rules *ret, struct err **err);

/* Drive the run until it ends or is detached, then print its summary. `plan` as
 * in driver_options. The exit code, or -1. */
int drive_run(const struct args *args, struct journal *journal, const char *run,
	      const struct plan *plan, struct err **err);

/* Have it driven in the background and say so; stdout gets its id, for scripts.
 * The exit code, or -1. */
int drive_in_background(struct journal *journal, const char *run, struct err **err);
/* The second half of that, for one that was started: until it drives the run. */
int drive_await(struct background *background, const char *run, struct err **err);

/* What came of a run that is not driven here any more: its summary on stdout,
 * its own exit code; EXIT_DETACHED while it goes on. */
int drive_outcome(struct journal *journal, const char *run, struct err **err);

#endif
