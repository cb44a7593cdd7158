/* Private to the room: a role that jobs take on, and what can be found out about it. */
#ifndef STK_RUN_DOCTOR_DOCTOR_ROLE_H
#define STK_RUN_DOCTOR_DOCTOR_ROLE_H

#include "jobs/run/doctor/doctor_internal.h"

#define DOCTOR_LOOK_SIMULATE "iam:SimulatePrincipalPolicy"

/* ---- doctor_simulate.c: what IAM says that somebody may do, or not ---------------------- */

struct doctor_simulation {
	struct aws **aws;
	const char *who; /* ARN of a user or role */
	json_t *missing; /* statements of which something is not allowed; owned */
	struct sb words; /* what of them is not, as far as there is room */
	size_t asked, denied;
	bool is_forbidden; /* by an explicit deny */
};
void doctor_simulation_release(struct doctor_simulation *simulation); /* for AUTO() */

/* Asks for all that the statements of a policy allow. -1: nobody knows. */
int doctor_simulate(struct doctor_simulation *simulation, const json_t *policy, struct err **err);

/* ---- doctor_take.c: the role itself, where nobody may simulate --------------------------- */

/* Takes the role on, and lists the places of the plan with it. Tells what comes of it: as the last
 * resort the policy that the role must have. `why` is the refusal of the simulation. */
void doctor_take(struct doctor_talk *talk, const json_t *policy, const struct err *why);

#endif
