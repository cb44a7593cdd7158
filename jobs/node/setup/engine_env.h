/*
 * Facts that a service gives a container about its job: which of the nodes this is, the names of
 * the others, how often it was started. An engine that cannot give a rank gives a word
 * (ORDER_RANK_*), and this is where it is looked up:
 *
 *   batch      AWS_BATCH_JOB_NODE_INDEX (absent: 0, the only node) and
 *              AWS_BATCH_JOB_ATTEMPT, from 1
 *   sagemaker  /opt/ml/input/config/resourceconfig.json: the place of current_host among
 *              the hosts in the order of their numbers (algo-1, algo-2, … algo-10; in the
 *              file they are sorted as text). It numbers no restarts: a job that Spot has taken
 *              away begins again under its old name, on other machines
 *
 * The file is not stoker's own: invalid content is an error, in words.
 *
 * Sources: AWS Batch User Guide, "Job environment variables", "Multi-node parallel jobs";
 * SageMaker's sagemaker-training-toolkit, environment.py and params.py.
 */
#ifndef STK_NODE_SETUP_ENGINE_ENV_H
#define STK_NODE_SETUP_ENGINE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

#define ENGINE_ENV_SAGEMAKER_FILE "/opt/ml/input/config/resourceconfig.json"
#define ENGINE_ENV_SAGEMAKER_ROOT "/opt/ml"
#define ENGINE_ENV_HOSTS_MAX      1000

struct engine_env {
	int node;
	bool apart;      /* the node has a machine, or network, of its own */
	bool container;  /* a service's container: its image or the service sets the environment */
	int64_t restart; /* from 0; -1: not known */
	char **hosts;    /* names of all nodes in the order of their ranks; NULL: not known */
	size_t host_count;
	char *interface; /* interface between the nodes; NULL: not known */
};

/* Reads the rank, a number or a word. Errors say what is wrong with it (EXIT_DEFECT: a number that
 * the order's `nodes` has no room for; EXIT_REFUSED: what the service gives). */
int engine_env_read(const char *rank, int nodes, struct engine_env *ret, struct err **err);
void engine_env_release(struct engine_env *platform); /* for AUTO(); { 0 } is fine */

/* Does the same from SageMaker's file, or one that stands for it. */
int engine_env_sagemaker(const char *path, int nodes, struct engine_env *ret, struct err **err);

#endif
