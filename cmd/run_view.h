/* The state of a run as its journal tells it. */
#ifndef STK_CMD_RUN_VIEW_H
#define STK_CMD_RUN_VIEW_H

#include "cmd/cmd.h"
#include "jobs/report/status.h"
#include "jobs/run/journal.h"

/* Open the journal at --state, and resolve the first operand (@last if there is
 * none) to the id of a run. The caller frees the journal in every case. */
int run_open(const struct args *args, enum journal_mode mode, struct journal **ret,
	     char run[JOURNAL_RUN_MAX], struct err **err);

/* Fold the journal of a run, and ask whether the driver it names still lives. A
 * new reference. Changes nothing on disk. */
int run_view(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
	     struct err **err);

/* The same with its attempts, and with `modes`: what recorded runs of its graph key say
 * of precompiling (see modes_view.h). */
int run_view_whole(struct journal *journal, const char *run, json_t **ret, struct err **err);

/* The exit code of a run that has ended, EXIT_DETACHED of one that goes on, -1. */
int run_exit_code(struct journal *journal, const char *run, struct err **err);

#endif
