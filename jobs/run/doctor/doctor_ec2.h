/* Private to the room: what EC2 says of the machines and the network of jobs, which the checks of a
 * talk ask for one after the other. */
#ifndef STK_RUN_DOCTOR_DOCTOR_EC2_H
#define STK_RUN_DOCTOR_DOCTOR_EC2_H

#include "jobs/run/doctor/doctor_queue.h"

enum doctor_ec2_what {
	DOCTOR_EC2_SUBNETS,
	DOCTOR_EC2_TYPE,
	DOCTOR_EC2_OFFERINGS,
	DOCTOR_EC2_TEMPLATE,
	DOCTOR_EC2_GROUPS,
	DOCTOR_EC2_PLACEMENT,
	DOCTOR_EC2_TABLES,
	DOCTOR_EC2_ENDPOINTS,
	DOCTOR_EC2_COUNT
};

/* Returns what EC2 says, asked once for all checks of the talk: an array; empty if the jobs name
 * nothing of the kind. NULL if it is not known, which is told. Borrowed. */
const json_t *doctor_ec2_ask(struct doctor_talk *talk, enum doctor_ec2_what what);

/* The data of the compute environment's launch template; NULL: it has none, or it is not known,
 * which is told: then `ret_told` is set. Borrowed. */
const json_t *doctor_ec2_template(struct doctor_talk *talk, bool *ret_told);
/* True for jobs of AWS Batch; else they are SageMaker's. */
bool doctor_ec2_is_batch(const struct doctor_talk *talk);

#endif
