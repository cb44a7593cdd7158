/* Parts of a plan as text, for plan and cache why. */
#ifndef STK_CMD_PLAN_TEXT_H
#define STK_CMD_PLAN_TEXT_H

#include "jobs/base/json.h"

/* A command as one would type it into a shell; NULL for none. Yours to free. */
char *command_text(const json_t *command);

/* The plan with commands and variables as the job will see them: what the agent
 * would still have to take for no reference is the plain text. A new reference. */
json_t *plan_as_shown(const json_t *plan);

#define CHANGES_SHOWN ((size_t)10) /* where they are not what was asked for */

/* "  hyperparameters.batch_size: 32 → 64" on stdout, a line each, and how many
 * more there are than `most`. */
void print_changes(const json_t *changes, size_t most);

/* What each phase would send, and in what the two differ (NULL: there is one phase),
 * as order_planned() and order_difference() have it. */
void print_requests(const json_t *plan, const json_t *requests, const json_t *difference);

#endif
