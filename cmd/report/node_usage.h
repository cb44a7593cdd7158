/* The work of a run's nodes, for a report: curves, and what held the training up. */
#ifndef STK_CMD_REPORT_NODE_USAGE_H
#define STK_CMD_REPORT_NODE_USAGE_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

/* Appends the charts of a run's nodes to `charts`, and sets the member "usage" of the run (page.h),
 * if its nodes have told what they did. `runs` are drawn in all; `color` is the run's. */
int node_usage_put(struct journal *journal, json_t *run, size_t runs, size_t color, json_t *charts,
		   struct err **err);
/* Appends a sentence for each finding of the run to `verdict`. */
void node_usage_verdict(const json_t *run, json_t *verdict);

#endif
