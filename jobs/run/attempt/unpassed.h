/*
 * The cure of a failure for want of a variable that the user has set, but that no job gets: local
 * commands do not inherit the environment.
 */
#ifndef STK_RUN_ATTEMPT_UNPASSED_H
#define STK_RUN_ATTEMPT_UNPASSED_H

#include "jobs/base/text/js.h"
#include "jobs/flow/failure.h"

/* Returns the cure if a variable that the failure may want is set in the environment of this
 * process, and the phase's command does not get it; else NULL. The caller frees it. */
char *unpassed_hint(const json_t *plan, enum phase phase,
		    const struct failure_classification *classification);

#endif
