/* Programs of other schedulers (crontab, systemctl), run with a short input for their output. */
#ifndef STK_CMD_SCHEDULE_TOOL_H
#define STK_CMD_SCHEDULE_TOOL_H

#include "jobs/base/err.h"
#include "jobs/base/sb.h"

/* Runs a program, found along $PATH and in the folders of administrators, with this process's
 * environment; waits for its end. `input` may be NULL. Appends its stdout to `out` and its stderr
 * to `words`. Returns its exit status; -1 with an error (EXIT_REFUSED) if it is not there or a
 * signal ended it. */
int tool_run(const char *const *argv, const char *input, struct sb *out, struct sb *words,
	     struct err **err);
/* The same for a program whose failure is the command's: 0, or -1 with its own words. */
int tool_must(const char *const *argv, const char *input, struct sb *out, struct err **err);

#endif
