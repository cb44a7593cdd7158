/*
 * The AWS Batch engine: an attempt is one job, single-node or multi-node parallel.
 *
 * Definition. Everything that is the same for each attempt of a spec (image, command, devices,
 * memory, mounts, log driver) is a job definition named after the digest of its content: "stk-<16
 * digits>". It is looked up by name and registered only if none is ACTIVE, so that the same content
 * never makes a second revision. It allows one attempt and makes every end final: stoker does the
 * retries. Values that differ are in SubmitJob: the name, tags, and the place of the order as
 * environment. Neither holds a secret: the agent requests those of the spec with the role of the
 * job.
 *
 * At most once. SubmitJob has no token, and a reply can be lost. The job's name is the attempt's,
 * so before each submit the queue is listed by that name. A job found is accepted if its tag
 * "stoker:nonce" is that of the run (people choose the name, and others submit to the queue; while
 * a job of theirs with that name lives, EXIT_SPEC), and its id is written to engine.json beneath
 * the attempt's prefix ({"v":1, "job", "id", "queue", "region"}), so that another driver needs no
 * listing. After a submit whose outcome is not known, or that another driver may have made, a list
 * without the job is believed only LISTED_MS later. If an attempt has two jobs all the same, the
 * one that holds the claim is followed. Jobs vanish from the service about a week after their end:
 * then reports in the workspace still show that there was one, and if those were silent for as
 * long, it has ended.
 *
 * Status. DescribeJobs, at most every QUICK_MS to QUIET_MS, of the job and all its nodes
 * ("<id>#<n>"). How it ended is taken first from the agents' reports in the workspace, then from
 * the exit codes of the containers, then from the service's reasons. A job that the service does
 * not know is UNKNOWN, and so is any job while the service does not answer: unknown is not ended.
 *
 *   SUBMITTED, PENDING, RUNNABLE  QUEUED; the reason says why it waits
 *   STARTING                      STARTING
 *   RUNNING                       STARTING until an agent reports, then RUNNING
 *   SUCCEEDED, FAILED             ENDED
 *
 * AWS Batch ignores the end of a node that is not the main one: the engine then stops the job
 * ("stoker: node 2 failed …") and reports that node, unless the node left because it was told to. A
 * job that its queue can never run (MISCONFIGURATION) is stopped likewise.
 *
 * Logs are those that the agents upload to the workspace. For a node whose agent never came up they
 * are, once the job has ended, the lines of its stream in CloudWatch Logs.
 *
 * Sources: service model of botocore 1.43 (batch); AWS Batch user guide: job retries, multi-node
 * parallel jobs, jobs stuck in RUNNABLE, service limits; Neuron sample llama2 for AWS Batch.
 */
#ifndef STK_ENGINE_BATCH_BATCH_H
#define STK_ENGINE_BATCH_BATCH_H

#include "jobs/engine/engine.h"

extern const struct engine_ops batch_ops;

/* The group in CloudWatch Logs of jobs whose definition names no other. */
#define BATCH_LOG_GROUP "/aws/batch/job"

/* ---- batch_check.c: what jobs of a plan need of the service; pure ----------------------- */

/* The job definition can be made of the plan. */
int batch_check_definition(const json_t *plan, struct err **err);
/* The queue, as DescribeJobQueues has it (NULL: there is none), takes jobs of the plan. */
int batch_check_queue(const json_t *plan, const json_t *queue, struct err **err);
/* The body of DescribeComputeEnvironments for a queue: a new reference. */
json_t *batch_check_environments(const json_t *queue);
/* Multi-node jobs are never placed on Spot: EXIT_REFUSED if all environments are. NULL: they are
 * not known, and the check passes. */
int batch_check_spot(const json_t *plan, const json_t *environments, struct err **err);
/* A machine with so much memory holds a job, beside what the kernel and the ECS agent keep. */
int batch_check_memory(const json_t *plan, int64_t mib, struct err **err);
/* Returns how many EFA interfaces a machine must have for the jobs; 0: none is used. */
int64_t batch_check_efa(const json_t *plan);

#endif
