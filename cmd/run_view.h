/* The state of a run as its journal tells it. */
#ifndef STK_CMD_RUN_VIEW_H
#define STK_CMD_RUN_VIEW_H

#include "jobs/report/status.h"
#include "jobs/run/journal.h"

/* Fold the journal of a run, and ask whether the driver it names still lives. A
 * new reference. Changes nothing on disk. */
int run_view(struct journal *journal, const char *run, bool with_attempts, json_t **ret,
	     struct err **err);

/* The exit code of a run that has ended, EXIT_DETACHED of one that goes on, -1. */
int run_exit_code(struct journal *journal, const char *run, struct err **err);

#endif
