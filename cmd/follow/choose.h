/* Asking a person for one of the unfinished runs. */
#ifndef STK_CMD_FOLLOW_CHOOSE_H
#define STK_CMD_FOLLOW_CHOOSE_H

#include "jobs/run/journal/journal.h"

/* Shows the unfinished runs of the state (--state) on a terminal and asks which one `verb` ("stop")
 * is to have. EXIT_USAGE without a terminal, or if the answer names none; EXIT_NOT_FOUND if no run
 * goes on. */
int choose_run(const char *state, const char *verb, char run[JOURNAL_RUN_MAX], struct err **err);

#endif
