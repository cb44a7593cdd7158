/*
 * Script mode: the part of a CreateTrainingJob that SageMaker's own containers go by, as the
 * Estimators of the SageMaker Python SDK send it (`sagemaker.launcher: toolkit`). None of our
 * programs is in such a job: the container's sagemaker-training toolkit fetches the source,
 * turns hyperparameters into arguments and starts torchrun, with neuron_parallel_compile in
 * front of it where RUN_NEURON_PARALLEL_COMPILE is "1".
 *
 * Pure: no I/O, no clock.
 *
 * Sources: sagemaker 2.257.7 (estimator.py, fw_utils.py; what it sends is kept in
 * tests/aws/data), sagemaker-training 4.8.1 (environment.py, mapping.py, torch_distributed.py,
 * process.py, params.py); limits: service model sagemaker:CreateTrainingJobRequest.
 */
#ifndef STK_ENGINE_SAGEMAKER_TOOLKIT_H
#define STK_ENGINE_SAGEMAKER_TOOLKIT_H

#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/base/sb.h"

#define TOOLKIT_VALUE_MAX  2500 /* bytes of a hyperparameter's value */
#define TOOLKIT_VALUES_MAX 100
#define TOOLKIT_ENV_MAX    512 /* bytes of a variable's value */

/* A value as Python's json.dumps() prints it: that is what a hyperparameter is in a request,
 * and what the toolkit reads it back from. */
void toolkit_dumps(struct sb *out, const json_t *value);

/* What of a plan becomes script mode. All borrowed. */
struct toolkit_ask {
	const json_t *plan; /* jobs/run/plan.h */
	const char *phase;
	/* Of this attempt (jobs/store/order.h): its variables. NULL: the plan's own. */
	const json_t *order;
	const char *job; /* name of the training job */
	const char *region;
};

/* Puts HyperParameters and Environment into a request whose ResourceConfig is there already.
 * EXIT_SPEC for what script mode cannot do: a command that is no Python program, variables
 * that only an agent can fill in, secrets, more or longer values than the service takes. */
int toolkit_put(json_t *request, const struct toolkit_ask *ask, struct err **err);

/* The Python program of a command ([python3, train.py], [torchrun, train.py]), borrowed;
 * NULL: it is none that the toolkit can run. */
const char *toolkit_program(const json_t *command);

#endif
