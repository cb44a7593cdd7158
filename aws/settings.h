/*
 * What the user has set: profile, region, endpoints, certificates, by option, spec,
 * environment and the shared config file, in the order that design and botocore give.
 * Read once a process; a store on another thread sees the same.
 *
 *   profile   --profile, AWS_DEFAULT_PROFILE, AWS_PROFILE, "default"
 *   region    --region, spec aws.region, AWS_REGION, AWS_DEFAULT_REGION, the profile
 *   endpoint  AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services
 *             section, its endpoint_url; none with AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true
 */
#ifndef STK_AWS_SETTINGS_H
#define STK_AWS_SETTINGS_H

#include <stdbool.h>

#include "jobs/base/err.h"

/* What the command line and the spec say, before anything here is used; copies. NULL:
 * says nothing. An option beats what a later call brings from the spec. */
void aws_settings_option(const char *profile, const char *region);
void aws_settings_spec(const char *region);

/* Borrowed, until the end of the process. */
const char *aws_profile(void);
bool aws_profile_is_explicit(void); /* by option, not by environment */
/* What --region said; NULL: nothing. */
const char *aws_region_option(void);
/* NULL and an error if there is none (EXIT_REFUSED, with the ways to set one). */
const char *aws_region(struct err **err);
/* A key of a profile ("role_arn", "s3.addressing_style"); NULL: absent. What stands in the
 * credentials file beats the config file, as in botocore. The values of secret keys and
 * tokens are not kept here, only that there are some: providers read them anew. */
const char *aws_config_value(const char *profile, const char *key);
/* The same of the credentials file alone. */
const char *aws_shared_value(const char *profile, const char *key);
bool aws_profile_exists(const char *profile); /* in either file */
/* Where the two files are: AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, or in ~/.aws. */
const char *aws_config_path(void);
const char *aws_shared_path(void);
/* A path with ~ and $NAME or ${NAME} expanded, as in those variables. Yours to free. */
char *aws_expand_path(const char *path);
/* A key of [sso-session NAME] or [services NAME] ("s3.endpoint_url" for the nested). */
const char *aws_section_value(const char *kind, const char *name, const char *key);
/* A configured endpoint of a service of services.def (by its suffix, as in
 * AWS_ENDPOINT_URL_S3), without a slash at the end; NULL: AWS's own. */
const char *aws_endpoint_configured(const char *suffix);
/* AWS_CA_BUNDLE, ca_bundle of the profile, REQUESTS_CA_BUNDLE; NULL: none. */
const char *aws_ca_bundle(void);
/* A variable of the environment; one that is empty counts as one that is not set. */
const char *aws_env(const char *name);
/* It is "true", in any case. */
bool aws_env_true(const char *name);
/* A config file that cannot be read or parsed, a profile that does not exist and an
 * endpoint that is no URL are errors for whoever needs them: this says so early
 * (EXIT_REFUSED, with file and line). */
int aws_settings_check(struct err **err);

void aws_settings_forget(void); /* for tests: read everything anew */

#endif
