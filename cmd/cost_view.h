/* What a plan would cost: by the hour, at the most, and as an earlier run did. */
#ifndef STK_CMD_COST_VIEW_H
#define STK_CMD_COST_VIEW_H

#include "jobs/base/json.h"
#include "jobs/run/journal.h"

/* {"price" (USD of a node and hour), "price_from": {"region","dated","source"} (absent: the spec
 * says it), "per_hour", "at_most" and "limit" (the limit of the spec that ends it first, in
 * money), "estimated" and "as_run": what the phases that would run cost in the newest run of
 * the same name, engine, node count and steps that succeeded, at today's price}. A new
 * reference; without a price an empty object. Of the journal the newest COST_RUNS_MAX runs count;
 * what cannot be read is passed over. */
#define COST_RUNS_MAX 50
json_t *cost_before(struct journal *journal, const json_t *plan, bool warm);

/* On stdout, a line or some. */
void print_cost_before(const json_t *plan, const json_t *cost);

#endif
