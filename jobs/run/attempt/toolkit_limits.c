/* Runs without an agent of ours, and what they do without: see plan.h. */
#include "jobs/run/plan/plan.h"

bool toolkit_limits_has_agent(const json_t *plan)
{
	return !js_is(plan, "engine", "sagemaker") ||
	       !js_is(js_path(plan, "spec.sagemaker"), "launcher", "toolkit");
}

json_t *toolkit_limits_not_held(const json_t *plan)
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
		"no STOKER_OUTPUT_DIR: SageMaker itself keeps what the script leaves in "
		"SM_MODEL_DIR and SM_OUTPUT_DATA_DIR, and status does not name it",
		"stalls are seen in CloudWatch's lines alone, some seconds late; neither "
		"checkpoint bytes nor cache bytes count as progress",
		"the toolkit passes on output in pieces: a line written in several pieces is "
		"several lines to it, and a metric or a graph in it is not seen",
		"the script gets SageMaker's variables (SM_HP_*, SM_HOSTS and so on), none of "
		"STOKER_*; its arguments come sorted by name",
		"the script has its container's whole environment: what is set there besides the "
		"image and the spec, and steers the compiler, is not withheld",
		"every failure of the script has exit code 1 to SageMaker; its own stands in "
		"FailureReason",
	};
	static const char compiler[] =
		"the compiler in the image is not compared with the lock's before it trains: "
		"another one shows as graphs compiled in training";
	json_t *words = NULL;

	if (toolkit_limits_has_agent(plan))
		return NULL;
	words = json_array();
	for (size_t i = 0; i < STK_LENGTH(always); i++)
		json_array_append_new(words, json_string(always[i]));
	if (json_object_get(plan, "compile"))
		json_array_append_new(words, json_string(compiler));
	return words;
}
