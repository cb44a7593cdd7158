/* The state of a run as text, from its JSON. */
#ifndef STK_CMD_STATUS_TEXT_H
#define STK_CMD_STATUS_TEXT_H

#include "jobs/base/text/js.h"

/* Prints everything on stdout, for `status`. */
void status_text_print_status(const json_t *status);

/* Prints what was compiled, proved and trained, and the time each took, after `run`. */
void status_text_print_summary(const json_t *status);

#endif
