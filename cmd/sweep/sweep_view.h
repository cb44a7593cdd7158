/* The state of a sweep: its cells, and the runs of each. */
#ifndef STK_CMD_SWEEP_SWEEP_VIEW_H
#define STK_CMD_SWEEP_SWEEP_VIEW_H

#include "cmd/args/args.h"
#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

/* Reads the record of the sweep that the only operand names: 1 with the journal, open, and the
 * record; 0 if it names none, or if that cannot be known now; -1 if the record is damaged. The
 * caller frees the journal in every case. */
int sweep_view_find(const struct args *args, enum journal_mode mode, struct journal **ret_journal,
		    json_t **ret_record, struct err **err);

/* Sees what became of each run. Returns the object that `status --json SWEEP` prints: its state is
 * "running" while a run goes on, "stopped", "refused" if a limit of the sweep keeps runs from
 * beginning, "waiting" while runs have not begun, or "succeeded" if any has, else "failed". A run
 * whose journal is damaged is "damaged" and keeps back no other; the first such damage is in
 * *ret_damage, which the caller frees. `earlier`: an earlier look at the same sweep, whose runs
 * that had ended are not read again; NULL: none. */
int sweep_view(struct journal *journal, const json_t *record, const json_t *earlier, json_t **ret,
	       struct err **ret_damage, struct err **err);

/* Returns the exit code of a sweep, EXIT_DETACHED if it goes on. */
int sweep_view_exit_code(const json_t *view);

/* Calls `fn` for each run that has begun, with its state. */
typedef int (*sweep_view_fn)(void *arg, const char *run, const char *state, struct err **err);
int sweep_view_each(const json_t *view, sweep_view_fn fn, void *arg, struct err **err);

/* Prints the object, or its table. */
void sweep_view_print(const json_t *view);

#endif
