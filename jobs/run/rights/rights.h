/*
 * The rights that a spec needs, as least-privilege policies of IAM: of whoever types (the
 * submitter), of the roles of its jobs, and of whoever asks the doctor; and who may take on the
 * roles. One table, rights.def, says which operations each does with what and when; which rights
 * that takes is in aws/policy.
 *
 * A policy is {"Version", "Statement": [{"Sid", "Effect", "Action", "Resource", "Condition"}…]}. A
 * part of an ARN that nothing names is "*". s3:ListBucket is for the prefix of a place, and for
 * requests without one: S3 asks for it that way where an object is missing.
 *
 * Of keys of KMS that encrypt buckets, secrets and parameters those are in them that the spec names
 * in aws.kms_keys.
 *
 * run/rights: policies from a plan alone. Nothing is read, asked or sent here.
 */
#ifndef STK_RUN_RIGHTS_RIGHTS_H
#define STK_RUN_RIGHTS_RIGHTS_H

#include "aws/aws.h"
#include "jobs/base/text/js.h"

/* Whose rights; DOCTOR: of what checks call. */
enum rights_role {
	RIGHTS_SUBMITTER,
	RIGHTS_JOB,
	RIGHTS_EXECUTION,
	RIGHTS_SCHEDULER,
	RIGHTS_DOCTOR,
	RIGHTS_ROLE_COUNT
};
extern const char *const rights_role_names[RIGHTS_ROLE_COUNT];

/* What the plan does not say. All borrowed; NULL: not known. */
struct rights_where {
	const char *region, *account;
	const char *partition; /* set by the room: where there is no region */
	const char *state;     /* URL of a state in a bucket; NULL: it is on a disk */
	/* Of DOCTOR: true if a check of the plan calls the operation. */
	bool (*calls)(const json_t *plan, enum aws_operation operation);
};

/* Returns the account that the spec asks for, or that a role in it is of; NULL: it names none. The
 * caller frees it. */
char *rights_account(const json_t *plan);
/* True if ARNs of policies may hold an account. */
bool rights_need_account(const json_t *plan);

/* Returns the policy of a role. EXIT_REFUSED if the spec has no such role, or the role needs no
 * right. */
int rights_policy(const json_t *plan, enum rights_role role, const struct rights_where *where,
		  json_t **ret, struct err **err);
/* Returns the statement that allows what a message of a service says is not allowed to a role of
 * the jobs, or of their machines, in one line for the caller to free: of the spec's policies the
 * one of this action on these resources, or one for a key of KMS. NULL: they have none, or an
 * explicit deny forbids it. */
char *rights_missed(const json_t *plan, const char *message);
/* Returns the trust policies: {role: policy}, by the ARN in the spec, else by the role's name
 * above. EXIT_REFUSED if jobs of the plan have no role. */
int rights_trust(const json_t *plan, json_t **ret, struct err **err);

#endif
