/* What is sent to SageMaker for a plan, and what its answers mean. */
#include "tests/unit/node/place.h"
#include "tests/unit/quoted.h"

#include "jobs/engine/sagemaker/sagemaker_internal.h"

#define ROLE "arn:aws:iam::123456789012:role/r"
#define SPEC                                                                                       \
	"'image':'image:1','resources':{'instance':'trn1.32xlarge','nodes':2},'sagemaker':{"       \
	"'role':'" ROLE "','work_dir':'/tmp/stoker'"

struct ask {
	const char *more;   /* of sagemaker, from a comma on */
	const char *beside; /* of the spec, from a comma on */
	const char *plan;   /* of the plan, from a comma on */
	const char *phase, *job;
};

static json_t *request(struct ask ask, struct err **err)
{
	AUTO(auto_free)
	char *text = mem_format("{'engine':'sagemaker','nodes':2,'spec':{" SPEC "%s}%s}%s}",
				ask.more ? ask.more : "", ask.beside ? ask.beside : "",
				ask.plan ? ask.plan : "");
	json_auto_t *plan = quoted_json(text);
	const struct engine_where where = { .workspace = "s3://bucket/w", .plan = plan };
	const struct engine_job job = {
		.name = ask.job ? ask.job : "stk-r1-train-1",
		.run = "r1",
		.phase = ask.phase ? ask.phase : "train",
		.attempt = 1,
		.nodes = 2,
		.prefix = "runs/r1/train-1/",
		.agent_key = "agents/0123/",
	};
	AUTO(err_freep) struct err *bad = NULL;
	struct engine *engine = NULL;
	json_t *list = NULL, *body = NULL;

	must(sagemaker_ops.open(&where, &engine, &bad), &bad);
	if (sagemaker_ops.requests(engine, &job, &list, err) == 0) {
		json_t *first = json_array_get(list, 0);

		assert_string_equal(js_str(first, "operation"), "CreateTrainingJob");
		body = json_incref(json_object_get(first, "body"));
	}
	json_decref(list);
	sagemaker_ops.close(engine);
	return body;
}

static json_t *good(struct ask ask)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *body = request(ask, &err);

	must(body ? 0 : -1, &err);
	return body;
}

/* Checks that this JSON stands at a path of a request. */
static void stands(struct ask ask, const char *path, const char *want)
{
	json_auto_t *body = good(ask);
	json_auto_t *wanted = want ? quoted_json(want) : NULL;
	AUTO(auto_free) char *one = NULL;
	const json_t *found = js_path(body, path);

	if (!wanted) {
		assert_null(found);
		return;
	}
	one = found ? js_line(found) : mem_copy("nothing");
	if (!json_equal(found, wanted))
		fail_msg("%s is %s, not %s", path, one, want);
}

static void the_least_that_is_sent(void **state)
{
	json_auto_t *body = good((struct ask){ 0 });
	json_auto_t *want = quoted_json(
		"{'TrainingJobName':'stk-r1-train-1','RoleArn':'" ROLE "',"
		"'AlgorithmSpecification':{'TrainingImage':'image:1','TrainingInputMode':'File',"
		"'ContainerEntrypoint':['sh','/opt/ml/input/data/stoker/"
		"start','-','sagemaker']},"
		"'InputDataConfig':[{'ChannelName':'stoker','DataSource':{'S3DataSource':{"
		"'S3DataType':'S3Prefix','S3Uri':'s3://bucket/w/agents/0123/',"
		"'S3DataDistributionType':'FullyReplicated'}},'InputMode':'File'}],"
		"'OutputDataConfig':{'S3OutputPath':'s3://bucket/w/runs/r1/train-1/sagemaker'},"
		"'ResourceConfig':{'InstanceType':'ml.trn1.32xlarge','InstanceCount':2,"
		"'VolumeSizeInGB':100},'StoppingCondition':{'MaxRuntimeInSeconds':432000}}");

	(void)state;
	/* The region is this machine's. */
	assert_string_equal(js_str(json_object_get(body, "Environment"), "STOKER_ORDER"),
			    "s3://bucket/w/runs/r1/train-1/order.json");
	assert_string_equal(js_str(json_object_get(body, "Environment"), "STOKER_WORK"),
			    "/tmp/stoker");
	json_object_del(body, "Environment");
	if (!json_equal(body, want)) {
		AUTO(auto_free) char *line = js_line(body);

		fail_msg("%s", line);
	}
}

static void every_option_becomes_its_member(void **state)
{
	(void)state;
	stands((struct ask){ .more = ",'warm_pool':'30m'" },
	       "ResourceConfig.KeepAlivePeriodInSeconds", "1800");
	stands((struct ask){ .more = ",'volume':'1.5GiB'" }, "ResourceConfig.VolumeSizeInGB", "2");
	stands((struct ask){ .more = ",'kms':{'volume':'alias/v','output':'alias/o'}" },
	       "ResourceConfig.VolumeKmsKeyId", "'alias/v'");
	stands((struct ask){ .more = ",'kms':{'volume':'alias/v','output':'alias/o'}" },
	       "OutputDataConfig.KmsKeyId", "'alias/o'");
	stands((struct ask){ .more = ",'training_plan':'arn:p'" }, "ResourceConfig.TrainingPlanArn",
	       "'arn:p'");
	stands((struct ask){ .more = ",'vpc':{'subnets':['subnet-1'],'security_groups':['sg-1']}" },
	       "VpcConfig", "{'SecurityGroupIds':['sg-1'],'Subnets':['subnet-1']}");
	stands((struct ask){ .more = ",'infra_check':true" }, "InfraCheckConfig",
	       "{'EnableInfraCheck':true}");
	stands((struct ask){ .more = ",'infra_check':false" }, "InfraCheckConfig", NULL);
	stands((struct ask){ .more = ",'profiler':false" }, "ProfilerConfig",
	       "{'DisableProfiler':true}");
	stands((struct ask){ .more = ",'profiler':true" }, "ProfilerConfig", NULL);
	stands((struct ask){ .plan = ",'benchmark':true" }, "ProfilerConfig",
	       "{'DisableProfiler':true}");
	stands((struct ask){ .plan = ",'benchmark':true" }, "DebugHookConfig", NULL);
	stands((struct ask){ .beside = ",'tags':{'team':'search'}" }, "Tags",
	       "[{'Key':'team','Value':'search'}]");
	stands((struct ask){ .more = ",'max_pending':'3h'" }, "StoppingCondition",
	       "{'MaxRuntimeInSeconds':432000,'MaxPendingTimeInSeconds':10800}");
}

static void groups_stand_in_place_of_a_type(void **state)
{
	(void)state;
	stands(
		(struct ask){
			.more = ",'instance_groups':[{'name':'a','instance':'trn1.2xlarge',"
				"'nodes':1},{'name':'b','instance':'ml.c5.xlarge','nodes':1}]" },
		"ResourceConfig",
		"{'InstanceGroups':[{'InstanceType':'ml.trn1.2xlarge','InstanceCount':1,"
		"'InstanceGroupName':'a'},{'InstanceType':'ml.c5.xlarge','InstanceCount':1,"
		"'InstanceGroupName':'b'}],'VolumeSizeInGB':100}");
}

static void channels_come_behind_the_agents(void **state)
{
	json_auto_t *body = good((struct ask){
		.more = ",'channels':[{'name':'train','url':'s3://b/d','mode':'FastFile',"
			"'distribution':'ShardedByS3Key'}]" });
	json_auto_t *want = quoted_json("{'ChannelName':'train','DataSource':{'S3DataSource':{"
					"'S3DataType':'S3Prefix','S3Uri':'s3://b/d',"
					"'S3DataDistributionType':'ShardedByS3Key'}},"
					"'InputMode':'FastFile'}");
	const json_t *channels = json_object_get(body, "InputDataConfig");

	(void)state;
	assert_int_equal(json_array_size(channels), 2);
	assert_true(json_equal(json_array_get(channels, 1), want));
}

/* The wait is never shorter than the run. */
static void limits_come_from_the_run(void **state)
{
	(void)state;
	stands((struct ask){ .plan = ",'limits':{'deadline_ms':3600500}" }, "StoppingCondition",
	       "{'MaxRuntimeInSeconds':3601}");
	stands((struct ask){ .plan = ",'limits':{'deadline_ms':9999999999999}" },
	       "StoppingCondition", "{'MaxRuntimeInSeconds':2419200}");
	stands((struct ask){ .more = ",'max_runtime':'2h'",
			     .plan = ",'limits':{'deadline_ms':3600000}" },
	       "StoppingCondition", "{'MaxRuntimeInSeconds':7200}");
	stands((struct ask){ .more = ",'spot':true,'max_runtime':'2h'",
			     .plan = ",'limits':{'queue_ms':600000}" },
	       "StoppingCondition", "{'MaxRuntimeInSeconds':7200,'MaxWaitTimeInSeconds':7800}");
	stands((struct ask){ .more = ",'spot':true,'max_wait':'1h'" }, "StoppingCondition",
	       "{'MaxRuntimeInSeconds':432000,'MaxWaitTimeInSeconds':432000}");
	stands((struct ask){ .more = ",'spot':true" }, "EnableManagedSpotTraining", "true");
	stands((struct ask){ .more = ",'spot':false" }, "EnableManagedSpotTraining", NULL);
}

static void metrics_of_the_training_alone(void **state)
{
	static const char plan[] = ",'metrics':[{'name':'loss','regex':'loss=([0-9.]+)'}]";
	AUTO(auto_free) char *regex = mem_zero(1, 502);
	AUTO(auto_free) char *too_long = NULL;

	(void)state;
	stands((struct ask){ .plan = plan }, "AlgorithmSpecification.MetricDefinitions",
	       "[{'Name':'loss','Regex':'loss=([0-9.]+)'}]");
	stands((struct ask){ .plan = plan, .phase = "precompile" },
	       "AlgorithmSpecification.MetricDefinitions", NULL);
	memset(regex, 'x', 501);
	too_long = mem_format(",'metrics':[{'name':'loss','regex':'%s'}]", regex);
	stands((struct ask){ .plan = too_long }, "AlgorithmSpecification.MetricDefinitions", NULL);
}

static void the_engine_copies_checkpoints_on_request_alone(void **state)
{
	(void)state;
	stands((struct ask){ .plan = ",'checkpoint':{'url':'s3://b/c','sync':'agent'}" },
	       "CheckpointConfig", NULL);
	stands((struct ask){ .plan = ",'checkpoint':{'url':'s3://b/c','sync':'engine'}" },
	       "CheckpointConfig", "{'S3Uri':'s3://b/c/r1'}");
	stands((struct ask){ .plan = ",'checkpoint':{'url':'s3://b/c','sync':'engine'}",
			     .phase = "precompile" },
	       "CheckpointConfig", NULL);
}

static void a_name_that_sagemaker_would_refuse_is_refused_here(void **state)
{
	static const char *const names[] = {
		"stk-a_b-train-1", "stk-r1-",
		"stk-01234567890123456789012345678901234567890123456789012345-t-1"
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_null(request((struct ask){ .job = names[i] }, &err));
		assert_int_equal(err->code, EXIT_SPEC);
		assert_non_null(err->hint);
	}
}

static void another_workspace_s_job_is_not_ours(void **state)
{
	json_auto_t *mine = good((struct ask){ 0 });
	json_auto_t *theirs = json_deep_copy(mine);

	(void)state;
	assert_true(sagemaker_is_same(mine, theirs));
	js_put_str(json_object_get(theirs, "OutputDataConfig"), "S3OutputPath", "s3://other");
	assert_false(sagemaker_is_same(mine, theirs));
	json_object_del(theirs, "OutputDataConfig");
	assert_false(sagemaker_is_same(mine, theirs));
}

/* ---- answers ---- */

static struct engine_status status_with(const char *description, struct reports reports, int agents)
{
	json_auto_t *value = quoted_json(description);
	struct engine_status status;

	sagemaker_status(value, &reports, agents, &status);
	return status;
}

static struct engine_status status_of(const char *description, struct reports reports)
{
	return status_with(description, reports, 0);
}

#define NO_REPORTS ((struct reports){ .node = -1 })

static void each_secondary_status_has_its_state(void **state)
{
	static const struct {
		const char *now;
		enum engine_state state;
	} rows[] = {
		{ "Starting", ENGINE_QUEUED },      { "Pending", ENGINE_QUEUED },
		{ "Interrupted", ENGINE_QUEUED },   { "Restarting", ENGINE_QUEUED },
		{ "Downloading", ENGINE_STARTING }, { "Training", ENGINE_RUNNING },
		{ "Uploading", ENGINE_RUNNING },    { "Stopping", ENGINE_STOPPING },
		{ "Dreaming", ENGINE_STARTING },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *description =
			mem_format("{'TrainingJobStatus':'InProgress','SecondaryStatus':'%s',"
				   "'SecondaryStatusTransitions':[{'StatusMessage':'so'}]}",
				   rows[i].now);
		AUTO(auto_free) char *reason = mem_format("%s: so", rows[i].now);
		struct engine_status status = status_of(description, NO_REPORTS);

		assert_int_equal(status.state, rows[i].state);
		assert_string_equal(status.reason, reason);
	}
}

static void a_status_nobody_knows_is_running_where_something_runs(void **state)
{
	static const char description[] =
		"{'TrainingJobStatus':'InProgress','SecondaryStatus':'Dreaming',"
		"'TrainingStartTime':1795252525.5}";

	(void)state;
	assert_int_equal(status_of(description, NO_REPORTS).state, ENGINE_RUNNING);
	assert_int_equal(status_of("{}", (struct reports){ .node = -1, .running = true }).state,
			 ENGINE_RUNNING);
	assert_int_equal(status_of("{'TrainingJobStatus':'Deleting'}", NO_REPORTS).state,
			 ENGINE_STOPPING);
}

static void reports_say_how_it_ended(void **state)
{
	static const char description[] =
		"{'TrainingJobStatus':'Failed','SecondaryStatus':'Failed',"
		"'FailureReason':'AlgorithmError: , exit code: 9',"
		"'TrainingEndTime':1795252525.5,'BillableTimeInSeconds':77}";
	struct engine_status status =
		status_of(description, (struct reports){ .node = 1, .exit = 3, .started.ms = 5 });

	(void)state;
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_true(status.exit_known && !status.silent);
	assert_int_equal(status.exit, 3);
	assert_int_equal(status.node, 1);
	assert_int_equal(status.billable_ms, 77000);
	assert_int_equal(status.started.ms, 5);
	assert_int_equal(status.last_seen.ms, INT64_C(1795252525500));
	assert_string_equal(status.reason, "AlgorithmError: , exit code: 9");
	/* Without reports the exit is the container's own. */
	status = status_of(description, NO_REPORTS);
	assert_true(status.exit_known && status.silent);
	assert_int_equal(status.exit, 9);
}

static void an_end_without_an_exit_has_the_services_words(void **state)
{
	struct engine_status status =
		status_of("{'TrainingJobStatus':'Failed','SecondaryStatus':'Failed',"
			  "'FailureReason':'CapacityError: Unable to provision'}",
			  NO_REPORTS);

	(void)state;
	assert_false(status.exit_known);
	assert_string_equal(status.reason, "CapacityError: Unable to provision");
	status = status_of("{'TrainingJobStatus':'Completed','SecondaryStatus':'Completed'}",
			   NO_REPORTS);
	assert_true(status.exit_known);
	assert_int_equal(status.exit, 0);
	assert_string_equal(status.reason, "");
	/* One of several agents has not said how it ended: it may not have been done. */
	status = status_with("{'TrainingJobStatus':'Completed','SecondaryStatus':'Completed'}",
			     (struct reports){ .node = -1, .there = 2, .final = 1 }, 2);
	assert_true(status.state == ENGINE_ENDED && status.silent && !status.exit_known);
	assert_string_equal(status.reason, "Completed, but 1 of 2 agents did not report their end");
	/* The leader was done, and nobody was told to end. */
	status = status_with("{'TrainingJobStatus':'Completed','SecondaryStatus':'Completed'}",
			     (struct reports){ .node = -1, .there = 2, .final = 1, .well = true },
			     2);
	assert_true(status.state == ENGINE_ENDED && status.exit_known && !status.silent);
	assert_int_equal(status.exit, 0);
	status = status_with("{'TrainingJobStatus':'Stopped','SecondaryStatus':'Stopped'}",
			     (struct reports){ .node = -1, .there = 2, .final = 1, .well = true },
			     2);
	assert_false(status.exit_known);
}

static void stopped_is_three_ends(void **state)
{
	static const char *const ends[] = { "Stopped", "MaxRuntimeExceeded",
					    "MaxWaitTimeExceeded" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		AUTO(auto_free)
		char *description = mem_format(
			"{'TrainingJobStatus':'Stopped','SecondaryStatus':'%s'}", ends[i]);
		struct engine_status status = status_of(description, NO_REPORTS);

		assert_int_equal(status.state, ENGINE_ENDED);
		assert_false(status.exit_known);
		assert_string_equal(status.reason, ends[i]);
	}
}

static void exits_in_reasons(void **state)
{
	static const struct {
		const char *reason;
		int exit; /* -1: not known */
	} rows[] = {
		{ "AlgorithmError: , exit code: 137", 137 },
		{ "AlgorithmError: ExecuteUserScriptError:\\nExitCode 1\\nX", 1 },
		{ "AlgorithmError: exit code: none", -1 },
		{ "exit code: 99999999999999999999", -1 },
		{ "CapacityError: no", -1 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *description =
			mem_format("{'TrainingJobStatus':'Failed','SecondaryStatus':'Failed',"
				   "'FailureReason':'%s'}",
				   rows[i].reason);
		struct engine_status status = status_of(description, NO_REPORTS);

		assert_int_equal(status.exit_known ? status.exit : -1, rows[i].exit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_that_is_sent),
		cmocka_unit_test(every_option_becomes_its_member),
		cmocka_unit_test(groups_stand_in_place_of_a_type),
		cmocka_unit_test(channels_come_behind_the_agents),
		cmocka_unit_test(limits_come_from_the_run),
		cmocka_unit_test(metrics_of_the_training_alone),
		cmocka_unit_test(the_engine_copies_checkpoints_on_request_alone),
		cmocka_unit_test(a_name_that_sagemaker_would_refuse_is_refused_here),
		cmocka_unit_test(another_workspace_s_job_is_not_ours),
		cmocka_unit_test(each_secondary_status_has_its_state),
		cmocka_unit_test(a_status_nobody_knows_is_running_where_something_runs),
		cmocka_unit_test(reports_say_how_it_ended),
		cmocka_unit_test(an_end_without_an_exit_has_the_services_words),
		cmocka_unit_test(stopped_is_three_ends),
		cmocka_unit_test(exits_in_reasons),
	};

	setenv("AWS_REGION", "eu-west-1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
