/*
 * A driver in the background: this program again, in a session of its own, with
 * its output in `<state>/runs/<run>/driver.log`. It outlives the terminal.
 */
#ifndef STK_RUN_BACKGROUND_H
#define STK_RUN_BACKGROUND_H

#include <sys/types.h>

#include "jobs/run/journal/journal.h"

struct background;

/* Starts a driver for an existing run, with the environment of this process (secrets may come from
 * it). `until`: the name of the phase after which it pauses the run; NULL: as the last driver was
 * told. */
int background_start(struct journal *journal, const char *run, const char *until,
		     struct background **ret, struct err **err);

/* Waits until the driver has taken the run over: after a crash of another machine that may take as
 * long as a lease is valid. `*ret_pid` is 0 if the run had ended or been paused by then. An error
 * gives the reason in the driver's own last words. */
int background_wait(struct background *background, pid_t *ret_pid, struct err **err);

/* Frees the handle; the driver goes on. */
void background_freep(struct background **background);

#endif
