/* Driving a run from a command: in the foreground, with display and handling of Ctrl-C, or by a
 * driver in the background. */
#ifndef STK_CMD_FOLLOW_FOREGROUND_H
#define STK_CMD_FOLLOW_FOREGROUND_H

#include "cmd/args/args.h"
#include "jobs/run/background.h"
#include "jobs/run/driver.h"

/* Drives the run until it ends, is paused (--until) or is detached, then prints its summary. `plan`
 * and `inputs` as in driver_options. Returns the exit code, or -1. */
int foreground_run(const struct args *args, struct journal *journal, const char *run,
		   const struct plan *plan, const json_t *inputs, struct err **err);

/* Starts a background driver and reports it; prints the run's id on stdout, for scripts. `until` as
 * in background_start(). Returns the exit code, or -1. */
int foreground_detach(struct journal *journal, const char *run, const char *until,
		      struct err **err);
/* Second half of foreground_detach(), for a driver already started: waits until it drives the run.
 */
int foreground_detach_await(struct background *background, const char *run, struct err **err);

#endif
