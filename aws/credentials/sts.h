/*
 * The Security Token Service: the account, and assumed roles.
 *
 * Source: service model of botocore 1.43 (sts, 2011-06-15).
 */
#ifndef STK_AWS_CREDENTIALS_STS_H
#define STK_AWS_CREDENTIALS_STS_H

#include "aws/credentials/credentials.h"
#include "jobs/base/err.h"

struct sts_role {
	const char *arn;
	const char *session;     /* NULL: "stoker-" and the time */
	const char *external_id; /* NULL: none */
	const char *duration;    /* in seconds, as it stands in a profile; NULL: STS's own */
};

/* Gets keys of a role, with the keys of `as`. Returns 1, or -1 with the service's message. */
int sts_assume_role(const struct sts_role *role, const struct sigv4_identity *as,
		    struct credentials *ret, struct err **err);
/* Like sts_assume_role(), with a token from another party; nothing is signed. */
int sts_assume_role_by_token(const struct sts_role *role, const char *token,
			     struct credentials *ret, struct err **err);

/* --- sts_account.c: above the chain of providers, as sts.c is below it --- */

/* Returns the account that requests are made in, as 12 digits; the caller frees it. STS itself is
 * asked, whatever the source of the credentials says. */
int sts_account(char **ret, struct err **err);
/* The same, and whose the credentials are, NULL if STS does not say; the caller frees both. */
int sts_identity(char **ret_account, char **ret_arn, struct err **err);
/* EXIT_REFUSED if `found`, that of the credentials, is not `account`. */
int sts_check_account(const char *found, const char *account, struct err **err);
/* The same of whoever asks; if that is NULL, nothing is asked. */
int sts_require_account(const char *account, struct err **err);

/* --- between the two --- */

struct aws;
struct aws_call;

/* Fields to read from a reply. */
struct sts_answer {
	const char *root; /* "AssumeRoleResponse/AssumeRoleResult/" */
	char *access_key, *secret_key, *token, *expires, *account, *arn; /* owned, wiped */
};

void sts_answer_release(struct sts_answer *answer); /* for AUTO() */

/* Opens a client: aws_open(), or aws_open_keyless() for providers of the chain. */
typedef int (*sts_open_fn)(struct aws **ret, struct err **err);

/* Performs a call of STS over a client of its own, within short limits. */
int sts_call(sts_open_fn open_client, struct aws_call *call, struct sts_answer *answer,
	     struct err **err);

#endif
