/*
 * A driver in the background: this program again, in a session of its own, with
 * its output in `<state>/runs/<run>/driver.log`. It outlives the terminal.
 */
#ifndef STK_RUN_BACKGROUND_H
#define STK_RUN_BACKGROUND_H

#include <sys/types.h>

#include "jobs/run/journal.h"

struct background;

/* Start a driver for a run that is there, with the environment of this process
 * (secrets may come from it). */
int background_start(struct journal *journal, const char *run, struct background **ret,
		     struct err **err);

/* Wait until it has taken the run over: after a crash of another machine that may
 * take as long as a lease is valid. An error says why it did not, in its own last
 * words. */
int background_wait(struct background *background, pid_t *ret_pid, struct err **err);

/* Forget about it; it goes on. */
void background_freep(struct background **background);

#endif
