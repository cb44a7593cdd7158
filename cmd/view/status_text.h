/*
 * The state of a run as text, from its JSON.
 *
 * cmd/view: plans, runs, events and costs as lines and sentences for people. All that is shown
 * comes as JSON or as an event, the same that --json prints; what of it takes a look at other runs
 * (cost, comparison of modes) only reads their journals. Bytes are written by cmd/screen alone.
 */
#ifndef STK_CMD_VIEW_STATUS_TEXT_H
#define STK_CMD_VIEW_STATUS_TEXT_H

#include "jobs/base/text/js.h"

/* Prints everything on stdout, for `status`. */
void status_text_print_status(const json_t *status);

/* Prints what was compiled, proved and trained, and the time each took, after `run`. */
void status_text_print_summary(const json_t *status);

#endif
