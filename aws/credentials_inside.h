/*
 * What the providers of credentials share: the table's row, and how raw words become
 * credentials. Nobody but credentials*.c and their tests includes this.
 */
#ifndef STK_AWS_CREDENTIALS_INSIDE_H
#define STK_AWS_CREDENTIALS_INSIDE_H

#include "aws/aws.h"
#include "aws/credentials.h"
#include "aws/profile.h"
#include "jobs/base/sb.h"

/* What a provider is asked. */
struct ask {
	const char *profile;
	bool source; /* for a role of another profile: the environment does not count */
	/* Profiles that lead here through source_profile, to find circles; NULL: none. */
	const struct ask *from;
	struct sb *notes; /* why nothing was found, a clause each, joined by "; " */
};

/* 1: `ret` holds them; 0: not meant for this machine, see `notes`; -1: it is, and fails
 * (EXIT_REFUSED, or EXIT_UNREACHABLE if a service did not answer). No error and no note
 * ever shows a secret, or an excerpt of a text that may hold one. */
typedef int (*provide_fn)(const struct ask *ask, struct credentials *ret, struct err **err);

int provide_environment(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_assume_role(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_web_identity(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_sso(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_shared(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_process(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_config(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_container(const struct ask *ask, struct credentials *ret, struct err **err);
int provide_instance(const struct ask *ask, struct credentials *ret, struct err **err);

/* The providers of one profile, in order: what a source_profile may have. */
int provide_profile(const struct ask *ask, struct credentials *ret, struct err **err);

/* Add a clause to the notes; returns 0. */
int provide_nothing(const struct ask *ask, const char *fmt, ...) STK_PRINTF(2, 3);

/* Copy these words. 1, or -1: one is missing or cannot be one, or the time is none; `what`
 * names where they came from. `expires` NULL: never; empty counts as NULL. */
struct given {
	const char *access_key, *secret_key, *token, *expires, *account;
};
int credentials_take(const char *what, const struct given *given, struct credentials *ret,
		     struct err **err);
/* The same from the JSON that containers, instances and processes answer with: `token` is
 * the token's name there. `text` is wiped. */
int credentials_take_json(const char *what, char *text, size_t len, const char *token,
			  struct credentials *ret, struct err **err);
/* A static profile of one of the two files, read anew. */
int credentials_take_static(const struct ask *ask, const char *path, enum profile_file_kind kind,
			    struct credentials *ret, struct err **err);

/* "2026-11-22T12:00:00Z", with or without a fraction, with an offset instead of the Z, or
 * with "UTC", as older tools wrote it. */
bool credentials_time(const char *text, struct utc *ret);

/* Short limits for a call that fetches keys or asks whose they are: at most a quarter of a minute
 * if there is no answer. It is waited for within another call's turn, where that call's limits do
 * not hold, and often while the old keys are still good: two that fail one after the other must
 * leave time to renew a driver's lease, which lasts for a minute. */
void provide_limit(struct aws_call *call);

/* Wait on this thread: between two tries of something. */
int provide_pause(int64_t ms, struct err **err);

#endif
