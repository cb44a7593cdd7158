/* The cure of a failure for want of a right of AWS that the spec's policies give. */
#ifndef STK_RUN_ATTEMPT_MISSED_RIGHT_H
#define STK_RUN_ATTEMPT_MISSED_RIGHT_H

#include "jobs/base/text/js.h"
#include "jobs/flow/failure.h"

/* Returns the cure with the statement if the evidence names such a right, and the cure so far has
 * no statement; else NULL. The caller frees it. */
char *missed_right_hint(const json_t *plan, const struct failure_classification *classification);

#endif
