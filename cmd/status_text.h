/* The state of a run for people, from the JSON that programs get. */
#ifndef STK_CMD_STATUS_TEXT_H
#define STK_CMD_STATUS_TEXT_H

#include "jobs/base/json.h"

/* `status`: everything, on stdout. */
void print_status(const json_t *status);

/* After `run`: what was compiled, proved and trained, and the time each took. */
void print_summary(const json_t *status);

#endif
