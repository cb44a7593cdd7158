/*
 * What a run has to do with AWS: whether it uses it at all, in which region, and whether the
 * credentials are of the account that the spec asks for.
 */
#ifndef STK_RUN_ACCOUNT_H
#define STK_RUN_ACCOUNT_H

#include "jobs/base/json.h"

/* An s3:// URL anywhere in the plan, or a secret that AWS keeps. */
bool plan_uses_aws(const json_t *plan);

/* Before anything of a run is opened, and so before anything is submitted: its region counts
 * from now on, and a wrong account is refused (EXIT_REFUSED). Asks AWS only if the run uses
 * it and names an account; EXIT_UNREACHABLE if that cannot be asked. */
int plan_enter_aws(const json_t *plan, struct err **err);

#endif
