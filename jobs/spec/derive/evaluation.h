/* One expression, worked out by libjq in a process of its own. */
#ifndef STK_SPEC_DERIVE_EVALUATION_H
#define STK_SPEC_DERIVE_EVALUATION_H

#include "jobs/base/text/js.h"

#define EVALUATION_BYTES_MAX 4096 /* of an expression */

/* Works it out; request and answer are those of stoker-derive (jobs/derive/main.c), and beside its
 * members the answer may be {"ended": how the process ended without one, in words}. EXIT_REFUSED if
 * the program cannot be started. Waits for the process, which ends by its own limits of time. */
int evaluation_run(const json_t *request, json_t **ret_answer, struct err **err);

#endif
