/*
 * What a run has to do with AWS: whether it uses it at all, in which region, and whether the
 * credentials are of the account that the spec asks for.
 */
#ifndef STK_RUN_ACCOUNT_H
#define STK_RUN_ACCOUNT_H

#include "jobs/base/json.h"

/* An s3:// URL anywhere in the plan, or a secret that AWS keeps. */
bool plan_uses_aws(const json_t *plan);

/* The region of a run counts from now on: the one that was in force when it was created, else
 * the spec's. EXIT_REFUSED: --region names another one than that. Asks nobody. */
int plan_enter_region(const json_t *plan, struct err **err);

/* Before anything of a run is opened, and so before anything is submitted: its region counts
 * from now on, and a wrong account is refused (EXIT_REFUSED). Asks AWS only if the run uses
 * it, and names an account or was created in a known one. What cannot be asked is an error
 * (EXIT_UNREACHABLE, or what STS says) only where the spec names the account. */
int plan_enter_aws(const json_t *plan, struct err **err);

/* Of a run that is about to be created, and whose engine sends its jobs to AWS: write region
 * and account that are in force into its plan (plan.h, "aws"). A job is known by its name in
 * these two alone: to a driver with others it would never have been there. */
int plan_pin_aws(json_t *plan, struct err **err);

#endif
