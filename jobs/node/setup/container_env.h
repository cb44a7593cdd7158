/*
 * Environment that a command inherits in a container of AWS Batch or SageMaker. It is the
 * container's own: the image's ENV (LD_LIBRARY_PATH, PATH, HF_HOME…), what its entry point has
 * added, and what the service tells it (AWS_CONTAINER_CREDENTIALS_*, AWS_REGION, ECS_*,
 * AWS_BATCH_*, SM_*), so that any program there finds what it finds without stoker. The command has
 * the keys of the job's role as the agent has them.
 *
 * Three things are changed, all else stays as it is:
 *
 *   ours       STOKER_* and the variables that are OURS in jobs/base/variable.def are left out:
 *              some are for the agent's own start, and the order says what the others are.
 *   steering   A variable that steers the compiler of the order's kind, or what is traced for
 *              it (compile_kind_steers()), reaches the command only from where the graph key
 *              has it: from the spec's env, or from the ENV of the image, since the key has the
 *              image's digest. The machine, a compute environment or a job definition could set
 *              one too, and then graphs would be compiled, or looked for, that no key tells apart.
 *              In a container all of them look alike, so the order says which the image sets
 *              ("image_env", as its registry tells it). A variable that the image sets has the
 *              image's value. Any other is withheld, also if the image's ENV is not known. The
 *              report names each that was withheld or set back ("environment").
 *   region     AWS_DEFAULT_REGION is AWS_REGION, if that alone is set: boto3 reads no other.
 *
 * On every other engine nothing is inherited but the variables that are PASSED.
 */
#ifndef STK_NODE_SETUP_CONTAINER_ENV_H
#define STK_NODE_SETUP_CONTAINER_ENV_H

#include "jobs/base/text/js.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/store/node_report.h"

/* Puts what the command inherits into `env`. */
void container_env_put(struct command_env *env, const struct agent_config *config);

/* Sets the report's "environment"; not if no variable that steers was withheld or set back. */
void container_env_report(const struct agent_config *config, struct node_report *said);

#endif
