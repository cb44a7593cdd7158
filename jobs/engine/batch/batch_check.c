/* What jobs need of AWS Batch, held against its replies, in the same words for a run that begins
 * and for whoever looks before: see batch.h. Nothing is sent from here. */
#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch_internal.h"

int batch_check_definition(const json_t *plan, struct err **err)
{
	json_auto_t *definition = NULL;

	return batch_definition(plan, (int)js_int(plan, "nodes", 1), &definition, err);
}

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

int batch_check_queue(const json_t *plan, const json_t *queue, struct err **err)
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
		err_hint(err, "enable the queue, or name another one in 'batch.job_queue'");
		return err_field(err, "batch.job_queue");
	}
	return check_share(plan, queue, err);
}

json_t *batch_check_environments(const json_t *queue)
{
	json_t *names = json_array(), *row;
	size_t i;

	json_array_foreach (json_object_get(queue, "computeEnvironmentOrder"), i, row)
		json_array_append(names, json_object_get(row, "computeEnvironment"));
	return json_pack("{s:o}", "computeEnvironments", names);
}

int batch_check_spot(const json_t *plan, const json_t *environments, struct err **err)
{
	size_t i, spot = 0, count = json_array_size(environments);
	const json_t *row;

	json_array_foreach (environments, i, row) {
		const char *type = js_str(json_object_get(row, "computeResources"), "type");

		spot += type && text_starts(type, "SPOT");
	}
	if (js_int(plan, "nodes", 1) < 2 || count == 0 || spot < count)
		return 0;
	err_set(err, EXIT_REFUSED,
		"the job queue '%s' has Spot machines only, on which AWS Batch starts no job of "
		"several nodes",
		batch_spec_text(plan, "batch.job_queue"));
	err_hint(err, "name a queue with On-Demand or reserved machines");
	return err_field(err, "batch.job_queue");
}
