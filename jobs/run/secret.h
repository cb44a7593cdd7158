/*
 * Values of a run's secrets, from where the spec says: the environment, a file, AWS.
 */
#ifndef STK_RUN_SECRET_H
#define STK_RUN_SECRET_H

#include "jobs/base/json.h"

/* The value of the secret `name` behind `from`, as text for a variable, yours to wipe and
 * free. EXIT_REFUSED if there is none: the error names the secret and where it was looked
 * for, and shows nothing of it. EXIT_UNREACHABLE: a service could not be asked. */
int secret_value(const json_t *plan, const char *name, const char *from, char **ret,
		 struct err **err);

#endif
