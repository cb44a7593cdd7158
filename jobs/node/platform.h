/*
 * What a service tells a container of the job that it is part of: which of its nodes this
 * is, who the others are, how often it was started. An engine that cannot give a rank gives
 * a word (ORDER_RANK_*), and this is where it is looked up:
 *
 *   batch      AWS_BATCH_JOB_NODE_INDEX (absent: 0, the only node) and
 *              AWS_BATCH_JOB_ATTEMPT, from 1
 *   sagemaker  /opt/ml/input/config/resourceconfig.json: the place of current_host among
 *              the hosts in the order of their numbers (algo-1, algo-2, … algo-10; in the
 *              file they are sorted as text). It tells no restart: one that Spot has taken
 *              away begins anew under its old name, on other machines
 *
 * The file is somebody else's: what it must not say is an error, in words.
 *
 * Sources: AWS Batch User Guide, "Job environment variables", "Multi-node parallel jobs";
 * SageMaker's sagemaker-training-toolkit, environment.py and params.py.
 */
#ifndef STK_NODE_PLATFORM_H
#define STK_NODE_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/err.h"

#define PLATFORM_SAGEMAKER_FILE "/opt/ml/input/config/resourceconfig.json"
#define PLATFORM_SAGEMAKER_ROOT "/opt/ml"
#define PLATFORM_HOSTS_MAX      1000

struct platform {
	int node;
	bool apart;      /* this node's machine, or network, is its own */
	int64_t restart; /* from 0; -1: it tells none */
	char **hosts;    /* names of all nodes in the order of their ranks; NULL: it tells none */
	size_t host_count;
	char *interface; /* over which they see each other; NULL: it tells none */
};

/* By a number, or a word. Errors say what is wrong with it (EXIT_DEFECT: a number that the
 * order's `nodes` has no room for; EXIT_REFUSED: what the service tells). */
int platform_read(const char *rank, int nodes, struct platform *ret, struct err **err);
void platform_release(struct platform *platform); /* for AUTO(); { 0 } is fine */

/* The same from SageMaker's file, or a text that stands for it. */
int platform_sagemaker(const char *path, int nodes, struct platform *ret, struct err **err);

#endif
