/* The AWS Batch engine: opening, checks, and common functions. See batch.h. */
#include "jobs/engine/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/engine/batch/batch_internal.h"

static void job_free(struct batch_job *job)
{
	batch_streams_release(job);
	batch_set_description(job, NULL);
	json_decref(job->nodes);
	free(job->prefix);
	free(job);
}

static int batch_open(const struct engine_where *where, struct engine **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	struct batch *batch;

	if (store_open(where->workspace, &store, err) < 0)
		return -1;
	batch = mem_zero(1, sizeof *batch);
	batch->engine.ops = &batch_ops;
	batch->plan = where->plan;
	batch->cache = workspace_cache_new(store);
	batch->store = TAKE(store);
	*ret = &batch->engine;
	return 0;
}

static void batch_close(struct engine *engine)
{
	struct batch *batch = (struct batch *)engine;

	if (!batch)
		return;
	for (size_t i = 0; i < batch->count; i++)
		job_free(batch->jobs[i]);
	free(batch->jobs);
	free(batch->registered);
	workspace_cache_freep(&batch->cache);
	logs_freep(&batch->logs);
	aws_freep(&batch->aws);
	store_freep(&batch->store);
	free(batch);
}

/* ---- checks ---------------------------------------------------------------------------- */

/* The environments of a queue: a new reference, or NULL. */
static json_t *environments_of(struct batch *batch, const json_t *queue, struct err **err)
{
	json_auto_t *body = batch_check_environments(queue), *reply = NULL;

	if (batch_call(batch, AWS_DESCRIBE_COMPUTE_ENVIRONMENTS, body, &reply, err) < 0)
		return NULL;
	return json_incref(json_object_get(reply, "computeEnvironments"));
}

/* Without permission to look at the environments the check passes. */
static int check_spot(struct batch *batch, const json_t *queue, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *environments = NULL;

	if (batch_nodes(batch) < 2)
		return 0;
	environments = environments_of(batch, queue, &ignored);
	return batch_check_spot(batch->plan, environments, err);
}

/* Permission to submit need not include DescribeJobQueues: without it the check passes. */
static int batch_check(struct engine *engine, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	json_auto_t *body =
		json_pack("{s:[s]}", "jobQueues", batch_spec_text(batch->plan, "batch.job_queue"));
	json_auto_t *reply = NULL;
	AUTO(err_freep) struct err *why = NULL;
	const json_t *queue;

	if (batch_check_definition(batch->plan, err) < 0)
		return -1;
	if (batch_call(batch, AWS_DESCRIBE_JOB_QUEUES, body, &reply, &why) < 0) {
		if (why->code == EXIT_REFUSED && strstr(why->message, "AccessDenied"))
			return 0;
		*err = TAKE(why);
		return -1;
	}
	queue = json_array_get(json_object_get(reply, "jobQueues"), 0);
	return batch_check_queue(batch->plan, queue, err) < 0 ? -1 : check_spot(batch, queue, err);
}

const struct engine_ops batch_ops = {
	.name = "batch",
	.machines_apart = true,
	.by_shell = "'aws batch describe-jobs --jobs', with the id of the job, names the task; "
		    "'aws ecs execute-command --interactive --command sh --task', with that task, "
		    "opens a shell where ECS Exec is on",
	.by_hand = "aws batch terminate-job --reason stopped --job-id, with the id of the job",
	.in_image = true,
	.stop_ms = 30000, /* the ECS agent's default between SIGTERM and SIGKILL */
	.open = batch_open,
	.close = batch_close,
	.check = batch_check,
	.requests = batch_requests,
	.submit = batch_submit,
	.find = batch_find,
	.describe = batch_describe,
	.stop = batch_stop,
	.logs = batch_logs,
	.log_size = batch_log_size,
	.log_written = batch_log_written,
	.report = batch_report,
	.beside = batch_beside,
};
