/* Status from a reply of DescribeTrainingJob: see sagemaker.h. Statuses are those of
 * sagemaker:SecondaryStatus in botocore 1.43; later versions may add more. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/sagemaker/sagemaker_internal.h"

static const struct {
	const char *name;
	enum engine_state state;
} secondary[] = {
	{ "Starting", ENGINE_QUEUED },
	{ "LaunchingMLInstances", ENGINE_QUEUED },
	{ "Pending", ENGINE_QUEUED },
	/* the job starts again, on other machines */
	{ "Interrupted", ENGINE_QUEUED },
	{ "Restarting", ENGINE_QUEUED },
	{ "PreparingTrainingStack", ENGINE_STARTING },
	{ "Downloading", ENGINE_STARTING },
	{ "DownloadingTrainingImage", ENGINE_STARTING },
	{ "Training", ENGINE_RUNNING },
	{ "Uploading", ENGINE_RUNNING },
	{ "Updating", ENGINE_RUNNING },
	{ "Stopping", ENGINE_STOPPING },
};

bool sagemaker_is_over(const json_t *description)
{
	return js_is(description, "TrainingJobStatus", "Completed") ||
	       js_is(description, "TrainingJobStatus", "Failed") ||
	       js_is(description, "TrainingJobStatus", "Stopped");
}

bool sagemaker_is_kept(const json_t *description)
{
	return js_is(json_object_get(description, "WarmPoolStatus"), "Status", "Available");
}

/* Times are seconds with a fraction, as in AWS's JSON 1.1. */
int64_t sagemaker_time_ms(const json_t *description, const char *member)
{
	return (int64_t)(js_real(description, member, 0) * 1000);
}

bool sagemaker_may_be_kept(const json_t *description)
{
	const char *pool = js_str(json_object_get(description, "WarmPoolStatus"), "Status");

	if (js_int(json_object_get(description, "ResourceConfig"), "KeepAlivePeriodInSeconds", 0) ==
	    0)
		return false;
	return !pool || (strcmp(pool, "Reused") != 0 && strcmp(pool, "Terminated") != 0);
}

int64_t sagemaker_kept_ms(const json_t *description)
{
	const json_t *pool = json_object_get(description, "WarmPoolStatus");

	return js_int(pool, "ResourceRetainedBillableTimeInSeconds", 0) * 1000;
}

static enum engine_state state_of(const json_t *description, const struct reports *reports)
{
	const char *now = js_str(description, "SecondaryStatus");

	if (sagemaker_is_over(description))
		return ENGINE_ENDED;
	if (js_is(description, "TrainingJobStatus", "Stopping") ||
	    js_is(description, "TrainingJobStatus", "Deleting"))
		return ENGINE_STOPPING;
	for (size_t i = 0; now && i < STK_LENGTH(secondary); i++)
		if (strcmp(now, secondary[i].name) == 0)
			return secondary[i].state;
	return reports->running || sagemaker_time_ms(description, "TrainingStartTime") > 0
		       ? ENGINE_RUNNING
		       : ENGINE_STARTING;
}

/* Returns the service's message on the current state. */
static const char *message_of(const json_t *description)
{
	const json_t *all = json_object_get(description, "SecondaryStatusTransitions");
	const char *text = js_str(json_array_get(all, json_array_size(all) - 1), "StatusMessage");

	return text ? text : "";
}

static void set_reason(const json_t *description, struct engine_status *ret)
{
	const char *failure = js_str(description, "FailureReason"),
		   *now = js_str(description, "SecondaryStatus");
	const char *message = message_of(description);

	if (js_is(description, "TrainingJobStatus", "Completed"))
		return;
	if (js_is(description, "TrainingJobStatus", "Failed") && failure)
		snprintf(ret->reason, sizeof ret->reason, "%s", failure);
	else if (now)
		snprintf(ret->reason, sizeof ret->reason, "%s%s%s", now, message[0] ? ": " : "",
			 message);
}

/* Returns N of "exit code: N" or "ExitCode N" in a FailureReason; -1: absent. */
static int exit_in(const char *reason)
{
	static const char *const before[] = { "exit code: ", "ExitCode " };

	for (size_t i = 0; reason && i < STK_LENGTH(before); i++) {
		const char *at = strstr(reason, before[i]);
		long code;
		char *end;

		if (!at || !isdigit((unsigned char)at[strlen(before[i])]))
			continue;
		code = strtol(at + strlen(before[i]), &end, 10);
		if (code <= 255)
			return (int)code;
	}
	return -1;
}

static void set_exit(const json_t *description, const struct reports *reports, int agents,
		     struct engine_status *ret)
{
	int code = exit_in(js_str(description, "FailureReason"));

	ret->node = reports->node > 0 ? reports->node : 0;
	ret->last_seen.ms = sagemaker_time_ms(description, "TrainingEndTime");
	if (ret->last_seen.ms == 0)
		ret->last_seen.ms = sagemaker_time_ms(description, "LastModifiedTime");
	/* "Completed" means that every container ended with 0: none of the nodes without a report
	 * was told to end. */
	if (reports->node >= 0 ||
	    (reports->well && js_is(description, "TrainingJobStatus", "Completed"))) {
		ret->exit_known = true;
		ret->exit = reports->exit;
		return;
	}
	/* No agent could report, and the machine is gone with all its processes. */
	ret->silent = true;
	if (js_is(description, "TrainingJobStatus", "Completed")) {
		/* A command that saves and leaves because it was told to also ends with 0. */
		ret->exit_known = agents == 0;
		if (agents > 0)
			snprintf(ret->reason, sizeof ret->reason,
				 "Completed, but %d of %d agents did not report their end",
				 agents - reports->final, agents);
	} else if (code > 0 && js_is(description, "TrainingJobStatus", "Failed")) {
		ret->exit_known = true;
		ret->exit = code;
	}
}

void sagemaker_status(const json_t *description, const struct reports *reports, int agents,
		      struct engine_status *ret)
{
	*ret = (struct engine_status){ .state = state_of(description, reports) };
	ret->started = reports->started;
	/* "You are billed for the time interval between" these two, by the service model. */
	ret->held.ms = sagemaker_time_ms(description, "TrainingStartTime");
	ret->released.ms = sagemaker_time_ms(description, "TrainingEndTime");
	ret->billable_ms = js_int(description, "BillableTimeInSeconds", 0) * 1000;
	set_reason(description, ret);
	if (ret->state == ENGINE_ENDED)
		set_exit(description, reports, agents, ret);
}
