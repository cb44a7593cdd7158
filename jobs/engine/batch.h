/*
 * The AWS Batch engine: an attempt is one job, single-node or multi-node parallel.
 *
 * Definition. What is the same for every attempt of a spec (image, command, devices, memory,
 * mounts, log driver) is a job definition named after the digest of its content:
 * "stk-<16 digits>". It is looked for by name and registered only if none is ACTIVE, so that
 * the same content never makes a second revision. It says one attempt and that every end is
 * final: retries are stoker's. What differs stands in SubmitJob: the name, tags, and as
 * environment where the order is. Neither holds a secret: the agent asks for those of the spec
 * with the role of the job.
 *
 * Once. SubmitJob has no token, and a reply can be lost. The job's name is the attempt's, so
 * before each submit the queue is listed by that name; what is found is taken if its tag
 * "stoker:nonce" is that of the run (people choose the name, and others submit to the queue;
 * as long as a job of theirs lives, EXIT_SPEC), and its id put down in engine.json beneath the
 * attempt's prefix ({"v":1, "job", "id", "queue", "region"}), by which another driver needs no
 * listing. After a submit whose outcome is not known, or that another driver may have made, a
 * list without it is believed only LISTED_MS later. Should there be two of an attempt all the
 * same, the one that holds the claim is followed. Jobs vanish from the service about a week after
 * their end: then reports in the workspace still tell that there was one, and where those were
 * silent for as long, it has ended.
 *
 * Seen. DescribeJobs, at most every QUICK_MS to QUIET_MS, of the job and all its nodes
 * ("<id>#<n>"). How it ended is told first by the agents' reports in the workspace, then by
 * the exit codes of the containers, then by the service's reasons. A job that the service
 * does not know, or a service that does not answer, is UNSEEN: unknown is not ended.
 *
 *   SUBMITTED, PENDING, RUNNABLE  QUEUED; the reason says why it waits
 *   STARTING                      STARTING
 *   RUNNING                       STARTING until an agent reports, then RUNNING
 *   SUCCEEDED, FAILED             ENDED
 *
 * AWS Batch does not mind that a node dies which is not the main one: the engine then stops
 * the job ("stoker: node 2 failed …") and tells that node, unless it left when it was told to. A
 * job that its queue can never run (MISCONFIGURATION) is stopped likewise.
 *
 * Logs are those that the agents bring to the workspace. Of a node whose agent never came up
 * they are, once the job has ended, the lines of its stream in CloudWatch Logs.
 *
 * Sources: service model of botocore 1.43 (batch); AWS Batch user guide: job retries, multi-node
 * parallel jobs, jobs stuck in RUNNABLE, service limits; Neuron sample llama2 for AWS Batch.
 */
#ifndef STK_ENGINE_BATCH_H
#define STK_ENGINE_BATCH_H

#include "jobs/engine/engine.h"

extern const struct engine_ops batch_ops;

#endif
