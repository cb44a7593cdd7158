/*
 * Interface between the providers of credentials: the table's row, and the conversion of raw text
 * to credentials. Only credentials*.c and their tests include this header.
 */
#ifndef STK_AWS_CREDENTIALS_CREDENTIALS_INTERNAL_H
#define STK_AWS_CREDENTIALS_CREDENTIALS_INTERNAL_H

#include "aws/aws.h"
#include "aws/credentials/credentials.h"
#include "aws/credentials/profile.h"
#include "jobs/base/sb.h"

struct provider_request;

/* Returns 1 with the keys in `ret`; 0 if the provider does not apply to this machine, see
 * `notes`; -1 if it applies and fails (EXIT_REFUSED, or EXIT_UNREACHABLE if a service did not
 * answer). No error and no note ever shows a secret, or an excerpt of a text that may hold one. */
typedef int (*provide_fn)(const struct provider_request *request, struct credentials *ret,
			  struct err **err);

/* A request to a provider. */
struct provider_request {
	const char *profile;
	bool source; /* for a role of another profile: the environment is ignored */
	/* Profiles that lead here through source_profile, to detect cycles; NULL: none. */
	const struct provider_request *from;
	/* Asks the providers that a source_profile may use, in order: given by the chain, which
	 * providers do not call. */
	provide_fn of_profile;
	struct sb *notes; /* why nothing was found, a clause each, joined by "; " */
};

int credentials_provide_environment(const struct provider_request *request, struct credentials *ret,
				    struct err **err);
int credentials_provide_assume_role(const struct provider_request *request, struct credentials *ret,
				    struct err **err);
int credentials_provide_web_identity(const struct provider_request *request,
				     struct credentials *ret, struct err **err);
int credentials_provide_sso(const struct provider_request *request, struct credentials *ret,
			    struct err **err);
int credentials_provide_shared(const struct provider_request *request, struct credentials *ret,
			       struct err **err);
int credentials_provide_process(const struct provider_request *request, struct credentials *ret,
				struct err **err);
int credentials_provide_config(const struct provider_request *request, struct credentials *ret,
			       struct err **err);
int credentials_provide_container(const struct provider_request *request, struct credentials *ret,
				  struct err **err);
int credentials_provide_instance(const struct provider_request *request, struct credentials *ret,
				 struct err **err);

/* Asks all providers in order. EXIT_REFUSED if there are no keys. `*ret_fixed`: asking again would
 * give the same. */
int credentials_chain_get(struct credentials *ret, bool *ret_fixed, struct err **err);

/* Adds a clause to the notes; returns 0. */
int credentials_provide_nothing(const struct provider_request *request, const char *fmt, ...)
	STK_PRINTF(2, 3);

/* Copies these words. Returns 1, or -1 if one is missing or malformed or the time is invalid;
 * `what` names their source. `expires` NULL: never; empty counts as NULL. */
struct given {
	const char *access_key, *secret_key, *token, *expires, *account;
};
int credentials_from_words(const char *what, const struct given *given, struct credentials *ret,
			   struct err **err);
/* Like credentials_from_words(), from the JSON that containers, instances and processes answer
 * with; `token` is the name of the token's member. Wipes `text`. */
int credentials_from_json(const char *what, char *text, size_t len, const char *token,
			  struct credentials *ret, struct err **err);
/* Reads a static profile from one of the two files, again each time. */
int credentials_from_file(const struct provider_request *request, const char *path,
			  enum profile_file_kind kind, struct credentials *ret, struct err **err);

/* Sets short limits for a call that fetches keys or asks for the account: at most a quarter of a
 * minute if there is no answer. Such a call runs within another call's turn, where that call's
 * limits do not hold, and often while the old keys are still valid: two in a row that fail must
 * leave time to renew a driver's lease, which lasts for a minute. */
void credentials_provide_limit(struct aws_call *call);

#endif
