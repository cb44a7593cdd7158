/*
 * Credentials of requests: the chain of providers in botocore's order, each in a file of its own
 * (credentials_<name>.c) and a row of one table (credentials_chain.c):
 *
 *   environment, assume-role (profile), web identity, SSO, shared credentials file,
 *   process, config file, container, instance metadata (IMDSv2 only)
 *
 * A provider that does not apply to this machine passes; if one applies and fails, that is an
 * error and the chain stops. Secrets live in memory that is wiped when it is freed, and never
 * appear in an error.
 *
 * Process-wide and behind a lock: however many clients there are, the services behind the
 * providers are asked once. Keys that expire are fetched again 15 minutes before (an error is
 * ignored until 10 minutes before).
 *
 * Sources: botocore 1.43 credentials.py; AWS SDKs and Tools Reference Guide.
 *
 * aws/credentials: the credentials for AWS. The providers of the default chain, each in a file of
 * its own, profiles and settings from files and environment, roles, and values from Secrets
 * Manager and Parameter Store. Nothing here signs a request, and no key is written anywhere.
 */
#ifndef STK_AWS_CREDENTIALS_CREDENTIALS_H
#define STK_AWS_CREDENTIALS_CREDENTIALS_H

#include <stdbool.h>

#include "aws/auth/sigv4.h"
#include "jobs/base/clock.h"
#include "jobs/base/err.h"

/* A snapshot of one set of keys. */
struct credentials {
	char *access_key, *secret_key, *token; /* owned, wiped; token NULL: none */
	struct utc expires;                    /* ms 0: never */
	const char *provider;                  /* the row's name, for errors */
	char *account;                         /* owned; NULL: the provider does not say */
};

void credentials_release(struct credentials *ret); /* for AUTO(); wipes */

/* Copies the keys now in force. Waits if providers must be asked, over a client of their own.
 * EXIT_REFUSED if there are none or a provider fails: names the provider, the reason and a
 * remedy. EXIT_UNREACHABLE if a service that gives keys cannot be reached, or if new keys may
 * still come (see below). */
int credentials_get(struct credentials *ret, struct err **err);

/* A source of keys for the requests of a client. The pipeline asks through it and knows no
 * provider, because some providers use the pipeline. */
struct credentials_source {
	int (*get)(struct credentials *ret, struct err **err); /* as credentials_get() */
	/* Call when a service has refused the keys in force as expired: the next call fetches them
	 * again. Returns true if they can change at all. */
	bool (*expired)(const char *access_key);
	void (*worked)(void); /* call when a service has accepted the keys */
	/* Returns true if keys have been accepted, and their provider gives others in time (a login
	 * that is renewed, a file that is rewritten). Expired keys are then not a refusal: the
	 * caller waits for new ones, as for a service that is away (EXIT_UNREACHABLE). */
	bool (*can_renew)(void);
};
/* The keys of the chain, as the process remembers them. */
extern const struct credentials_source credentials_default;

/* Drops all state, for tests and before the end of the process. */
void credentials_forget(void);

#endif
