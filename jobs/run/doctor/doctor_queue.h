/* Private to the room: a job queue of AWS Batch and the compute environments behind it, which
 * several talks ask for. */
#ifndef STK_RUN_DOCTOR_DOCTOR_QUEUE_H
#define STK_RUN_DOCTOR_DOCTOR_QUEUE_H

#include "jobs/run/doctor/doctor_internal.h"

#define DOCTOR_LOOK_QUEUES       "batch:DescribeJobQueues"
#define DOCTOR_LOOK_ENVIRONMENTS "batch:DescribeComputeEnvironments"

struct doctor_queue {
	struct aws *aws;
	struct err *why, *environments_why; /* NULL: answered */
	json_t *queue;                      /* NULL: there is none */
	json_t *environments;               /* an array; NULL: not known */
};

struct doctor_queue *doctor_queue_ask(const char *name);
void doctor_queue_freep(struct doctor_queue **queue);
/* Returns the environments; NULL if they are not known, which is told. Borrowed. */
const json_t *doctor_queue_environments(struct doctor_talk *talk, const struct doctor_queue *queue);
/* Returns the environment on which the jobs of a plan will run, as far as that is known: the first
 * that can be used and holds their machines, else the first. Borrowed; NULL: there is none. */
const json_t *doctor_queue_chosen(const json_t *environments, const json_t *plan);

/* Of an environment, as DescribeComputeEnvironments has it. Borrowed. */
const char *doctor_queue_name(const json_t *environment);
const json_t *doctor_queue_machines(const json_t *environment);
bool doctor_queue_is_usable(const json_t *environment);
/* True if it starts machines of the type: it names the type or its family, or lets AWS Batch
 * choose, which takes none with accelerators (user guide, instanceTypes). */
bool doctor_queue_holds(const json_t *environment, const json_t *plan, const char *type);

#endif
