/*
 * Script mode: the part of a CreateTrainingJob that SageMaker's own containers read, as the
 * Estimators of the SageMaker Python SDK send it (`sagemaker.launcher: toolkit`). Such a job runs
 * no program of stoker: the container's sagemaker-training toolkit fetches the source, turns
 * hyperparameters into arguments and starts torchrun, with neuron_parallel_compile in front of it
 * if RUN_NEURON_PARALLEL_COMPILE is "1".
 *
 * Pure: no I/O, no clock.
 *
 * `sagemaker.distribution` says how the toolkit starts the program: by torchrun; by mpirun and
 * smddprun (where the image has it) from the first host (pytorchddp); or as it is, once on each
 * host (none).
 *
 * Sources: sagemaker 2.257.7 (estimator.py, pytorch/estimator.py, fw_utils.py; its requests are
 * kept in tests/aws/data), sagemaker-training 4.8.1 and 5.1.0 (environment.py, mapping.py,
 * torch_distributed.py, smdataparallel.py, process.py, runner.py, params.py),
 * sagemaker-pytorch-training 3.0.0 (training.py, which chooses among them); limits: service model
 * sagemaker:CreateTrainingJobRequest.
 */
#ifndef STK_ENGINE_SAGEMAKER_SAGEMAKER_TOOLKIT_H
#define STK_ENGINE_SAGEMAKER_SAGEMAKER_TOOLKIT_H

#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"

#define TOOLKIT_VALUE_MAX  2500 /* bytes of a hyperparameter's value */
#define TOOLKIT_VALUES_MAX 100
#define TOOLKIT_ENV_MAX    512 /* bytes of a variable's value */

/* Input of script mode. All borrowed. */
struct toolkit_input {
	const json_t *plan; /* jobs/run/plan/plan.h */
	const char *phase;
	/* Order of this attempt (jobs/store/order.h), for its variables. NULL: the plan's own. */
	const json_t *order;
	const char *job; /* name of the training job */
	const char *region;
};

/* Puts HyperParameters and Environment into a request that already has its ResourceConfig.
 * EXIT_SPEC for what script mode cannot do: a command that is not a Python program, variables that
 * only an agent can fill in, secrets, more or longer values than the service takes. */
int sagemaker_toolkit_put(json_t *request, const struct toolkit_input *input, struct err **err);

/* Returns the command line that the toolkit builds on each host of a job: a new array. "<cores>"
 * stands for the number that neuron-ls shows there, if no catalogue has it; "<rank>" for the host's
 * rank, "<interface>" for its network interface; "<gethostname>" for a library of the toolkit's
 * own. With pytorchddp the line is that of the first host, and the others wait for it. NULL: the
 * toolkit cannot run the command. */
json_t *sagemaker_toolkit_command(const json_t *plan, const char *phase);

#endif
