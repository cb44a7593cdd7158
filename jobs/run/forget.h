/*
 * Forgetting a finished run: its events, its folder `runs/<run>/` in the state
 * directory and the one in its workspace, with its logs, claims and outputs and
 * the checkpoints that lie there.
 *
 * What lies elsewhere stays: checkpoints beneath checkpoint.url, the compile
 * cache, and what runs share in a workspace (agents, sources by content).
 */
#ifndef STK_RUN_FORGET_H
#define STK_RUN_FORGET_H

#include "jobs/run/lease.h"

/* Forget the run, under its lease (see lease_take for the middle arguments). A run
 * that goes on is EXIT_REFUSED, one that somebody drives EXIT_BUSY. No link is
 * followed below the two folders. Cut short at any instruction, the run is still
 * there or gone, and the same call clears away what is left. */
int run_forget(struct journal *journal, const char *run, const struct lease_rules *rules,
	       lease_wait_fn on_wait, void *arg, struct err **err);

/* Whether anything of that id is left that run_forget would remove, though the
 * journal knows no such run. */
bool run_has_rests(const struct journal *journal, const char *run);

#endif
