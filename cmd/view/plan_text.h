/* Parts of a plan as text, for plan and cache why. */
#ifndef STK_CMD_VIEW_PLAN_TEXT_H
#define STK_CMD_VIEW_PLAN_TEXT_H

#include "jobs/base/text/js.h"
#include "jobs/run/plan/plan.h"

/* Returns a command as typed into a shell; NULL for none. The caller frees it. */
char *plan_text_command(const json_t *command);

/* Returns the plan with commands and variables as the job will see them: escapes that the agent
 * resolves are shown as plain text. A new reference. */
json_t *plan_as_shown(const json_t *plan);

/* Returns the state of the plan's cache, as --json prints it. A new reference. */
json_t *plan_cache_json(const json_t *plan, const struct cache_view *view);

#define CHANGES_SHOWN ((size_t)10) /* limit, unless the changes themselves were asked for */

/* Prints "  hyperparameters.batch_size: 32 → 64" on stdout, a line each, and the number of
 * further changes beyond `most`. */
void plan_text_print_changes(const json_t *changes, size_t most);

/* Prints the requests of each phase, and the differences between the two (NULL: a single phase),
 * in the form of order_planned() and order_difference(). */
void plan_text_print_requests(const json_t *plan, const json_t *requests, const json_t *difference);

/* Prints the rows of cache_preload_view(), a line each. */
void plan_text_print_preload(const json_t *rows);

/* Prints the derived values, a line each. */
void plan_text_print_derived(const json_t *plan);

/* Prints where each value of the spec came from, a line each. */
void plan_text_print_origins(const json_t *plan);

/* Prints length and width of phase 1, and the number of torchrun's processes, as far as known.
 * `ahead`: phase 1 would run. */
void plan_text_print_measures(const json_t *plan, bool ahead);

#endif
