/*
 * Forgetting a finished run: its events, its folder `runs/<run>/` in the state directory and the
 * one in its workspace, with its logs, claims, outputs and checkpoints.
 *
 * Data elsewhere stays: checkpoints beneath checkpoint.url, the compile cache, and what runs share
 * in a workspace (agents, sources by content). Complete checkpoints and outputs that have no other
 * copy (keepsakes.h) stay too, where they are, unless the caller asks for their removal. Then
 * `runs/<run>/kept.json` stays in the state and tells where they are:
 *   {"v":1, "workspace", "checkpoint": of the plan, "kept": [keepsakes]}
 */
#ifndef STK_RUN_JOURNAL_FORGET_H
#define STK_RUN_JOURNAL_FORGET_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/lease.h"

struct forget_options {
	bool with_checkpoints; /* remove checkpoints and outputs without a copy too */
	bool dry_run;          /* change nothing, take no lease */
};

/* Forgets the run, under its lease (see lease_take for the middle arguments). A run that has not
 * ended is EXIT_REFUSED, a run with a live driver EXIT_BUSY; a run with a damaged journal or lease
 * can be forgotten, whatever became of its job. No link is followed below the two folders. If the
 * call is cut short at any instruction, the run is still there or gone, and the same call clears
 * away the rest. `ret`, a new reference: {"files", "size_bytes": of what was or would be removed
 * (rows of a database have none), "kept": [keepsakes, without keys]}. */
int run_forget(struct journal *journal, const char *run, const struct forget_options *options,
	       const struct lease_rules *rules, lease_wait_fn on_wait, void *arg, json_t **ret,
	       struct err **err);

/* True if run_forget would still remove something of that id, though the journal has no such
 * run. */
bool run_has_rests(const struct journal *journal, const char *run);

/* Returns 1 if a run of that id was forgotten and its only copies of data are kept under it, 0 if
 * not, -1 if that cannot be seen. */
int run_find_kept(const struct journal *journal, const char *run, struct err **err);

#endif
