/* Parts of a plan as text, for plan and cache why. */
#ifndef STK_CMD_PLAN_TEXT_H
#define STK_CMD_PLAN_TEXT_H

#include "jobs/base/json.h"

/* A command as one would type it into a shell; NULL for none. Yours to free. */
char *command_text(const json_t *command);

/* "  hyperparameters.batch_size: 32 → 64" on stdout. */
void print_change(const json_t *change);

/* What each phase would send, and in what the two differ. */
void print_requests(const json_t *plan);

#endif
