/*
 * A retraining as a state machine in the Amazon States Language.
 *
 * A job that fails throws States.TaskFailed, and the text of its cause is the job as DescribeJobs
 * has it, with PascalCase names: Container.ExitCode decides. Sources: Step Functions developer
 * guide (connect-batch, intrinsic functions, context object); that the cause has this form no
 * account has confirmed. If it has another one, the execution fails at the first exit code that is
 * not 0, and shows it.
 *
 * A run id has 40 characters, and an execution's name up to 80 of others, too: the id is the MD5 of
 * machine and name, 32 hexadecimal digits, because the language has no function that shortens a
 * text.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/run/export/export_internal.h"

#define NAME_DIGITS 16
#define VCPUS       "1"
#define MEMORY_MIB  "2048"

#define ID_OF_EXECUTION                                                                            \
	"States.Hash(States.Format('{}/{}', $$.StateMachine.Name, $$.Execution.Name), 'MD5')"

/* Ref::NAME stands for a parameter of the job: a word as it is, never read by a shell. */
static json_t *definition_of(const struct export_job *job, const char *image, const char *role)
{
	json_t *properties =
		json_pack("{s:s, s:o, s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "Image", image, "Command",
			  export_command(job, "Ref::run", "Ref::phase", NULL), "JobRoleArn", role,
			  "ResourceRequirements", "Type", "VCPU", "Value", VCPUS, "Type", "MEMORY",
			  "Value", MEMORY_MIB);
	json_t *definition;
	char hex[SHA256_HEX];

	js_put_str(properties, "ExecutionRoleArn", export_text(job->spec, "batch.execution_role"));
	definition =
		json_pack("{s:s, s:[s], s:{s:i}, s:o}", "Type", "container", "PlatformCapabilities",
			  "EC2", "RetryStrategy", "Attempts", 1, "ContainerProperties", properties);
	js_digest(definition, hex);
	js_put(definition, "JobDefinitionName", json_sprintf("stk-driver-%.*s", NAME_DIGITS, hex));
	return definition;
}

/* The service answers that it is busy, or fails: nothing has begun. */
static json_t *retry_of(void)
{
	return json_pack("[{s:[s, s, s], s:i, s:i, s:f}]", "ErrorEquals", "Batch.ServerException",
			 "Batch.AWSBatchException", "Batch.SdkClientException", "IntervalSeconds",
			 10, "MaxAttempts", 8, "BackoffRate", 2.0);
}

/* ---- states before the first phase ---- */

static void add_beginning(json_t *states, const json_t *definition, const char *first)
{
	const char *name = js_str(definition, "JobDefinitionName");

	js_put(states, "run id",
	       json_pack("{s:s, s:{s:s}, s:s}", "Type", "Pass", "Parameters", "run.$",
			 ID_OF_EXECUTION, "Next", "look for the job definition"));
	js_put(states, "look for the job definition",
	       json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}, s:s, s:o, s:s}", "Type", "Task",
			 "Resource", "arn:aws:states:::aws-sdk:batch:describeJobDefinitions",
			 "Parameters", "JobDefinitionName", name, "Status", "ACTIVE",
			 "ResultSelector", "names.$", "$.JobDefinitions[*].JobDefinitionName",
			 "ResultPath", "$.definition", "Retry", retry_of(), "Next",
			 "is it registered?"));
	js_put(states, "is it registered?",
	       json_pack("{s:s, s:[{s:s, s:b, s:s}], s:s}", "Type", "Choice", "Choices", "Variable",
			 "$.definition.names[0]", "IsPresent", 1, "Next", first, "Default",
			 "register it"));
	js_put(states, "register it",
	       json_pack("{s:s, s:s, s:O, s:n, s:o, s:s}", "Type", "Task", "Resource",
			 "arn:aws:states:::aws-sdk:batch:registerJobDefinition", "Parameters",
			 definition, "ResultPath", "Retry", retry_of(), "Next", first));
}

/* ---- a phase ---- */

struct phase_names {
	char *failed, *code, *choice, *again;
};

static struct phase_names names_of(const char *phase)
{
	return (struct phase_names){ .failed = mem_format("%s: not 0", phase),
				     .code = mem_format("%s: exit code", phase),
				     .choice = mem_format("%s: what now?", phase),
				     .again = mem_format("%s: again", phase) };
}

static void names_release(struct phase_names *names)
{
	free(names->failed);
	free(names->code);
	free(names->choice);
	free(names->again);
}

static json_t *task_of(const struct export_job *job, const json_t *definition, const char *phase,
		       const char *queue)
{
	json_t *parameters = json_object();

	js_put(parameters, "JobName.$",
	       json_sprintf("States.Format('stoker-{}-%s', $.run)", phase));
	js_put_str(parameters, "JobQueue", queue);
	js_put_str(parameters, "JobDefinition", js_str(definition, "JobDefinitionName"));
	js_put_str(parameters, "ShareIdentifier", export_text(job->spec, "batch.share_identifier"));
	js_put(parameters, "Parameters", json_pack("{s:s, s:s}", "run.$", "$.run", "phase", phase));
	return parameters;
}

static json_t *is_code(int code)
{
	return json_pack("{s:s, s:i}", "Variable", "$.job.Container.ExitCode", "NumericEquals",
			 code);
}

static json_t *is_present(const char *path, bool present)
{
	return json_pack("{s:s, s:b}", "Variable", path, "IsPresent", present);
}

/* A job that is terminated in the moment of its end has failed with exit code 0. A container whose
 * machine was taken away has no exit code. */
static json_t *choices_of(const char *next, const char *again)
{
	return json_pack("[{s:[o, o], s:s}, {s:[o, o], s:s}, {s:[o, {s:[o, o]}], s:s},"
			 " {s:[o, o, {s:s, s:s}], s:s}]",
			 "And", is_present("$.job.Container.ExitCode", true), is_code(EXIT_DONE),
			 "Next", next, "And", is_present("$.job.Container.ExitCode", true),
			 is_code(EXIT_GATE), "Next", "refused", "And",
			 is_present("$.job.Container.ExitCode", true), "Or", is_code(EXIT_DETACHED),
			 is_code(EXIT_UNREACHABLE), "Next", again, "And",
			 is_present("$.job.Container.ExitCode", false),
			 is_present("$.job.StatusReason", true), "Variable", "$.job.StatusReason",
			 "StringMatches", "Host EC2*", "Next", again);
}

static void add_phase(json_t *states, const struct export_job *job, const json_t *definition,
		      const char *queue, const char *phase, const char *next)
{
	AUTO(names_release) struct phase_names names = names_of(phase);

	js_put(states, phase,
	       json_pack("{s:s, s:s, s:o, s:{s:s}, s:s, s:o, s:[{s:[s], s:s, s:s}], s:s}", "Type",
			 "Task", "Resource", "arn:aws:states:::batch:submitJob.sync", "Parameters",
			 task_of(job, definition, phase, queue), "ResultSelector", "JobId.$",
			 "$.JobId", "ResultPath", "$.job", "Retry", retry_of(), "Catch",
			 "ErrorEquals", "States.TaskFailed", "ResultPath", "$.failure", "Next",
			 names.failed, "Next", next));
	/* The cause of an error of the service itself is no JSON. */
	js_put(states, names.failed,
	       json_pack("{s:s, s:[{s:s, s:s, s:s}], s:s}", "Type", "Choice", "Choices", "Variable",
			 "$.failure.Cause", "StringMatches", "{*", "Next", names.code, "Default",
			 "failed"));
	js_put(states, names.code,
	       json_pack("{s:s, s:{s:s, s:s, s:s}, s:s}", "Type", "Pass", "Parameters", "run.$",
			 "$.run", "failure.$", "$.failure", "job.$",
			 "States.StringToJson($.failure.Cause)", "Next", names.choice));
	js_put(states, names.choice,
	       json_pack("{s:s, s:o, s:s}", "Type", "Choice", "Choices",
			 choices_of(next, names.again), "Default", "failed"));
	js_put(states, names.again,
	       json_pack("{s:s, s:i, s:s}", "Type", "Wait", "Seconds", REPEAT_AFTER_S, "Next",
			 phase));
}

/* ---- the ends ---- */

static json_t *end_of(enum exit_code code)
{
	return json_pack("{s:s, s:{s:s, s:i}, s:b}", "Type", "Pass", "Parameters", "run.$", "$.run",
			 "exit_code", (int)code, "End", 1);
}

int export_machine(const struct export_job *job, json_t **ret, struct err **err)
{
	const char *image, *queue, *role;
	json_auto_t *phases = NULL, *definition = NULL;
	json_t *states;
	size_t i;
	const json_t *phase;

	if (export_check_away(job, err) < 0 ||
	    export_need(job->spec, "driver.image",
			"123456789012.dkr.ecr.us-west-2.amazonaws.com/m5-driver:1", &image,
			err) < 0 ||
	    export_need(job->spec, "driver.job_queue", "drivers", &queue, err) < 0 ||
	    export_need(job->spec, "driver.role", "arn:aws:iam::123456789012:role/m5-driver", &role,
			err) < 0)
		return -1;
	phases = export_phases(job->spec);
	definition = definition_of(job, image, role);
	states = json_object();
	add_beginning(states, definition, json_string_value(json_array_get(phases, 0)));
	json_array_foreach (phases, i, phase) {
		const char *next = json_string_value(json_array_get(phases, i + 1));

		add_phase(states, job, definition, queue, json_string_value(phase),
			  next ? next : "done");
	}
	js_put(states, "done", end_of(EXIT_DONE));
	js_put(states, "refused", end_of(EXIT_GATE));
	/* The name may not begin with States, as that of a failed task does. */
	js_put(states, "failed",
	       json_pack("{s:s, s:s, s:s}", "Type", "Fail", "Error", "StepFailed", "CausePath",
			 "$.failure.Cause"));
	*ret = json_pack("{s:o, s:s, s:o}", "Comment",
			 json_sprintf("a turn of the retraining of %s, by stoker",
				      spec_str(job->spec, SPEC_NAME)),
			 "StartAt", "run id", "States", states);
	return 0;
}
