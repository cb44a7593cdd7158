/* Explains the status reasons of AWS Batch, and tells by whom a job was ended: see
 * batch_internal.h. The reasons are those of the AWS Batch user guide, "Jobs stuck in RUNNABLE
 * status". */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch_internal.h"

#define LONG_MS ((int64_t)10 * 60 * 1000) /* in RUNNABLE without a reason */

static const struct {
	const char *word, *hint;
} reasons[] = {
	{ "CAPACITY:", "AWS has no such machine free now; AWS Batch retries" },
	{ "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
	  "raise the compute environment's maxvCpus, or request less" },
	{ "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
	  "no machine of the compute environment has that many vCPUs or that much memory: compare "
	  "its instance types with 'resources.instance'" },
	{ "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS",
	  "give the service role of the compute environment its rights" },
	{ "MISCONFIGURATION:", "the queue or its compute environments can never run it" },
	{ "UNDETERMINED",
	  "check the compute environment: subnets, image, and if machines join the cluster" },
};

void batch_wait_words(const char *status, const char *reason, int64_t waited_ms, struct sb *ret)
{
	if (reason && *reason) {
		sb_addf(ret, "%s: %s", status, reason);
		for (size_t i = 0; i < STK_LENGTH(reasons); i++)
			if (text_starts(reason, reasons[i].word)) {
				sb_addf(ret, " (%s)", reasons[i].hint);
				return;
			}
		return;
	}
	if (strcmp(status, "RUNNABLE") == 0 && waited_ms >= LONG_MS)
		sb_adds(ret,
			"RUNNABLE for more than 10 minutes, and AWS Batch gives no reason: other "
			"jobs may be before it; else the compute environment is at its maxvCpus, "
			"disabled, or has no machine of this size");
}

bool batch_never_runs(const char *reason)
{
	return reason && text_starts(reason, "MISCONFIGURATION:");
}

/* ---- origin of an end ------------------------------------------------------------------------ */

/* True if the service ended the job of its own accord, or lost its machine (NULL: no): isTerminated
 * is not a request then. */
static bool is_services_own(const char *reason)
{
	static const char *const beginnings[] = {
		"Canceled by JobStateTimeLimit",  "Terminated by JobStateTimeLimit",
		"Job attempt duration exceeded",  "Host EC2 (instance ",
		"Your Spot Task was interrupted",
	};

	for (size_t i = 0; reason && i < STK_LENGTH(beginnings); i++)
		if (text_starts(reason, beginnings[i]))
			return true;
	return false;
}

#define CANCELLED  "it was cancelled: "
#define TERMINATED "it was terminated: "

/* True if these words say that the job was ended from outside. */
static bool is_taken_down_text(const char *words)
{
	return text_starts(words, CANCELLED) || text_starts(words, TERMINATED);
}

bool batch_is_ours(const char *reason)
{
	return reason && text_starts(reason, BATCH_OURS);
}

bool batch_was_ended(const json_t *job)
{
	return js_bool(job, "isTerminated", false) || js_bool(job, "isCancelled", false);
}

bool batch_taken_down(const json_t *job)
{
	const char *reason = js_str(job, "statusReason");

	if (batch_is_ours(reason))
		return is_taken_down_text(reason + strlen(BATCH_OURS));
	return batch_was_ended(job) && !js_is(job, "status", "SUCCEEDED") &&
	       !is_services_own(reason);
}

/* ---- words on an end ------------------------------------------------------------------------- */

void batch_node_words(const json_t *node, struct sb *ret)
{
	const char *status = js_str(node, "statusReason");
	const char *container = js_str(batch_container(node), "reason");

	if (status && text_starts(status, BATCH_OURS))
		status += strlen(BATCH_OURS);
	if (!node)
		status = "AWS Batch no longer lists the job";
	sb_adds(ret, status ? status : "AWS Batch gives no reason");
	if (container && (!status || !strstr(status, container)))
		sb_addf(ret, "; %s", container);
}

void batch_end_words(const json_t *job, struct sb *ret)
{
	const char *status = js_str(job, "statusReason");

	if (batch_taken_down(job) && !(status && text_starts(status, BATCH_OURS)))
		sb_adds(ret, js_bool(job, "isCancelled", false) ? CANCELLED : TERMINATED);
	batch_node_words(job, ret);
}
