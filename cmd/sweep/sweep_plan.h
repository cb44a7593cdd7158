/* The plan of a sweep: its cells, what they compile, and what they may cost. */
#ifndef STK_CMD_SWEEP_SWEEP_PLAN_H
#define STK_CMD_SWEEP_SWEEP_PLAN_H

#include "cmd/view/plan_requests.h"
#include "jobs/run/plan/plan.h"
#include "jobs/spec/spec.h"

/* Prints the plan; `sweep` is spec_sweep() of the spec, `base` the plan of the spec as it is,
 * `requests` those of the latter (NULL: not shown). Changes nothing anywhere. Returns the exit
 * code, or -1. */
int sweep_plan_print(struct journal *journal, const struct spec *spec, const json_t *sweep,
		     const struct plan *base, const struct plan_requests *requests,
		     struct err **err);

#endif
