/*
 * A run's use of AWS: whether it uses AWS at all, in which region, and whether the credentials are
 * of the account that the spec asks for.
 */
#ifndef STK_RUN_PLAN_AWS_ACCOUNT_H
#define STK_RUN_PLAN_AWS_ACCOUNT_H

#include "jobs/base/text/js.h"

/* True if the plan has an s3:// URL anywhere, or a secret kept by AWS. */
bool aws_account_is_needed(const json_t *plan);

/* True if the engine sends its jobs to a region of AWS. */
bool aws_account_needs_region(const json_t *plan);

/* Puts the region of a run into force: the one in force when the run was created, else the spec's.
 * EXIT_REFUSED if --region names another one than the former. Makes no request. */
int aws_account_enter_region(const json_t *plan, struct err **err);

/* Called before anything of a run is opened, and so before anything is submitted: puts its region
 * into force, and refuses a wrong account (EXIT_REFUSED). Asks AWS only if the run uses it, and
 * names an account or was created in a known one. A failed request is an error (EXIT_UNREACHABLE,
 * or what STS says) only if the spec names the account. */
int aws_account_enter(const json_t *plan, struct err **err);

/* Writes the region and account in force into the plan (plan.h, "aws") of a run that is about to be
 * created, if its engine sends its jobs to AWS. A job is known by its name in these two alone: a
 * driver with others would never find it. */
int aws_account_pin(json_t *plan, struct err **err);

#endif
