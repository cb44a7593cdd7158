/* The AWS Batch engine: opening, checks, and common functions. See batch.h. */
#include "jobs/engine/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
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

static int check_share(const json_t *plan, const json_t *queue, struct err **err)
{
	bool fair = js_str(queue, "schedulingPolicyArn") != NULL;
	bool share = batch_spec_text(plan, "batch.share_identifier") != NULL;

	if (fair == share)
		return 0;
	err_set(err, EXIT_SPEC,
		fair ? "the job queue '%s' uses fair share, but 'batch.share_identifier' is missing"
		     : "the job queue '%s' does not use fair share: 'batch.share_identifier' does "
		       "not apply",
		js_str(queue, "jobQueueName"));
	err_hint(err,
		 fair ? "set the share of the job: batch: {share_identifier: …}" : "remove it");
	return err_field(err, "batch.share_identifier");
}

static const char *or_nothing(const char *text)
{
	return text ? text : "";
}

static int check_queue(const json_t *plan, const json_t *queue, struct err **err)
{
	const char *name = batch_spec_text(plan, "batch.job_queue");

	if (!queue) {
		err_set(err, EXIT_REFUSED, "job queue '%s' not found in this account and region",
			name);
		err_hint(err, "correct 'batch.job_queue', or the region and the account");
		return err_field(err, "batch.job_queue");
	}
	if (!js_is(queue, "state", "ENABLED") || js_is(queue, "status", "INVALID")) {
		const char *why = js_str(queue, "statusReason");

		err_set(err, EXIT_REFUSED, "the job queue '%s' takes no jobs: state %s, %s%s%s",
			name, or_nothing(js_str(queue, "state")),
			or_nothing(js_str(queue, "status")), why ? ": " : "", or_nothing(why));
		return err_hint(err, "enable the queue, or name another one in 'batch.job_queue'");
	}
	return check_share(plan, queue, err);
}

/* Multi-node jobs are never placed on Spot: 1 if all environments of the queue are Spot, 0 if not,
 * -1. */
static int all_spot(struct batch *batch, const json_t *queue, struct err **err)
{
	json_auto_t *body = json_object(), *reply = NULL;
	json_t *names = json_array(), *row;
	size_t i, spot = 0, count;

	json_array_foreach (json_object_get(queue, "computeEnvironmentOrder"), i, row)
		json_array_append(names, json_object_get(row, "computeEnvironment"));
	js_put(body, "computeEnvironments", names);
	if (batch_call(batch, AWS_DESCRIBE_COMPUTE_ENVIRONMENTS, body, &reply, err) < 0)
		return -1;
	count = json_array_size(json_object_get(reply, "computeEnvironments"));
	json_array_foreach (json_object_get(reply, "computeEnvironments"), i, row) {
		const char *type = js_str(json_object_get(row, "computeResources"), "type");

		spot += type && text_starts(type, "SPOT");
	}
	return count > 0 && spot == count;
}

static int check_spot(struct batch *batch, const json_t *queue, struct err **err)
{
	AUTO(err_freep) struct err *ignored = NULL;

	if (batch_nodes(batch) < 2 || all_spot(batch, queue, &ignored) < 1)
		return 0;
	err_set(err, EXIT_REFUSED,
		"the job queue '%s' has Spot machines only, on which AWS Batch starts no job of "
		"several nodes",
		batch_spec_text(batch->plan, "batch.job_queue"));
	err_hint(err, "name a queue with On-Demand or reserved machines");
	return err_field(err, "batch.job_queue");
}

/* Permission to submit need not include DescribeJobQueues: without it the check passes. */
static int batch_check(struct engine *engine, struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	json_auto_t *body =
		json_pack("{s:[s]}", "jobQueues", batch_spec_text(batch->plan, "batch.job_queue"));
	json_auto_t *definition = NULL, *reply = NULL;
	AUTO(err_freep) struct err *why = NULL;
	const json_t *queue;

	if (batch_definition(batch->plan, batch_nodes(batch), &definition, err) < 0)
		return -1;
	if (batch_call(batch, AWS_DESCRIBE_JOB_QUEUES, body, &reply, &why) < 0) {
		if (why->code == EXIT_REFUSED && strstr(why->message, "AccessDenied"))
			return 0;
		*err = TAKE(why);
		return -1;
	}
	queue = json_array_get(json_object_get(reply, "jobQueues"), 0);
	return check_queue(batch->plan, queue, err) < 0 ? -1 : check_spot(batch, queue, err);
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
