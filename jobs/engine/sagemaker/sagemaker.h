/*
 * The SageMaker engine: an attempt is a training job of the same name; all its instances run
 * stoker's agent as the container's entry point, whatever the image (`launcher: node`).
 *
 * The name is the token: names are unique in account and region for ever. So a create whose reply
 * was lost is looked up by name. If a create is refused with ResourceInUse, it was either done
 * before or the name belongs to somebody else's job: the job's output path, which holds workspace
 * and attempt, tells which.
 *
 * The agent comes as an input channel: S3Prefix <workspace>/agents/<digest>/, which SageMaker
 * copies to /opt/ml/input/data/stoker; the order's URL is in the job's environment
 * (agent_delivery.h). Nothing in a request is secret: everybody with the right to describe the job
 * can read it.
 *
 * Behaviour of the calls, beyond engine.h:
 *   check     builds a request and sends nothing.
 *   submit    leaves InfraCheckConfig out, once, if the service refuses it: that is the
 *             warning that comes with 0. 1 if no reply came, or one that leaves the outcome
 *             open. A request refused for its rate is -1 with EXIT_BUSY: it can be sent again
 *             unchanged. After any other refusal the job is looked up first: an earlier try
 *             with a lost reply may be what uses up the quota.
 *   find      DescribeTrainingJob; "Requested resource not found" means never submitted once
 *             SAGEMAKER_SHOWN_MS have passed since it may have been sent, and EXIT_UNREACHABLE
 *             before. While the service is out of order, nothing is sent in quick succession.
 *   describe  asks the service each second at first, each SAGEMAKER_SLOW_MS in the end
 *             (sagemaker_internal.h); in between it repeats the last answer. A status
 *             that is not known here is shown, and the job counts as STARTING, or as RUNNING
 *             once its training has begun. A job that SageMaker starts again (Spot,
 *             infrastructure) is QUEUED again. A job that may not be seen (a permission is
 *             missing) is UNKNOWN, with the reason. ENDED is decided by the service; how it
 *             ended comes from the agents' reports, else from the exit code in FailureReason.
 *             "Stopped" has three causes, told apart in the reason. A job that has not been
 *             known for SAGEMAKER_STALE_MS, in the plan's region and account, while no agent
 *             wrote anything, was deleted: ENDED, as only an ended job can be deleted. If the
 *             plan names no account, the answer to stop does as well.
 *   stop      StopTrainingJob, once per SAGEMAKER_STOP_MS: SIGTERM, after 120 s SIGKILL, which
 *             no grace prolongs.
 *   logs      the logs that the agents upload to the workspace. For a container in which no
 *             agent came up, once the job has ended: the host's streams in CloudWatch Logs, one
 *             after the other.
 *   release   gives back machines that are kept for a next attempt (`sagemaker.warm_pool`).
 *             EXIT_BUSY until the service shows that there are any, for SAGEMAKER_POOL_MS after
 *             the end at most; then the request is sent in any case.
 *
 * Sources: service model of botocore 1.43 (sagemaker), its waiters-2; the SageMaker developer guide
 * on warm pools, Spot and FailureReason; facts that only a live account can show are in
 * docs/aws.md.
 */
#ifndef STK_ENGINE_SAGEMAKER_SAGEMAKER_H
#define STK_ENGINE_SAGEMAKER_SAGEMAKER_H

#include "jobs/engine/engine.h"

extern const struct engine_ops sagemaker_ops;

#define SAGEMAKER_LOG_GROUP "/aws/sagemaker/TrainingJobs" /* of CloudWatch Logs */

/* Returns the seconds that a job of the plan may run, as its request says. */
int64_t sagemaker_runtime_s(const json_t *plan);

#endif
