/*
 * The user's settings: profile, region, endpoints, certificates, by option, spec, environment and
 * the shared config file, in the order that design and botocore give. Read once per process; a
 * store on another thread sees the same values.
 *
 *   profile   --profile, AWS_DEFAULT_PROFILE, AWS_PROFILE, "default"
 *   region    --region, spec aws.region, AWS_REGION, AWS_DEFAULT_REGION, the profile
 *   endpoint  AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services
 *             section, its endpoint_url; none with AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true
 */
#ifndef STK_AWS_CREDENTIALS_SETTINGS_H
#define STK_AWS_CREDENTIALS_SETTINGS_H

#include <stdbool.h>

#include "jobs/base/err.h"

/* Set the values of the command line and the spec, before any other function here is used; both
 * copy. NULL: not given. An option beats the spec's value, even if the spec comes later. */
void aws_settings_option(const char *profile, const char *region);
void aws_settings_spec(const char *region);

/* Borrowed, until the end of the process. */
const char *aws_profile(void);
bool aws_profile_is_explicit(void); /* by option, not by environment */
/* Returns the value of --region; NULL if not given. */
const char *aws_region_option(void);
/* NULL and an error if there is none (EXIT_REFUSED, with the ways to set one). */
const char *aws_region(struct err **err);
/* Returns a key of a profile ("role_arn", "s3.addressing_style"); NULL if absent. The credentials
 * file beats the config file, as in botocore. The values of secret keys and tokens are not kept
 * here, only their presence: providers read them again. */
const char *aws_config_value(const char *profile, const char *key);
/* Like aws_config_value(), for the credentials file alone. */
const char *aws_shared_value(const char *profile, const char *key);
bool aws_profile_exists(const char *profile); /* in either file; offline: taken for granted */
/* Return the paths of the two files: AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, or in ~/.aws. */
const char *aws_config_path(void);
const char *aws_shared_path(void);
/* Returns the path with ~ and $NAME or ${NAME} expanded, as in those variables. The caller frees
 * it. */
char *aws_expand_path(const char *path);
/* Returns a key of [sso-session NAME] or [services NAME] ("s3.endpoint_url" for a nested key). */
const char *aws_section_value(const char *kind, const char *name, const char *key);
/* Returns the configured endpoint of a service of services.def (by its suffix, as in
 * AWS_ENDPOINT_URL_S3), without a slash at the end; NULL: AWS's own. */
const char *aws_endpoint_configured(const char *suffix);
/* Returns AWS_CA_BUNDLE, the profile's ca_bundle or REQUESTS_CA_BUNDLE; NULL: none. */
const char *aws_ca_bundle(void);
/* Returns a variable of the environment; an empty one counts as not set. */
const char *aws_env(const char *name);
/* True if the variable is "true", in any case. */
bool aws_env_true(const char *name);
/* A config file that cannot be read or parsed, a profile that does not exist and an endpoint that
 * is not a valid URL are errors for every caller that needs them: this function reports them
 * early (EXIT_REFUSED, with file and line). */
int aws_settings_check(struct err **err);

void aws_settings_forget(void); /* for tests: read everything again */

#endif
