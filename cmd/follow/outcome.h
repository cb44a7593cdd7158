/* The outcome of a command that drives a run, as a file for the pipeline that called it. */
#ifndef STK_CMD_FOLLOW_OUTCOME_H
#define STK_CMD_FOLLOW_OUTCOME_H

#include "cmd/args/args.h"
#include "jobs/run/journal/journal.h"

/* Writes {"exit_code", "name", "phase", "run", "verdict"} to the file of --outcome, if that is
 * given: whole or not at all. `code`: what the command is about to return, -1 for an error, which
 * keeps its own exit code. `verdict`: NULL: the state of the run, if there is one. `journal` may be
 * NULL. Members that are not known are left out. Returns `code`; -1 if the file cannot be written,
 * unless there is an error already. */
int outcome_write(const struct args *args, struct journal *journal, const char *run,
		  const char *verdict, int code, struct err **err);

#endif
