/*
 * aws/policy: rights that requests need, as statements of IAM policies, made from operations.def
 * and from the names that a request, or a spec, speaks of. Pure: nothing is read, asked or sent
 * here.
 *
 * A statement is {Sid, Effect, Action, Resource, Condition}: one action or resource is a text,
 * several are a list, and Condition is there if an action has one: s3:prefix for s3:ListBucket of a
 * listing, iam:PassedToService for iam:PassRole.
 */
#ifndef STK_AWS_POLICY_POLICY_H
#define STK_AWS_POLICY_POLICY_H

#include "aws/operation.h"
#include "jobs/base/text/js.h"

enum policy_when {
	POLICY_ALWAYS,
	POLICY_IF_MATCH,
	POLICY_TAGGED,
	POLICY_NAMED,
	POLICY_MISSING,
	POLICY_ENCRYPTED,
};

struct policy_right {
	enum aws_operation operation;
	const char *action;
	enum policy_resource resource;
	enum policy_when when; /* what a request must have to need it: see further.def */
};

enum policy_name {
#define NAME(id, ...) POLICY_NAME_##id,
#include "aws/policy/names.def"
#undef NAME
	POLICY_NAME_COUNT
};

/* Names, all of them borrowed; NULL: any. */
struct policy_names {
	const char *partition, *region, *account;
	const char *of[POLICY_NAME_COUNT];
	const char *key_alias; /* "alias/…", of a KMS key that has no other name */
	/* KEY and PREFIX are the beginnings of keys, and of objects that may be missing; SCHEDULE
	 * and DEFINITION are beginnings too. */
	bool below;
};

#define POLICY_RIGHTS_MAX 8 /* of one operation */

/* Writes the rights of an operation; the one in its row is the first. Returns their number, 0 if
 * nobody has to be allowed. */
size_t policy_rights(enum aws_operation operation, struct policy_right ret[POLICY_RIGHTS_MAX]);
/* True if the names say which resource of this type is meant. */
bool policy_is_named(enum policy_resource resource, const struct policy_names *names);
/* Returns the type of a resource as a word of a Sid: "TrainingJob"; "" for ANY. The caller frees
 * it. */
char *policy_resource_word(enum policy_resource resource);
/* True if both can stand in one statement: they have the same condition, or none. */
bool policy_fits(const struct policy_right *a, const struct policy_right *b,
		 const struct policy_names *names);
/* Returns a statement that allows rights that fit. `sid` NULL: made from action and digest, so that
 * statements with different contents have different ones. */
json_t *policy_statement(const char *sid, const struct policy_right *rights, size_t count,
			 const struct policy_names *names);
/* Gives a statement a Sid of its first action and its digest: "S3PutObject1a2b3c". */
void policy_put_sid(json_t *statement);

/* --- policy_cure.c --- */

/* Where a request was sent, and what it was sent for. */
struct policy_place {
	const char *region;
	const char *bucket,
		*prefix; /* requests of this kind are for all keys that begin so; or NULL */
};

/* Returns the smallest statement that allows the request, in one line for the caller to free: of
 * the action that the service's message names if the request needs it, else of all that it
 * certainly needs and that fits with the first. `bare`: the reply has neither code nor message.
 * NULL: no statement allows it, because an explicit deny forbids it, or because nobody has to be
 * allowed. */
char *policy_cure(const struct aws_call *call, const struct policy_place *place,
		  const char *message, bool bare);

/* Returns the text with each %XX as the byte that it stands for: URLs and IAM's documents are
 * written so. The caller frees it. */
char *policy_unescape(const char *text);

/* Finds the action that a service's message says is not allowed, and the resource, which may be
 * NULL. False: the message names none, or an explicit deny forbids it. The caller frees both. */
bool policy_said(const char *message, char **ret_action, char **ret_resource);

#endif
