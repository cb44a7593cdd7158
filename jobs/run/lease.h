/*
 * Who drives a run: one process at a time, by a lock on
 * `<state>/runs/<run>/driver.lock`. The kernel drops the lock with its holder,
 * so a dead driver is replaced at once and a stopped one keeps the run. The
 * file says who holds it, for people.
 */
#ifndef STK_RUN_LEASE_H
#define STK_RUN_LEASE_H

#include "jobs/base/err.h"

/* An open descriptor is the lease; closing it gives it up. Held elsewhere:
 * EXIT_BUSY with host and pid of the holder. */
int lease_take(const char *state_dir, const char *run, int *ret_fd, struct err **err);

#endif
