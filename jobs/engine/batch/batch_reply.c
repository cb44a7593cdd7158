/* Replies of DescribeJobs, read: a job's state, its container, one job of a list. Pure. */
#include <string.h>

#include "jobs/engine/batch/batch_internal.h"

struct batch_summary batch_summary_of(const json_t *job)
{
	static const struct {
		const char *status;
		enum engine_state state;
	} states[] = {
		{ "STARTING", ENGINE_STARTING },
		{ "RUNNING", ENGINE_RUNNING },
		{ "SUCCEEDED", ENGINE_ENDED },
		{ "FAILED", ENGINE_ENDED },
	};
	struct batch_summary summary = { .state = job ? ENGINE_QUEUED : ENGINE_UNKNOWN,
					 .status = js_str(job, "status"),
					 .reason = js_str(job, "statusReason") };

	for (size_t i = 0; i < STK_LENGTH(states); i++)
		if (summary.status && strcmp(summary.status, states[i].status) == 0)
			summary.state = states[i].state;
	return summary;
}

/* The members of a job of several containers are in tasks. */
const json_t *batch_container(const json_t *job)
{
	const json_t *tasks = js_path(job, "ecsProperties.taskProperties");
	json_t *container;
	size_t i;

	json_array_foreach (json_object_get(json_array_get(tasks, 0), "containers"), i, container)
		if (js_is(container, "name", BATCH_MAIN))
			return container;
	return json_object_get(job, "container");
}

json_t *batch_pick(const json_t *list, const char *id)
{
	json_t *row;
	size_t i;

	json_array_foreach ((json_t *)list, i, row)
		if (js_is(row, "jobId", id) && js_str(row, "status"))
			return row;
	return NULL;
}
