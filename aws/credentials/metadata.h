/*
 * The instance metadata service, version 2 alone, because its session token cannot be had through a
 * proxy or a confused server. Where it does not answer, this machine is no instance of EC2.
 *
 * Address and limits by AWS_EC2_METADATA_SERVICE_ENDPOINT, …_ENDPOINT_MODE,
 * AWS_METADATA_SERVICE_TIMEOUT (1 s) and …_NUM_ATTEMPTS (1), or the keys of the profile;
 * AWS_EC2_METADATA_DISABLED=true turns it off.
 */
#ifndef STK_AWS_CREDENTIALS_METADATA_H
#define STK_AWS_CREDENTIALS_METADATA_H

#include "aws/http/http.h"
#include "jobs/base/err.h"

struct metadata;

/* Opens a session. Returns 1; 0 if there is no such service, with the reason in *ret_why, which the
 * caller frees; -1 with an error. `profile` NULL: the environment's alone. */
int metadata_open(const char *profile, struct metadata **ret, char **ret_why, struct err **err);
void metadata_freep(struct metadata **metadata); /* for AUTO() */

/* Asks for a path such as "/latest/meta-data/instance-type". */
void metadata_get(const struct metadata *metadata, const char *path, struct http_reply *ret);
/* Sets the error of a reply that is none; returns -1. `what` is what was asked for. */
int metadata_wrong(const struct http_reply *reply, const char *what, struct err **err);

/* Finds the type of the instance that this is. Returns 1 with *ret, which the caller frees; 0 and
 * -1 as metadata_open(). Where nothing answers it takes a second, unless the limits are raised. */
int metadata_instance_type(char **ret, char **ret_why, struct err **err);

#endif
