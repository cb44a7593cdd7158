/* A job queue and its compute environments: see doctor_queue.h. */
#include "jobs/run/doctor/doctor_queue.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch.h"

void doctor_queue_freep(struct doctor_queue **queue)
{
	if (!*queue)
		return;
	aws_freep(&(*queue)->aws);
	err_free((*queue)->why);
	err_free((*queue)->environments_why);
	json_decref((*queue)->queue);
	json_decref((*queue)->environments);
	free(TAKE(*queue));
}

struct doctor_queue *doctor_queue_ask(const char *name)
{
	struct doctor_queue *ret = mem_zero(1, sizeof *ret);
	json_auto_t *body = json_pack("{s:[s]}", "jobQueues", name), *queues = NULL, *wanted = NULL;

	queues = doctor_ask(&ret->aws, AWS_DESCRIBE_JOB_QUEUES, body, "jobQueues", &ret->why);
	ret->queue = json_incref(json_array_get(queues, 0));
	if (!ret->queue)
		return ret;
	wanted = batch_check_environments(ret->queue);
	ret->environments = doctor_ask(&ret->aws, AWS_DESCRIBE_COMPUTE_ENVIRONMENTS, wanted,
				       "computeEnvironments", &ret->environments_why);
	return ret;
}

const json_t *doctor_queue_environments(struct doctor_talk *talk, const struct doctor_queue *queue)
{
	if (queue->environments)
		return queue->environments;
	if (queue->environments_why)
		doctor_finding_of(talk, queue->environments_why, DOCTOR_LOOK_ENVIRONMENTS);
	else
		doctor_finding_untried(talk, "the queue is not known");
	return NULL;
}

const char *doctor_queue_name(const json_t *environment)
{
	const char *name = js_str(environment, "computeEnvironmentName");

	return name ? name : "without a name";
}

const json_t *doctor_queue_machines(const json_t *environment)
{
	return json_object_get(environment, "computeResources");
}

bool doctor_queue_is_usable(const json_t *environment)
{
	const char *state = js_str(environment, "state");

	return (!state || strcmp(state, "ENABLED") == 0) && js_is(environment, "status", "VALID");
}

bool doctor_queue_holds(const json_t *environment, const json_t *plan, const char *type)
{
	const char *accelerator = js_str(json_object_get(plan, "instance"), "accelerator");
	bool is_plain = !accelerator && js_int(plan, "nodes", 1) < 2;
	size_t i, family = strcspn(type, ".");
	const json_t *row;

	json_array_foreach (json_object_get(doctor_queue_machines(environment), "instanceTypes"), i,
			    row) {
		const char *named = json_string_value(row);

		if (named && (strcmp(named, type) == 0 ||
			      (strlen(named) == family && strncmp(named, type, family) == 0) ||
			      (is_plain &&
			       (strcmp(named, "optimal") == 0 || text_starts(named, "default_")))))
			return true;
	}
	return false;
}

const json_t *doctor_queue_chosen(const json_t *environments, const json_t *plan)
{
	const char *type = json_string_value(js_path(plan, "spec.resources.instance"));
	const json_t *row;
	size_t i;

	json_array_foreach (environments, i, row)
		if (type && doctor_queue_is_usable(row) && doctor_queue_holds(row, plan, type))
			return row;
	return json_array_get(environments, 0);
}
