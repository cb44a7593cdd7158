/*
 * What AWS Batch is sent for a plan, and what is made of its words: devices, memory and mounts
 * from the plan alone, the same name for the same content, and waits and ends as a person reads
 * them.
 */
#include "tests/unit/quoted.h"

#include "jobs/engine/batch/batch_internal.h"

#define PLAN                                                                                       \
	"{'name':'m5','engine':'batch','nodes':%d,'spec':{'image':'repo/x:1',"                     \
	"'batch':{'job_queue':'q','agent':'/opt/stoker','scheduling_priority':7,"                  \
	"'share_identifier':'m5'},"                                                                \
	"'resources':{'instance':'trn1.32xlarge','efa':'auto','shm':'16GiB'},'tags':{'a':'b'},"    \
	"'mounts':%s},'limits':{'deadline_ms':%d},'instance':%s}"
#define P4D                                                                                        \
	"{'type':'p4d.24xlarge','accelerator':'nvidia','gpus':8,'vcpus':96,"                       \
	"'ram_mib':1179648,'efa':4}"
#define TRN1 "{'type':'trn1.32xlarge','devices':16,'vcpus':128,'ram_mib':524288,'efa':8}"

static json_t *plan_of(int nodes, const char *mounts, int deadline_ms, const char *instance)
{
	AUTO(auto_free) char *text = mem_format(PLAN, nodes, mounts, deadline_ms, instance);

	return quoted_json(text);
}

static json_t *definition_of(const json_t *plan, int nodes)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *definition;

	if (batch_definition(plan, nodes, &definition, &err) < 0)
		fail_msg("%s", err->message);
	return definition;
}

static const json_t *range_of(const json_t *definition)
{
	return json_array_get(js_path(definition, "nodeProperties.nodeRangeProperties"), 0);
}

static size_t devices_named(const json_t *container, const char *prefix)
{
	size_t count = 0, i;
	json_t *device;

	json_array_foreach (js_path(container, "linuxParameters.devices"), i, device)
		count += strncmp(js_str(device, "hostPath"), prefix, strlen(prefix)) == 0;
	return count;
}

static const char *required(const json_t *container, size_t i)
{
	return js_str(json_array_get(json_object_get(container, "resourceRequirements"), i),
		      "value");
}

static void a_machine_is_handed_in_whole(void **state)
{
	json_auto_t *plan = plan_of(4, "[]", 0, TRN1), *definition = definition_of(plan, 4);
	const json_t *container = json_object_get(range_of(definition), "container");
	const json_t *limit = json_array_get(json_object_get(container, "ulimits"), 0);

	(void)state;
	assert_string_equal(js_str(definition, "type"), "multinode");
	assert_string_equal(js_str(range_of(definition), "targetNodes"), "0:");
	assert_string_equal(js_str(container, "instanceType"), "trn1.32xlarge");
	assert_int_equal(devices_named(container, "/dev/neuron"), 16);
	assert_int_equal(devices_named(container, "/dev/infiniband/uverbs"), 8);
	assert_string_equal(required(container, 0), "128");
	/* The kernel and the ECS agent keep 7 %. */
	assert_string_equal(required(container, 1), "487588");
	assert_int_equal(
		js_int(json_object_get(container, "linuxParameters"), "sharedMemorySize", 0),
		16 * 1024);
	assert_string_equal(js_str(limit, "name"), "memlock");
	assert_int_equal(js_int(limit, "softLimit", 0), -1);
	assert_int_equal(js_int(limit, "hardLimit", 0), -1);
	assert_null(json_object_get(definition, "timeout"));
}

static const json_t *limit_named(const json_t *container, const char *name)
{
	json_t *limit;
	size_t i;

	json_array_foreach (json_object_get(container, "ulimits"), i, limit)
		if (js_is(limit, "name", name))
			return limit;
	return NULL;
}

static json_t *main_of(const json_t *range)
{
	const json_t *task = json_array_get(js_path(range, "ecsProperties.taskProperties"), 0),
		     *one;
	size_t i;

	json_array_foreach (json_object_get(task, "containers"), i, one)
		if (js_is(one, "name", BATCH_MAIN))
			return (json_t *)one;
	return NULL;
}

/* The main container has them in a range of nodes too; the container beside it, which copies files,
 * has none. */
static void gpus_are_a_resource_of_the_main_container(void **state)
{
	json_auto_t *plan = plan_of(2, "[]", 0, P4D), *plain = definition_of(plan, 2);
	const json_t *alone = json_object_get(range_of(plain), "container");
	json_auto_t *helped = NULL;
	const json_t *main, *containers;

	(void)state;
	js_put_str(js_path(plan, "spec.batch"), "helper_image", "repo/stoker:1");
	json_object_del(js_path(plan, "spec.batch"), "agent");
	helped = definition_of(plan, 2);
	main = main_of(range_of(helped));
	containers = json_object_get(
		json_array_get(js_path(range_of(helped), "ecsProperties.taskProperties"), 0),
		"containers");
	assert_int_equal(json_array_size(containers), 2);
	assert_string_equal(required(alone, 2), "8");
	assert_string_equal(required(main, 2), "8");
	assert_null(required(json_array_get(containers, 0), 2));
	assert_int_equal(devices_named(alone, "/dev/neuron"), 0);
	assert_int_equal(devices_named(main, "/dev/infiniband/uverbs"), 4);
}

static void a_limit_of_the_spec_takes_the_place_of_ours(void **state)
{
	json_auto_t *plan = plan_of(2, "[]", 0, P4D), *ours = definition_of(plan, 2);
	const json_t *container = json_object_get(range_of(ours), "container");
	json_auto_t *own = NULL;

	(void)state;
	assert_int_equal(js_int(limit_named(container, "memlock"), "hardLimit", 0), -1);
	assert_int_equal(js_int(limit_named(container, "nofile"), "softLimit", 0), 65535);
	js_put(js_path(plan, "spec.batch"), "ulimits",
	       quoted_json("[{'name':'nofile','soft':1000,'hard':2000},{'name':'core','soft':0}]"));
	own = definition_of(plan, 2);
	container = json_object_get(range_of(own), "container");
	assert_int_equal(json_array_size(json_object_get(container, "ulimits")), 3);
	assert_int_equal(js_int(limit_named(container, "memlock"), "softLimit", 0), -1);
	assert_int_equal(js_int(limit_named(container, "nofile"), "softLimit", 0), 1000);
	assert_int_equal(js_int(limit_named(container, "nofile"), "hardLimit", 0), 2000);
	assert_int_equal(js_int(limit_named(container, "core"), "hardLimit", -1), 0);
	/* Without EFA nothing opens that many files. */
	js_put(json_object_get(plan, "instance"), "efa", json_integer(0));
	json_object_del(js_path(plan, "spec.batch"), "ulimits");
	json_decref(own);
	own = definition_of(plan, 2);
	container = json_object_get(range_of(own), "container");
	assert_int_equal(json_array_size(json_object_get(container, "ulimits")), 1);
}

static void one_node_needs_no_efa_and_names_no_machine(void **state)
{
	json_auto_t *plan = plan_of(1, "[]", 3600000, TRN1), *definition = definition_of(plan, 1);
	const json_t *container = json_object_get(definition, "containerProperties");

	(void)state;
	assert_int_equal(devices_named(container, "/dev/neuron"), 16);
	assert_int_equal(devices_named(container, "/dev/infiniband"), 0);
	assert_null(json_object_get(container, "instanceType"));
	assert_int_equal(
		js_int(json_object_get(definition, "timeout"), "attemptDurationSeconds", 0),
		3600 + 600);
}

static void an_unknown_machine_is_not_asked_for(void **state)
{
	json_auto_t *plan = plan_of(1, "[]", 0, "{'type':'m9.huge'}");
	json_auto_t *definition = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(batch_definition(plan, 1, &definition, &err), -1);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_non_null(strstr(err->message, "does not say how many vCPUs and how much memory"));
}

static void mounts_are_the_hosts_or_efs(void **state)
{
	json_auto_t *plan = plan_of(1,
				    "[{'source':'/fsx','target':'/data'},"
				    "{'source':'efs:fs-1/a/b','target':'/home'}]",
				    0, TRN1);
	json_auto_t *definition = definition_of(plan, 1);
	json_auto_t *refused = plan_of(1, "[{'source':'fsx:fs-1/a','target':'/data'}]", 0, TRN1);
	const json_t *container = json_object_get(definition, "containerProperties");
	const json_t *volumes = json_object_get(container, "volumes");
	const json_t *efs = json_object_get(json_array_get(volumes, 1), "efsVolumeConfiguration");
	AUTO(err_freep) struct err *err = NULL;
	json_t *none = NULL;

	(void)state;
	assert_string_equal(js_str(js_path(json_array_get(volumes, 0), "host"), "sourcePath"),
			    "/fsx");
	assert_string_equal(js_str(efs, "fileSystemId"), "fs-1");
	assert_string_equal(js_str(efs, "rootDirectory"), "/a/b");
	assert_string_equal(js_str(json_array_get(json_object_get(container, "mountPoints"), 1),
				   "containerPath"),
			    "/home");
	assert_int_equal(batch_definition(refused, 1, &none, &err), -1);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_string_equal(err->field, "mounts[0].source");
}

static void the_same_content_has_the_same_name(void **state)
{
	json_auto_t *plan = plan_of(4, "[]", 0, TRN1);
	json_auto_t *one = definition_of(plan, 4), *same = definition_of(plan, 4);
	json_auto_t *other = definition_of(plan, 3);
	const char *name = js_str(one, "jobDefinitionName");

	(void)state;
	assert_int_equal(strlen(name), strlen("stk-") + 16);
	assert_string_equal(name, js_str(same, "jobDefinitionName"));
	assert_string_not_equal(name, js_str(other, "jobDefinitionName"));
}

static void a_submission_says_what_differs(void **state)
{
	json_auto_t *plan = plan_of(4, "[]", 0, TRN1), *definition = definition_of(plan, 4);
	json_auto_t *env = json_pack("{s:s}", "STOKER_ORDER", "s3://b/o");
	const struct engine_job job = {
		.name = "stk-r-train-1", .run = "r", .phase = "train", .nodes = 4
	};
	json_auto_t *body = batch_submission(plan, &job, definition, env);
	const json_t *node =
		json_array_get(js_path(body, "nodeOverrides.nodePropertyOverrides"), 0);

	(void)state;
	assert_string_equal(js_str(body, "jobName"), "stk-r-train-1");
	assert_string_equal(js_str(body, "shareIdentifier"), "m5");
	assert_int_equal(js_int(body, "schedulingPriorityOverride", 0), 7);
	assert_string_equal(js_str(json_object_get(body, "tags"), "stoker:run"), "r");
	assert_string_equal(js_str(json_object_get(body, "tags"), "a"), "b");
	assert_true(js_bool(body, "propagateTags", false));
	assert_string_equal(
		js_str(json_array_get(js_path(node, "containerOverrides.environment"), 0), "value"),
		"s3://b/o");
	assert_null(json_object_get(body, "containerOverrides"));
}

static void why_it_waits_is_explained(void **state)
{
	static const struct {
		const char *status, *reason;
		int64_t waited_ms;
		const char *words; /* NULL: nothing to tell */
		bool never;
	} rows[] = {
		{ "RUNNABLE", NULL, 1000, NULL, false },
		{ "SUBMITTED", "", 3600000, NULL, false },
		{ "RUNNABLE", NULL, 600000, "maxvCpus", false },
		{ "RUNNABLE", "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - x", 1, "AWS Batch retries",
		  false },
		{ "RUNNABLE", "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - x", 1,
		  "resources.instance", true },
		{ "RUNNABLE", "MISCONFIGURATION:SOMETHING_NEW - x", 1, "can never run", true },
		{ "RUNNABLE", "UNDETERMINED - x", 1, "subnets", false },
		{ "PENDING", "a word of tomorrow", 1, "PENDING: a word of tomorrow", false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(sb_release) struct sb words = SB_INIT;

		batch_wait_words(rows[i].status, rows[i].reason, rows[i].waited_ms, &words);
		if (rows[i].words ? !strstr(words.text, rows[i].words) : words.len > 0)
			fail_msg("%zu: %s", i, words.text);
		assert_int_equal(batch_never_runs(rows[i].reason), rows[i].never);
	}
}

static void an_end_is_told_in_the_services_words(void **state)
{
	static const struct {
		const char *job, *words;
	} rows[] = {
		{ "{}", "AWS Batch gives no reason" },
		{ "{\"statusReason\":\"x\",\"isTerminated\":true}", "it was terminated: x" },
		{ "{\"statusReason\":\"x\",\"isCancelled\":true}", "it was cancelled: x" },
		{ "{\"statusReason\":\"stoker: node 2 failed: y\",\"isTerminated\":true}",
		  "node 2 failed: y" },
		{ "{\"statusReason\":\"Task failed to start\",\"container\":{\"reason\":"
		  "\"CannotPullContainerError: z\"}}",
		  "Task failed to start; CannotPullContainerError: z" },
		{ "{\"statusReason\":\"a\",\"ecsProperties\":{\"taskProperties\":[{\"containers\":"
		  "[{\"name\":\"stoker-agent\",\"reason\":\"b\"},{\"name\":\"main\",\"reason\":"
		  "\"c\"}]}]}}",
		  "a; c" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(sb_release) struct sb words = SB_INIT;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *job = NULL;

		assert_int_equal(js_parse(rows[i].job, strlen(rows[i].job), "a job", &job, &err),
				 0);
		batch_end_words(job, &words);
		assert_string_equal(words.text, rows[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_is_handed_in_whole),
		cmocka_unit_test(gpus_are_a_resource_of_the_main_container),
		cmocka_unit_test(a_limit_of_the_spec_takes_the_place_of_ours),
		cmocka_unit_test(one_node_needs_no_efa_and_names_no_machine),
		cmocka_unit_test(an_unknown_machine_is_not_asked_for),
		cmocka_unit_test(mounts_are_the_hosts_or_efs),
		cmocka_unit_test(the_same_content_has_the_same_name),
		cmocka_unit_test(a_submission_says_what_differs),
		cmocka_unit_test(why_it_waits_is_explained),
		cmocka_unit_test(an_end_is_told_in_the_services_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
