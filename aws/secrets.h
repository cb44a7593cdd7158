/*
 * Secrets that AWS keeps: of Secrets Manager and of SSM's Parameter Store.
 *
 *   secretsmanager:NAME       the whole secret, which must be text
 *   secretsmanager:NAME#KEY   one member of a secret that is a JSON object: a text, a number,
 *                             true or false
 *   ssm:NAME                  a parameter, decrypted; NAME may end in :VERSION or :LABEL
 *
 * A NAME may be an ARN; it is then asked for in the ARN's own region.
 *
 * Source: service models of botocore 1.43 (secretsmanager, ssm).
 */
#ifndef STK_AWS_SECRETS_H
#define STK_AWS_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

/* It is one of these. */
bool aws_secret_is(const char *from);

/* The value, yours to wipe and free (secret_freep()). EXIT_REFUSED, with the service's words,
 * if it is not there or may not be read, is binary, empty, holds a NUL byte or is longer than
 * `max`; EXIT_UNREACHABLE. No error shows any of it. */
int aws_secret_read(const char *from, size_t max, char **ret, struct err **err);

#endif
