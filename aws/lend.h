/*
 * What an agent on this machine is lent, so that it reaches AWS as we do: its own environment
 * would not tell it of --profile, --region and the spec.
 */
#ifndef STK_AWS_LEND_H
#define STK_AWS_LEND_H

#include <stddef.h>

/* "NAME=value" for each variable that is LENT (jobs/base/variable.def) and set, with profile
 * and region as they are in force here; NULL-terminated, `ret_count` of them, yours to wipe
 * and free (secret_strv_freep()). It holds secrets: for an environment, never for a file. */
char **aws_lend(size_t *ret_count);

#endif
