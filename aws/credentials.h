/*
 * Whose requests they are: the chain of providers in botocore's order, each in a file of
 * its own (credentials_<name>.c) and a row of one table:
 *
 *   environment, assume-role (profile), web identity, SSO, shared credentials file,
 *   process, config file, container, instance metadata (IMDSv2 only)
 *
 * A provider that is not meant for this machine passes; one that is meant and fails is an
 * error, the chain does not go on. Secrets live in memory that is wiped when it is freed,
 * and are in no error.
 *
 * Process-wide and behind a lock: however many clients there are, the services behind the
 * providers are asked once. What will expire is fetched anew 15 minutes before (an error
 * then is forgiven until 10 minutes before).
 *
 * Sources: botocore 1.43 credentials.py; AWS SDKs and Tools Reference Guide.
 */
#ifndef STK_AWS_CREDENTIALS_H
#define STK_AWS_CREDENTIALS_H

#include <stdbool.h>

#include "aws/sigv4.h"
#include "jobs/base/clock.h"
#include "jobs/base/err.h"

/* One snapshot of keys. */
struct credentials {
	char *access_key, *secret_key, *token; /* owned, wiped; token NULL: none */
	struct utc expires;                    /* ms 0: never */
	const char *provider;                  /* the row's name, for `doctor` and errors */
	char *account;                         /* owned; NULL: the provider does not say */
};

void credentials_release(struct credentials *ret); /* for AUTO(); wipes */

/* A copy of those in force now. What providers must ask goes over a client of their own,
 * and this waits for it. EXIT_REFUSED if there are none or a provider fails: which one,
 * why, and what to do. EXIT_UNREACHABLE if a service that gives them cannot be reached, or
 * where they may come (see below). */
int credentials_get(struct credentials *ret, struct err **err);

/* A service has refused those in force as expired: the next call fetches them anew, if
 * they can change at all (true). */
bool credentials_expired(const char *access_key);

/* A service has taken them. */
void credentials_worked(void);

/* Have they worked, and does their provider give others as time goes by (a login that is
 * renewed, a file that is written anew)? Then that they have run out is no refusal: it is
 * waited for others, as for a service that is away (EXIT_UNREACHABLE). */
bool credentials_may_come(void);

/* Forget all, for tests and before the end of the process. */
void credentials_forget(void);

#endif
