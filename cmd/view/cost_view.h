/* Estimated cost of a plan: by the hour, at the most, and from an earlier run. */
#ifndef STK_CMD_VIEW_COST_VIEW_H
#define STK_CMD_VIEW_COST_VIEW_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

/* Returns {"price" (USD per node and hour), "price_from": {"region","dated","source"} (absent if
 * the spec gives the price), "per_hour", "at_most" and "limit" (the limit of the spec that ends
 * the run first, in money), "estimated" and "as_run": the cost, at today's price, of the phases
 * that would run, and the id of the run it is taken from, the newest successful run of the same
 * name, engine, node count and steps}. A new reference; an empty object without a price. Only the
 * newest COST_RUNS_MAX runs of the journal count; unreadable runs are skipped. *ret_why may be
 * set: why no earlier run is known. */
#define COST_RUNS_MAX 50
json_t *cost_before(struct journal *journal, const json_t *plan, bool warm, struct err **ret_why);

/* Prints the cost on stdout, in one or more lines. */
void cmd_print_cost_before(const json_t *plan, const json_t *cost);

#endif
