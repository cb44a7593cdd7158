/* Private to the room: the things of a spec that rights are on. */
#ifndef STK_RUN_RIGHTS_RIGHTS_INTERNAL_H
#define STK_RUN_RIGHTS_RIGHTS_INTERNAL_H

#include "aws/policy/policy.h"
#include "jobs/run/rights/rights.h"

/* Kinds of things, places that are written to first; those of an engine are there with it alone. */
enum rights_thing {
	RIGHTS_STATE,
	RIGHTS_WORKSPACE,
	RIGHTS_CACHE,
	RIGHTS_CHECKPOINTS,
	RIGHTS_MODELS,
	RIGHTS_RESULTS,
	RIGHTS_PRELOADED, /* caches of others */
	RIGHTS_DATA,      /* of the training, the evaluation and the inference */
	RIGHTS_PARENTS,
	RIGHTS_CHANNELS, /* of SageMaker */
	RIGHTS_SECRETS,
	RIGHTS_PARAMETERS,
	RIGHTS_IMAGES,     /* in ECR, whose digest is asked for: those of commands */
	RIGHTS_PULLED,     /* in ECR, that machines pull */
	RIGHTS_BATCH_JOBS, /* of AWS Batch: a queue and the definitions */
	RIGHTS_DEFINITIONS,
	RIGHTS_BATCH_LOGS,
	RIGHTS_TRAINING_JOBS, /* of SageMaker */
	RIGHTS_TRAINING_LOGS,
	RIGHTS_KEYS, /* of KMS, of buckets, secrets and parameters */
	RIGHTS_VOLUME_KEY,
	RIGHTS_OUTPUT_KEY,
	RIGHTS_NETWORK, /* of SageMaker's machines */
	RIGHTS_SUBNETS,
	RIGHTS_SECURITY_GROUPS,
	RIGHTS_SCHEDULES, /* of EventBridge */
	RIGHTS_DRIVER_JOBS,
	RIGHTS_ROLES, /* of jobs */
	RIGHTS_THING_COUNT
};

#define RIGHTS_TEXTS 6

/* One thing, by the names that ARNs have of it. */
struct rights_one {
	struct policy_names names; /* of texts in `own`, of the plan, or of what lives longer */
	char *own[RIGHTS_TEXTS];
	bool is_tagged; /* it is made with tags */
	bool is_file;   /* in a bucket: it is read, and nothing is listed */
};

struct rights_list {
	struct rights_one *ones;
	size_t count;
};
void rights_list_release(struct rights_list *list); /* for AUTO() */

/* Appends the things of a kind. */
void rights_things(const json_t *plan, const struct rights_where *where, enum rights_thing thing,
		   struct rights_list *ret);

#endif
