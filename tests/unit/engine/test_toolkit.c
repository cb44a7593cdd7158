/* The promises of sagemaker_toolkit.h: values as Python writes them, and what script mode
 * cannot do. The request as a whole is compared with the SDK's in tests/aws/test_toolkit.py. */
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/engine/sagemaker/sagemaker_internal.h"

static json_t *plan_new(void)
{
	return json_pack("{s:s, s:{s:s}, s:{}, s:{s:[s,s], s:{s:f, s:i, s:n, s:s}, s:{s:s}, "
			 "s:{s:i, s:{s:{s:i, s:n}, s:{}}}}}",
			 "workspace", "s3://bucket/stoker", "source", "bundle",
			 "sources/abc.tar.gz", "secrets", "spec", "command", "torchrun", "train.py",
			 "hyperparameters", "lr", 3e-4, "max_steps", 1000, "none", "model", "llama",
			 "env", "FI_EFA_FORK_SAFE", "1", "compile", "max_steps", 10, "overrides",
			 "hyperparameters", "eval_steps", 5, "model", "env");
}

static json_t *order_new(const char *phase)
{
	return json_pack("{s:s, s:{s:s, s:s, s:s}}", "phase", phase, "env", "FI_EFA_FORK_SAFE", "1",
			 "STOKER_HP_LR", "3e-4", "PYTHONUNBUFFERED", "1");
}

static int put(json_t *plan, json_t *order, json_t **ret, struct err **err)
{
	const struct toolkit_input input = { .plan = plan,
					     .phase = js_str(order, "phase"),
					     .order = order,
					     .job = "stk-r1-train-1",
					     .region = "us-west-2" };

	*ret = json_pack("{s:{s:s}}", "ResourceConfig", "InstanceType", "ml.trn1.32xlarge");
	return sagemaker_toolkit_put(*ret, &input, err);
}

static void assert_dumped(json_t *value, const char *want)
{
	json_auto_t *plan = plan_new(), *order = order_new("train"), *request = NULL;
	AUTO(err_freep) struct err *err = NULL;

	assert_non_null(value);
	js_put(js_path(plan, "spec.hyperparameters"), "value", value);
	assert_int_equal(put(plan, order, &request, &err), 0);
	assert_string_equal(js_str(json_object_get(request, "HyperParameters"), "value"), want);
}

static void assert_program(const char *command, const char *want)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *plan = plan_new(), *words = NULL;
	json_t *list = NULL;

	assert_int_equal(js_parse(command, strlen(command), "a test", &list, &err), 0);
	js_put(json_object_get(plan, "spec"), "command", list);
	json_object_clear(js_path(plan, "spec.hyperparameters"));
	words = sagemaker_toolkit_command(plan, "train");
	if (want)
		assert_string_equal(
			json_string_value(json_array_get(words, json_array_size(words) - 1)), want);
	else
		assert_null(words);
}

/* Each as Python 3.11 printed it. */
static void numbers_are_as_python_prints_them(void **state)
{
	static const struct {
		double value;
		const char *want;
	} rows[] = {
		{ 3e-4, "0.0003" },
		{ 1e-5, "1e-05" },
		{ 6.25e-5, "6.25e-05" },
		{ 1e-4, "0.0001" },
		{ 0.1, "0.1" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1.0, "1.0" },
		{ -2.5, "-2.5" },
		{ 0.0, "0.0" },
		{ -0.0, "-0.0" },
		{ 100.0, "100.0" },
		{ 123456.789, "123456.789" },
		{ 1e15, "1000000000000000.0" },
		{ 1e16, "1e+16" },
		{ 1.5e300, "1.5e+300" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 9007199254740993.0, "9007199254740992.0" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_dumped(json_real(rows[i].value), rows[i].want);
	assert_dumped(json_integer(10), "10");
	assert_dumped(json_integer(INT64_MIN), "-9223372036854775808");
}

static void texts_are_as_python_prints_them(void **state)
{
	(void)state;
	assert_dumped(json_string("train.py"), "\"train.py\"");
	assert_dumped(json_string("10"), "\"10\"");
	assert_dumped(json_string("a\"b\\c\n\t\x01\x7f/"), "\"a\\\"b\\\\c\\n\\t\\u0001\x7f/\"");
	assert_dumped(json_string("ü→😀"), "\"\\u00FC\\u2192\\uD83D\\uDE00\"");
	assert_dumped(json_true(), "true");
	assert_dumped(json_false(), "false");
	assert_dumped(json_pack("[i, f, s, [b]]", 1, 2.5, "a", 1), "[1, 2.5, \"a\", [true]]");
}

static void only_python_programs_are_run(void **state)
{
	(void)state;
	assert_program("[\"torchrun\", \"train.py\"]", "train.py");
	assert_program("[\"python3\", \"src/train.py\"]", "src/train.py");
	assert_program("[\"python3.10\", \"train.py\"]", "train.py");
	assert_program("[\"bash\", \"train.py\"]", NULL);
	assert_program("[\"train.py\"]", NULL);
	assert_program("[\"torchrun\", \"train.sh\"]", NULL);
	assert_program("[\"torchrun\", \"/opt/train.py\"]", NULL);
	assert_program("[\"torchrun\", \"--nnodes=2\"]", NULL);
	assert_program("[\"torchrun\", \"--nnodes=2\", \"train.py\"]", NULL);
	assert_program("[\"python3\", \"train.py\", \"--fast\"]", NULL);
	assert_program("[]", NULL);
}

static void assert_put(const char *phase, const char *want)
{
	json_auto_t *plan = plan_new(), *order = order_new(phase), *request = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *text = NULL;

	assert_int_equal(put(plan, order, &request, &err), 0);
	text = json_dumps(json_object_get(request, "HyperParameters"),
			  JSON_SORT_KEYS | JSON_COMPACT);
	assert_string_equal(text, want);
	free(TAKE(text));
	text = json_dumps(json_object_get(request, "Environment"), JSON_SORT_KEYS | JSON_COMPACT);
	assert_string_equal(text, "{\"FI_EFA_FORK_SAFE\":\"1\"}");
}

#define OWN                                                                                        \
	"\"sagemaker_container_log_level\":\"20\",\"sagemaker_instance_type\":"                    \
	"\"\\\"ml.trn1.32xlarge\\\"\",\"sagemaker_job_name\":\"\\\"stk-r1-train-1\\\"\","          \
	"\"sagemaker_program\":\"\\\"train.py\\\"\",\"sagemaker_region\":\"\\\"us-west-2\\\"\","   \
	"\"sagemaker_submit_directory\":\"\\\"s3://bucket/stoker/sources/abc.tar.gz\\\"\","        \
	"\"sagemaker_torch_distributed_enabled\":\"true\"}"

/* Values that are null stay out; phase 1 has its overrides, and those alone. */
static void each_phase_has_its_hyperparameters(void **state)
{
	(void)state;
	assert_put("train",
		   "{\"lr\":\"0.0003\",\"max_steps\":\"1000\",\"model\":\"\\\"llama\\\"\"," OWN);
	assert_put("precompile",
		   "{\"eval_steps\":\"5\",\"lr\":\"0.0003\",\"max_steps\":\"10\"," OWN);
}

/* `$${STOKER_` is how an order spells text that only looks like a reference. */
static void what_only_looks_like_a_reference_is_text(void **state)
{
	json_auto_t *plan = plan_new(), *order = order_new("train"), *request = NULL;
	json_t *env = json_object_get(order, "env");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	js_put_str(env, "A", "$${STOKER_RUN} $HOME $$ $");
	assert_int_equal(put(plan, order, &request, &err), 0);
	assert_string_equal(js_str(json_object_get(request, "Environment"), "A"),
			    "${STOKER_RUN} $HOME $$ $");
}

static void assert_refused(json_t *plan, json_t *order, const char *words)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *request = NULL;

	assert_int_equal(put(plan, order, &request, &err), -1);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_non_null(strstr(err->message, words));
	assert_non_null(err->hint);
	json_decref(plan);
	json_decref(order);
}

static void what_script_mode_cannot_do_is_refused(void **state)
{
	char text[TOOLKIT_VALUE_MAX + 1];
	json_t *plan, *order;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';

	order = order_new("train");
	js_put_str(json_object_get(order, "env"), "A", "in ${STOKER_RUN}");
	assert_refused(plan_new(), order, "'A' refers to a variable that a node agent fills in");

	order = order_new("train");
	js_put_str(json_object_get(order, "env"), "A", text);
	assert_refused(plan_new(), order, "env 'A' is 2500 bytes long; SageMaker takes 512");

	plan = plan_new(); /* two more for the quotes */
	js_put_str(js_path(plan, "spec.hyperparameters"), "model", text);
	assert_refused(plan, order_new("train"), "'model' is 2502 bytes long");

	plan = plan_new();
	js_put_str(json_object_get(plan, "secrets"), "TOKEN", "env:TOKEN");
	assert_refused(plan, order_new("train"), "no way for secrets");

	plan = plan_new();
	js_put(json_object_get(plan, "spec"), "command", json_pack("[s]", "./train.sh"));
	assert_refused(plan, order_new("train"), "one Python program");
}

static void more_hyperparameters_than_the_service_takes_are_refused(void **state)
{
	json_t *plan = plan_new();

	(void)state;
	for (int i = 0; i < 94; i++) {
		AUTO(auto_free) char *name = mem_format("x%d", i);

		js_put(js_path(plan, "spec.hyperparameters"), name, json_integer(i));
	}
	assert_refused(plan, order_new("train"), "104 hyperparameters");
}

/* ---- course of a job without an agent: sagemaker_internal.h ---- */

static struct training training_of(const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	struct training job = { .name = (char *)"stk-r1-train-1" };

	assert_int_equal(js_parse(text, strlen(text), "a test", &job.description, &err), 0);
	return job;
}

/* Makes the job look as if it had ended long ago: its log is not waited for any more. */
static void assert_status(const char *text, enum engine_state state, bool known, int code)
{
	json_auto_t *plan = json_pack("{s:i}", "nodes", 1);
	const struct sagemaker sagemaker = { .plan = plan, .toolkit = true };
	struct training job = training_of(text);
	struct engine_status status;

	job.ended.ms = clock_mono_now().ms - SAGEMAKER_LOG_MS;
	sagemaker_toolkit_status(&sagemaker, &job, &status);
	assert_int_equal(status.state, state);
	assert_int_equal(status.exit_known, known);
	if (known)
		assert_int_equal(status.exit, code);
	assert_false(status.silent);
	assert_int_equal(job.closing, state == ENGINE_ENDED);
	json_decref(job.description);
}

#define SAID(status, rest)                                                                         \
	"{\"TrainingJobStatus\":\"" status "\",\"SecondaryStatus\":\"" status "\","                \
	"\"TrainingStartTime\":100.5,\"TrainingEndTime\":200.25" rest "}"

/* Returns the command of a plan with this distribution. The caller frees it. */
static char *command_with(const char *distribution, const char *type, int gpus, int nodes)
{
	json_auto_t *plan = plan_new(), *words = NULL;
	const json_t *word;
	struct sb line = SB_INIT;
	size_t i;

	js_put(json_object_get(plan, "spec"), "sagemaker",
	       json_pack("{s:s}", "distribution", distribution));
	js_put(json_object_get(plan, "spec"), "hyperparameters", json_object());
	js_put(plan, "instance",
	       json_pack("{s:s, s:s, s:i}", "type", type, "accelerator", "nvidia", "gpus", gpus));
	js_put(plan, "nodes", json_integer(nodes));
	words = sagemaker_toolkit_command(plan, "train");
	json_array_foreach (words, i, word)
		sb_addf(&line, "%s%s", i > 0 ? " " : "", json_string_value(word));
	return sb_take(&line);
}

/* The command as SMDataParallelRunner of sagemaker-training 5.1.0 makes it, with these hosts and
 * GPUs. */
static void pytorchddp_is_the_toolkits_mpirun(void **state)
{
	static const char *const want =
		"mpirun --host algo-1:8,algo-2:8 -np 16 --allow-run-as-root --tag-output "
		"--oversubscribe -mca btl_tcp_if_include <interface> -mca oob_tcp_if_include "
		"<interface> -mca plm_rsh_no_tree_spawn 1 -mca pml ob1 -mca btl ^openib -mca "
		"orte_abort_on_non_zero_status 1 -mca btl_vader_single_copy_mechanism none -mca "
		"plm_rsh_num_concurrent 2 -x NCCL_SOCKET_IFNAME=<interface> -x NCCL_DEBUG=INFO -x "
		"LD_LIBRARY_PATH -x PATH -x SMDATAPARALLEL_USE_HOMOGENEOUS=1 -x FI_PROVIDER=efa "
		"-x RDMAV_FORK_SAFE=1 -x LD_PRELOAD=<gethostname> -x NCCL_PROTO=simple -x "
		"FI_EFA_USE_DEVICE_RDMA=1 -x SMDATAPARALLEL_SERVER_ADDR=algo-1 -x "
		"SMDATAPARALLEL_SERVER_PORT=7592 -x SAGEMAKER_INSTANCE_TYPE=ml.p4d.24xlarge "
		"smddprun python3 -m mpi4py train.py";
	AUTO(auto_free) char *line = command_with("pytorchddp", "ml.p4d.24xlarge", 8, 2);

	(void)state;
	assert_string_equal(line, want);
}

static void other_distributions_start_torchrun_or_the_program(void **state)
{
	AUTO(auto_free) char *torchrun = command_with("torch_distributed", "ml.g5.12xlarge", 4, 1);
	AUTO(auto_free) char *none = command_with("none", "ml.g5.12xlarge", 4, 2);

	(void)state;
	assert_string_equal(torchrun, "torchrun --nnodes 1 --nproc_per_node 4 train.py");
	assert_string_equal(none, "python3 train.py");
}

/* The container's own exit is 1 whatever its command's was. */
static void the_commands_exit_is_found_in_the_reason(void **state)
{
	(void)state;
	assert_status(SAID("Completed", ""), ENGINE_ENDED, true, 0);
	assert_status(SAID("Failed",
			   ",\"FailureReason\":\"AlgorithmError: ExecuteUserScriptError:\\n"
			   "ExitCode 137\\nErrorMessage \\\"\\\"\\nCommand \\\"torchrun\\\","
			   " exit code: 1\""),
		      ENGINE_ENDED, true, 137);
	assert_status(SAID("Failed", ",\"FailureReason\":\"AlgorithmError: , exit code: 9\""),
		      ENGINE_ENDED, true, 9);
	assert_status(SAID("Failed", ",\"FailureReason\":\"InternalServerError: We\""),
		      ENGINE_ENDED, false, 0);
	assert_status("{\"TrainingJobStatus\":\"InProgress\",\"SecondaryStatus\":\"Training\"}",
		      ENGINE_RUNNING, false, 0);
}

/* A job that has just ended may have lines that are not shown yet. */
static void an_end_is_held_back_for_the_log(void **state)
{
	json_auto_t *plan = json_pack("{s:i}", "nodes", 1);
	const struct sagemaker sagemaker = { .plan = plan, .toolkit = true };
	struct training job = training_of(SAID("Completed", ""));
	struct engine_status status;

	(void)state;
	job.ended = clock_mono_now();
	sagemaker_toolkit_status(&sagemaker, &job, &status);
	assert_int_equal(status.state, ENGINE_STOPPING);
	assert_string_equal(status.reason, "waiting for the log");
	assert_false(job.closing);
	json_decref(job.description);
}

static void assert_report(const char *text, int found, const char *want)
{
	struct training job = training_of(text);
	AUTO(auto_free) char *line = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	json_auto_t *json = NULL;

	assert_int_equal(sagemaker_toolkit_report(&job, 1, &report), found);
	json = message_encode(node_report_message, &report);
	line = json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT);
	if (want)
		assert_string_equal(line, want);
	json_decref(job.description);
}

static void what_stands_for_a_report_has_times_and_state(void **state)
{
	(void)state;
	assert_report("{\"TrainingJobStatus\":\"InProgress\"}", 0, NULL);
	assert_report("{\"TrainingStartTime\":100.5}", 1,
		      "{\"claimed\":100500,\"host\":\"algo-2\",\"node\":1,\"started\":100500,"
		      "\"state\":\"running\",\"v\":1}");
	assert_report(SAID("Completed", ""), 1,
		      "{\"claimed\":100500,\"ended\":200250,\"host\":\"algo-2\",\"node\":1,"
		      "\"started\":100500,\"state\":\"ended\",\"v\":1}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_as_python_prints_them),
		cmocka_unit_test(texts_are_as_python_prints_them),
		cmocka_unit_test(only_python_programs_are_run),
		cmocka_unit_test(each_phase_has_its_hyperparameters),
		cmocka_unit_test(what_only_looks_like_a_reference_is_text),
		cmocka_unit_test(what_script_mode_cannot_do_is_refused),
		cmocka_unit_test(more_hyperparameters_than_the_service_takes_are_refused),
		cmocka_unit_test(the_commands_exit_is_found_in_the_reason),
		cmocka_unit_test(an_end_is_held_back_for_the_log),
		cmocka_unit_test(pytorchddp_is_the_toolkits_mpirun),
		cmocka_unit_test(other_distributions_start_torchrun_or_the_program),
		cmocka_unit_test(what_stands_for_a_report_has_times_and_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
