/* Requests, and the state of training jobs, for all parts of the SageMaker engine. It calls no
 * other part of the engine. */
#include <string.h>

#include "jobs/engine/sagemaker/sagemaker_internal.h"

int sagemaker_nodes(const struct sagemaker *sagemaker)
{
	return (int)js_int(sagemaker->plan, "nodes", 1);
}

int sagemaker_call(struct sagemaker *sagemaker, enum aws_operation operation, const json_t *body,
		   struct aws_reply *ret, struct err **err)
{
	struct aws_call what = { .operation = operation, .body_fd = -1, .json = body };

	memset(ret, 0, sizeof *ret);
	if (!sagemaker->aws && aws_open(&sagemaker->aws, err) < 0)
		return -1;
	return aws_perform(sagemaker->aws, &what, ret, err);
}

int sagemaker_call_by_name(struct sagemaker *sagemaker, enum aws_operation operation,
			   const char *name, struct aws_reply *ret, struct err **err)
{
	json_auto_t *body = json_pack("{s:s}", "TrainingJobName", name);

	return sagemaker_call(sagemaker, operation, body, ret, err);
}

struct training *sagemaker_job_of(struct sagemaker *sagemaker, const char *name)
{
	struct training *job;

	for (size_t n = 0; n < sagemaker->job_count; n++) {
		size_t i = (sagemaker->last + 1 + n) % sagemaker->job_count;

		if (strcmp(sagemaker->jobs[i]->name, name) != 0)
			continue;
		sagemaker->last = i;
		return sagemaker->jobs[i];
	}
	sagemaker->jobs =
		mem_grow(sagemaker->jobs, sagemaker->job_count + 1, sizeof(struct training *));
	job = mem_zero(1, sizeof *job);
	job->name = mem_copy(name);
	sagemaker->jobs[sagemaker->job_count++] = job;
	return job;
}
