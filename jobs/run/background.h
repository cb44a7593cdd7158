/*
 * A driver in the background: this program again, in a session of its own, with
 * its output in `<state>/runs/<run>/driver.log`. It outlives the terminal.
 */
#ifndef STK_RUN_BACKGROUND_H
#define STK_RUN_BACKGROUND_H

#include <sys/types.h>

#include "jobs/run/journal.h"

/* Start a driver for a run that is there, with the environment of this process
 * (secrets may come from it), and wait until it has taken the run over. An error
 * says why it did not, in its own last words. */
int background_drive(struct journal *journal, const char *run, pid_t *ret_pid, struct err **err);

#endif
