/*
 * The SageMaker engine: an attempt is a training job of the same name, all of whose instances
 * run stoker's agent as the container's entry point, whatever the image (`launcher: node`).
 *
 * The name is the token: names are unique in account and region for ever, so a create whose
 * reply was lost is looked for by name, and one that is refused with ResourceInUse has either
 * been done before or is somebody else's: what its request says of the order tells.
 *
 * The agent comes as an input channel: S3Prefix <workspace>/agents/<digest>/, which SageMaker
 * copies to /opt/ml/input/data/stoker; the order's URL stands in the job's environment
 * (arrival.h). Nothing in a request is secret: whoever may describe the job reads it.
 *
 * How calls answer, beyond engine.h:
 *   check     makes a request and sends nothing.
 *   submit    leaves InfraCheckConfig out, once, where the service refuses it: that is the
 *             warning that comes with 0. 1 where no reply came, or one that does not know
 *             what was done. What was refused for its speed is -1 with EXIT_UNREACHABLE: it
 *             can be sent again as it is. What else is refused is looked for first: an earlier
 *             try whose reply was lost may be what uses up the quota.
 *   find      DescribeTrainingJob; "Requested resource not found" is certainly never once
 *             SAGEMAKER_SHOWN_MS have passed since it may have been sent, and EXIT_UNREACHABLE
 *             before: what a service that is out of order answers is not sent in a row.
 *   describe  asks the service each second at first, each SAGEMAKER_SLOW_MS in the end
 *             (sagemaker_inside.h); says between two answers what the last one said. A status
 *             that is not known here is shown, and counts as what the job was before. A job
 *             that SageMaker starts again (Spot, infrastructure) is QUEUED again. What may not
 *             be seen (a permission is missing) is UNSEEN, with the reason. ENDED is how the
 *             service calls it; how it ended the agents' reports say, else the exit code in
 *             FailureReason. "Stopped" has three ends, told apart in the reason. What has not
 *             been known for SAGEMAKER_STALE_MS, in the plan's region and account, and of
 *             which no agent left anything meanwhile, was deleted: ENDED, as only that can be.
 *             Where the plan names no account the answer to stop does as well.
 *   stop      StopTrainingJob, once a SAGEMAKER_STOP_MS: SIGTERM, after 120 s SIGKILL, which
 *             no grace prolongs.
 *   logs      what the agents bring to the workspace. Of a container in which no agent came
 *             up, once the job has ended: the host's streams in CloudWatch Logs, one after
 *             the other.
 *   release   machines that are kept for a next attempt (`sagemaker.warm_pool`) are given back.
 *             EXIT_BUSY until the service says that there are any, for SAGEMAKER_POOL_MS after
 *             the end at most; then it is told so all the same.
 *
 * Sources: service model of botocore 1.43 (sagemaker), its waiters-2; the SageMaker developer
 * guide on warm pools, Spot and FailureReason; facts that only a live account can show are
 * listed in the README.
 */
#ifndef STK_ENGINE_SAGEMAKER_H
#define STK_ENGINE_SAGEMAKER_H

#include "jobs/engine/engine.h"

extern const struct engine_ops sagemaker_ops;

#endif
