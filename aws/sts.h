/*
 * The Security Token Service: who we are, and roles taken on.
 *
 * Source: service model of botocore 1.43 (sts, 2011-06-15).
 */
#ifndef STK_AWS_STS_H
#define STK_AWS_STS_H

#include "aws/credentials.h"
#include "jobs/base/err.h"

struct sts_role {
	const char *arn;
	const char *session;     /* NULL: "stoker-" and the time */
	const char *external_id; /* NULL: none */
	const char *duration;    /* in seconds, as it stands in a profile; NULL: STS's own */
};

/* Keys of a role, with the keys of `as`. 1, or -1 with the service's own words. */
int sts_assume_role(const struct sts_role *role, const struct sigv4_identity *as,
		    struct credentials *ret, struct err **err);
/* The same with a token that somebody else gave; nothing is signed. */
int sts_assume_role_by_token(const struct sts_role *role, const char *token,
			     struct credentials *ret, struct err **err);

/* The account that requests are made in, as 12 digits; yours to free. STS itself is asked,
 * whatever the source of the credentials says. */
int sts_account(char **ret, struct err **err);
/* EXIT_REFUSED if it is not this one; nothing is asked if that is NULL. */
int sts_require_account(const char *account, struct err **err);

#endif
