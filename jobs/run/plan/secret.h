/*
 * Values of a run's secrets, from the source in the spec: the environment, a file, a line of an
 * env_file, AWS.
 */
#ifndef STK_RUN_PLAN_SECRET_H
#define STK_RUN_PLAN_SECRET_H

#include "jobs/base/text/js.h"

/* Returns the value of the secret `name` from the source `from`, as text for a variable; the caller
 * wipes and frees it. EXIT_REFUSED if absent: the error names the secret and its source, and shows
 * nothing of the value. EXIT_UNREACHABLE if a service did not answer. */
int secret_value(const json_t *plan, const char *name, const char *from, char **ret,
		 struct err **err);

#endif
