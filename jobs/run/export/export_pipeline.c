/*
 * A retraining as a definition of a SageMaker pipeline.
 *
 * Sources: what the SageMaker Python SDK 2.254 makes of the same steps (tests/aws/data/pipeline);
 * the published schema of definitions; SageMaker developer guide, condition steps: one that is
 * among the steps of another is refused, and so is a step that depends on one (issue 3565 of the
 * SDK). So each phase after the first is among the steps of the condition on the one before it, and
 * all conditions stand side by side: one whose phase never runs is never read. Or is used where In
 * would do, because SDK and schema do not agree about the form of In, and Not is refused (issue
 * 2746).
 */
#include <string.h>

#include "jobs/run/export/export_internal.h"

#define FOLDER     "/opt/ml/processing/outcome"
#define FILE_NAME  "outcome.json"
#define FILE_PATH  FOLDER "/" FILE_NAME
#define OUTPUT     "outcome" /* of the job, and the name of its property file */
#define MAX_S      432000    /* longest processing job without a raised quota: 5 days */
#define VOLUME_GIB 30
#define RETRIES    10
#define RETRY_S    60
#define WORD_MAX   256 /* characters of a word of a processing job */
#define PREFIX_MAX 27  /* with a hyphen and the 12 characters of an execution's id: 40 */

/* Only a job that ends with 0 has its outcome read, so that 0 is the end of each job that leaves
 * one. SIGTERM is handed on, and ends the repeating. `wait` returns early when it comes. One line
 * without a blank too many, as the service takes no longer word. */
static const char script[] = "o=" FILE_PATH ";e=;"
			     "trap 'e=1;kill -TERM \"$j\"' TERM;"
			     "while rm -f $o;do "
			     "stoker \"$@\"&j=$!;"
			     "while wait \"$j\";c=$?;kill -0 \"$j\" 2>/dev/null;do :;done;"
			     "case $e$c in 8|75)sleep 60&j=$!;wait \"$j\";;*)break;esac;"
			     "[ \"$e\" ]&&break;"
			     "done;"
			     "[ -s $o ]";

_Static_assert(sizeof(script) - 1 <= WORD_MAX, "the service refuses a longer word");

static json_t *get(const char *name)
{
	return json_pack("{s:s}", "Get", name);
}

static json_t *join(const char *on, json_t *values)
{
	return json_pack("{s:{s:s, s:o}}", "Std:Join", "On", on, "Values", values);
}

static json_t *exit_code_of(const char *phase)
{
	json_t *file = json_object();

	js_put(file, "Get", json_sprintf("Steps.%s.PropertyFiles." OUTPUT, phase));
	return json_pack("{s:{s:o, s:s}}", "Std:JsonGet", "PropertyFile", file, "Path",
			 "exit_code");
}

/* ---- the job of a phase ---- */

/* The words behind the program; the one that is the id is computed by the service. */
static json_t *arguments_of(const struct export_job *job, const char *phase)
{
	static const char id[] = "--id";
	AUTO(auto_free) char *prefix = export_id_prefix(job->spec, PREFIX_MAX);
	json_t *words = export_command(job, "", phase, FILE_PATH);
	size_t at = 0;

	json_array_remove(words, 0);
	while (strcmp(json_string_value(json_array_get(words, at)), id) != 0)
		at++;
	json_array_set_new(
		words, at + 1,
		join("-", json_pack("[s, o]", prefix, get("Execution.PipelineExecutionId"))));
	return words;
}

/* Refuses what is too long for the service: only words of the caller can be. */
static int check_words(const struct export_job *job, struct err **err)
{
	json_auto_t *words = export_command(job, "", "", FILE_PATH);
	size_t i;
	const json_t *word;

	json_array_foreach (words, i, word)
		if (json_string_length(word) > WORD_MAX) {
			err_set(err, EXIT_REFUSED,
				"'%.40s…' has %zu characters, and a word of a processing job has "
				"at most %d",
				json_string_value(word), json_string_length(word), WORD_MAX);
			return err_hint(err, "put it into the spec, or into a profile");
		}
	return 0;
}

static json_t *outputs_of(const struct export_job *job, const char *phase)
{
	json_t *at = json_array();

	json_array_append_new(at, json_sprintf("%s/outcomes", spec_str(job->spec, SPEC_WORKSPACE)));
	json_array_append_new(at, get("Execution.PipelineExecutionId"));
	json_array_append_new(at, json_string(phase));
	return json_pack("{s:[{s:s, s:b, s:{s:o, s:s, s:s}}]}", "Outputs", "OutputName", OUTPUT,
			 "AppManaged", 0, "S3Output", "S3Uri", join("/", at), "LocalPath", FOLDER,
			 "S3UploadMode", "EndOfJob");
}

static json_t *policy_of(const char *first, const char *second)
{
	return json_pack("{s:f, s:i, s:i, s:[s, s]}", "BackoffRate", 2.0, "IntervalSeconds",
			 RETRY_S, "MaxAttempts", RETRIES, "ExceptionType", first, second);
}

struct pipeline_driver {
	const char *image, *role, *instance;
};

static json_t *step_of(const struct export_job *job, const struct pipeline_driver *driver,
		       const char *phase)
{
	json_t *step = json_pack("{s:s, s:s}", "Name", phase, "Type", "Processing");
	json_t *arguments = json_object();

	js_put(arguments, "ProcessingResources",
	       json_pack("{s:{s:s, s:i, s:i}}", "ClusterConfig", "InstanceType", driver->instance,
			 "InstanceCount", 1, "VolumeSizeInGB", VOLUME_GIB));
	js_put(arguments, "AppSpecification",
	       json_pack("{s:s, s:o, s:[s, s, s, s]}", "ImageUri", driver->image,
			 "ContainerArguments", arguments_of(job, phase), "ContainerEntrypoint",
			 "/bin/sh", "-c", script, "stoker"));
	js_put_str(arguments, "RoleArn", driver->role);
	js_put(arguments, "ProcessingOutputConfig", outputs_of(job, phase));
	js_put(arguments, "StoppingCondition", json_pack("{s:i}", "MaxRuntimeInSeconds", MAX_S));
	js_put(step, "Arguments", arguments);
	/* If the service itself has lost the job, the next one continues the run. */
	js_put(step, "RetryPolicies",
	       json_pack("[o, o]", policy_of("Step.SERVICE_FAULT", "Step.THROTTLING"),
			 policy_of("SageMaker.JOB_INTERNAL_ERROR", "SageMaker.CAPACITY_ERROR")));
	js_put(step, "PropertyFiles",
	       json_pack("[{s:s, s:s, s:s}]", "PropertyFileName", OUTPUT, "OutputName", OUTPUT,
			 "FilePath", FILE_NAME));
	return step;
}

/* ---- conditions on the exit code ---- */

static json_t *equals(const char *phase, enum exit_code code)
{
	return json_pack("{s:s, s:o, s:i}", "Type", "Equals", "LeftValue", exit_code_of(phase),
			 "RightValue", (int)code);
}

static void add_condition(json_t *steps, char *name, json_t *condition, json_t *then,
			  json_t *otherwise)
{
	AUTO(auto_free) char *owned = name;

	json_array_append_new(steps, json_pack("{s:s, s:s, s:{s:[o], s:o, s:o}}", "Name", owned,
					       "Type", "Condition", "Arguments", "Conditions",
					       condition, "IfSteps", then, "ElseSteps", otherwise));
}

/* `next` NULL: it is the last phase. */
static void add_conditions(json_t *steps, const char *phase, json_t *next)
{
	json_t *either = json_pack("{s:s, s:[o, o]}", "Type", "Or", "Conditions",
				   equals(phase, EXIT_DONE), equals(phase, EXIT_GATE));
	json_t *words = json_array(), *fail = json_object();

	json_array_append_new(words, json_sprintf("%s ended with exit code ", phase));
	json_array_append_new(words, exit_code_of(phase));
	js_put(fail, "Name", json_sprintf("%s-failed", phase));
	js_put_str(fail, "Type", "Fail");
	js_put(fail, "Arguments", json_pack("{s:o}", "ErrorMessage", join("", words)));
	if (next)
		add_condition(steps, mem_format("%s-done", phase), equals(phase, EXIT_DONE),
			      json_pack("[o]", next), json_array());
	add_condition(steps, mem_format("%s-ended", phase), either, json_array(),
		      json_pack("[o]", fail));
}

int export_pipeline(const struct export_job *job, json_t **ret, struct err **err)
{
	struct pipeline_driver driver;
	json_auto_t *phases = NULL;
	json_t *steps;
	size_t i;
	const json_t *phase;

	if (export_check_away(job, err) < 0 || check_words(job, err) < 0 ||
	    export_need(job->spec, "driver.image",
			"123456789012.dkr.ecr.us-west-2.amazonaws.com/m5-driver:1", &driver.image,
			err) < 0 ||
	    export_need(job->spec, "driver.role", "arn:aws:iam::123456789012:role/m5-driver",
			&driver.role, err) < 0 ||
	    export_need(job->spec, "driver.instance", "ml.t3.medium", &driver.instance, err) < 0)
		return -1;
	phases = export_phases(job->spec);
	steps = json_pack("[o]",
			  step_of(job, &driver, json_string_value(json_array_get(phases, 0))));
	json_array_foreach (phases, i, phase) {
		const char *next = json_string_value(json_array_get(phases, i + 1));

		add_conditions(steps, json_string_value(phase),
			       next ? step_of(job, &driver, next) : NULL);
	}
	*ret = json_pack("{s:s, s:{}, s:[], s:n, s:o}", "Version", "2020-12-01", "Metadata",
			 "Parameters", "PipelineExperimentConfig", "Steps", steps);
	return 0;
}
