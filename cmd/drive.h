/* Driving a run in the foreground: display, and handling of Ctrl-C. */
#ifndef STK_CMD_DRIVE_H
#define STK_CMD_DRIVE_H

#include "cmd/cmd.h"
#include "jobs/run/background.h"
#include "jobs/run/driver.h"

/* Prints one plain line per change on stderr, or with --json the event on stdout. */
void drive_show_event(void *arg, const struct event *ev, json_t *row);

/* Prints the journal of the run so far on stdout with --json, else nothing. */
int drive_replay(struct journal *journal, const char *run, struct err **err);

/* A lease_wait_fn that prints the holder of the lease being waited for. */
void drive_show_wait(void *arg, const char *holder, const struct err *trouble, int64_t at_most_ms);

/* Sets the lease rules from the command line. */
int drive_lease_rules(const struct args *args, struct lease_rules *ret, struct err **err);

/* Drives the run until it ends or is detached, then prints its summary. `plan` as in
 * driver_options. Returns the exit code, or -1. */
int drive_run(const struct args *args, struct journal *journal, const char *run,
	      const struct plan *plan, struct err **err);

/* Starts a background driver and reports it; prints the run's id on stdout, for scripts. Returns
 * the exit code, or -1. */
int drive_in_background(struct journal *journal, const char *run, struct err **err);
/* Second half of drive_in_background(), for a driver already started: waits until it drives the
 * run. */
int drive_await(struct background *background, const char *run, struct err **err);

/* Prints the summary of a run that is no longer driven here on stdout and returns its exit code;
 * EXIT_DETACHED if it goes on. */
int drive_outcome(struct journal *journal, const char *run, struct err **err);

#endif
