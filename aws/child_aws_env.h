/*
 * Variables passed to an agent on this machine, so that it uses the same AWS account and region:
 * its own environment lacks --profile, --region and the spec.
 */
#ifndef STK_AWS_CHILD_AWS_ENV_H
#define STK_AWS_CHILD_AWS_ENV_H

#include <stddef.h>

/* Returns "NAME=value" for each variable that is LENT (jobs/base/variable.def) and set, with
 * profile and region as in force here; NULL-terminated, `ret_count` of them. The caller wipes and
 * frees them (secret_strv_freep()). Holds secrets: for an environment, never for a file. */
char **child_aws_env(size_t *ret_count);

#endif
