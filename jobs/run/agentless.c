/* Runs in which no agent of ours takes part, and what they are not given: see plan.h. */
#include "jobs/run/plan.h"

bool plan_has_agent(const json_t *plan)
{
	return !js_is(plan, "engine", "sagemaker") ||
	       !js_is(js_path(plan, "spec.sagemaker"), "launcher", "toolkit");
}

json_t *plan_not_held(const json_t *plan)
{
	static const char *const always[] = {
		"no claim: that a job is not run twice rests on SageMaker's names alone, and a "
		"machine that was cut off goes on until SageMaker stops it",
		"no health checks: a sick machine is found out by its failure",
		"no checkpoint is marked: a retry begins as the script begins it, and failures "
		"without progress are counted as if there were none; with checkpoint.sync: engine "
		"SageMaker keeps /opt/ml/checkpoints in checkpoint.url, and a retry finds all of "
		"it there again on every machine, whole or not",
		"no drain: at a limit or a stop the script gets SIGTERM, and SIGKILL after 120 s, "
		"as SageMaker does it",
		"no continuity check: whether a script went on from its checkpoint is not known",
		"stalls are seen in CloudWatch's lines alone, some seconds late; neither "
		"checkpoint bytes nor cache bytes count as progress",
		"the toolkit passes on output in pieces: a line written in several pieces is "
		"several lines to it, and a metric or a graph in it is not seen",
		"the script gets SageMaker's variables (SM_HP_*, SM_HOSTS and so on), none of "
		"STOKER_*; its arguments come sorted by name",
		"every failure of the script has exit code 1 to SageMaker; its own stands in "
		"FailureReason",
	};
	static const char compiler[] =
		"the compiler in the image is not compared with the lock's before it trains: "
		"another one shows as graphs compiled in training";
	json_t *words = NULL;

	if (plan_has_agent(plan))
		return NULL;
	words = json_array();
	for (size_t i = 0; i < STK_LENGTH(always); i++)
		json_array_append_new(words, json_string(always[i]));
	if (json_object_get(plan, "compile"))
		json_array_append_new(words, json_string(compiler));
	return words;
}
