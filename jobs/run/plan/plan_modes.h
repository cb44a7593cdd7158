/* `benchmark` and `debug` in a plan. */
#ifndef STK_RUN_PLAN_PLAN_MODES_H
#define STK_RUN_PLAN_PLAN_MODES_H

#include "jobs/base/text/js.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/spec/spec.h"

/* Adds "benchmark" and "debug" (plan.h) to a plan that has its phases, and the variables of a debug
 * run to its training. `named`: the kind that the spec names. */
void plan_modes_put(json_t *plan, const struct spec *spec, const struct compile_kind *named);

#endif
