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
		"no claim: SageMaker's job names alone keep a job from running twice, and a "
		"disconnected machine runs until SageMaker stops it",
		"no health checks: a sick machine is found only by its failure",
		"no checkpoint is marked: the script decides where a retry begins, and every "
		"failure counts as one without progress; with checkpoint.sync: engine SageMaker "
		"keeps /opt/ml/checkpoints in checkpoint.url, and a retry finds all of those files "
		"on every machine, complete or not",
		"no drain: at a limit or a stop SageMaker sends the script SIGTERM, and SIGKILL "
		"after 120 s",
		"no continuity check: a script that ignores its checkpoint is not noticed",
		"no STOKER_OUTPUT_DIR: SageMaker itself keeps the files of SM_MODEL_DIR and "
		"SM_OUTPUT_DATA_DIR, and status does not name them",
		"stalls are seen in CloudWatch's lines alone, some seconds late; checkpoint bytes "
		"and cache bytes do not count as progress",
		"the toolkit splits output: a line written in several pieces becomes several "
		"lines, and a metric or a graph in the line is missed",
		"the script gets SageMaker's variables (SM_HP_*, SM_HOSTS and so on), none of "
		"STOKER_*; the arguments are sorted by name",
		"the script has the whole environment of its container: variables that steer the "
		"compiler are not withheld, even if neither the image nor the spec sets them",
		"SageMaker reports exit code 1 for every failure of the script; the script's own "
		"code is in FailureReason",
	};
	static const char compiler[] =
		"the compiler in the image is not compared with that of the compile manifest "
		"before training: another compiler shows as graphs compiled in training";
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
