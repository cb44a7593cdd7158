/*
 * Secrets kept in AWS: in Secrets Manager and SSM's Parameter Store.
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
#ifndef STK_AWS_CREDENTIALS_SECRETS_H
#define STK_AWS_CREDENTIALS_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

/* True if `from` has one of these forms. */
bool aws_secret_is(const char *from);

/* Reads the value; the caller wipes and frees it (secret_freep()). EXIT_REFUSED, with the
 * service's message, if it is absent or may not be read, is binary, empty, holds a NUL byte or is
 * longer than `max`; EXIT_UNREACHABLE. No error shows any part of the value. */
int aws_secret_read(const char *from, size_t max, char **ret, struct err **err);

#endif
