/*
 * The bodies of RegisterJobDefinition and SubmitJob, from a plan alone: see batch.h. Both the
 * requests shown to a person and those sent are built here.
 *
 * How accelerators are asked for is in jobs/base/accelerator.c. Where permissions of a device are
 * given they are all three (AWS Batch User Guide, "Elastic Fabric Adapter").
 */
#include <string.h>

#include "jobs/base/accelerator.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/delivery/agent_delivery.h"

#define NAME_DIGITS 16
#define MIB         ((uint64_t)1 << 20)

/* Resources of the helper container, which copies files and ends. */
#define HELPER_VCPUS 1
#define HELPER_MIB   128

/* Memory that the kernel and the ECS agent keep: a job that asks for more than the rest waits for
 * ever. */
#define KEPT_PERCENT 7
#define KEPT_MIB     1024

/* The driver ends a run at its deadline; the service does it later, if no driver is left. */
#define TIMEOUT_SLACK_S 600
#define TIMEOUT_LEAST_S 60 /* least value of attemptDurationSeconds */

static bool uses_helper(const json_t *plan)
{
	return agent_delivery_way(plan) == AGENT_DELIVERY_HELPER;
}

static int64_t has(const json_t *plan, const char *what, int64_t fallback)
{
	return js_int(json_object_get(plan, "instance"), what, fallback);
}

static int refuse(struct err **err, const char *field, const char *hint, const char *fmt, ...)
	STK_PRINTF(4, 5);

static int refuse(struct err **err, const char *field, const char *hint, const char *fmt, ...)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	va_list args;

	va_start(args, fmt);
	sb_addv(&words, fmt, args);
	va_end(args);
	err_set(err, EXIT_SPEC, "%s", words.text);
	err_hint(err, "%s", hint);
	return err_field(err, field);
}

/* ---- the machine ------------------------------------------------------------------ */

static void add_devices(json_t *devices, const char *name, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		AUTO(auto_free) char *path = mem_format("%s%lld", name, (long long)i);

		json_array_append_new(devices, json_pack("{s:s, s:s, s:[s, s, s]}", "hostPath",
							 path, "containerPath", path, "permissions",
							 "READ", "WRITE", "MKNOD"));
	}
}

static bool wants_efa(const json_t *plan, int nodes)
{
	const json_t *efa = js_path(json_object_get(plan, "spec"), "resources.efa");

	if (json_is_boolean(efa))
		return json_is_true(efa);
	return nodes > 1; /* auto */
}

static const struct accelerator *kind_of(const json_t *plan)
{
	return accelerator_of(json_object_get(plan, "instance"));
}

/* Returns how many of them a node has. */
static int64_t count_of(const json_t *plan)
{
	return accelerator_count(json_object_get(plan, "instance"));
}

static json_t *linux_of(const json_t *plan, int nodes)
{
	const char *shm = batch_spec_text(plan, "resources.shm");
	json_t *parameters = json_object();
	json_auto_t *devices = json_array();
	uint64_t bytes = 0;

	if (kind_of(plan) && kind_of(plan)->files)
		add_devices(devices, kind_of(plan)->files, count_of(plan));
	if (wants_efa(plan, nodes))
		add_devices(devices, "/dev/infiniband/uverbs", has(plan, "efa", 0));
	if (json_array_size(devices) > 0)
		js_put(parameters, "devices", TAKE(devices));
	if (shm && text_size(shm, &bytes))
		js_put(parameters, "sharedMemorySize", json_integer((json_int_t)(bytes / MIB)));
	/* The agent reaps its children; the container's init process reaps all others. */
	js_put(parameters, "initProcessEnabled", json_true());
	return parameters;
}

static json_t *limit(const char *name, int64_t soft, int64_t hard)
{
	return json_pack("{s:s, s:I, s:I}", "name", name, "softLimit", (json_int_t)soft,
			 "hardLimit", (json_int_t)hard);
}

/* Devices of EFA and Neuron lock memory, and EFA opens many files (65535 is that of the Neuron
 * sample for AWS Batch). What the spec says of a limit counts instead. */
static json_t *limits_of(const json_t *plan)
{
	static const struct {
		const char *name;
		int64_t value;
		const char *with; /* figure of a machine; NULL: all */
	} ours[] = { { "memlock", -1, NULL }, { "nofile", 65535, "efa" } };
	const json_t *own = js_path(json_object_get(plan, "spec"), "batch.ulimits"), *one;
	json_t *limits = json_array();
	size_t i, n;

	json_array_foreach (own, i, one)
		json_array_append_new(limits, limit(js_str(one, "name"), js_int(one, "soft", 0),
						    js_int(one, "hard", js_int(one, "soft", 0))));
	for (n = 0; n < STK_LENGTH(ours); n++) {
		bool is_said = false;

		json_array_foreach (own, i, one)
			is_said |= js_is(one, "name", ours[n].name);
		if (!is_said && (!ours[n].with || has(plan, ours[n].with, 0) > 0))
			json_array_append_new(limits,
					      limit(ours[n].name, ours[n].value, ours[n].value));
	}
	return limits;
}

static json_t *resource(const char *type, int64_t count)
{
	AUTO(auto_free) char *value = mem_format("%lld", (long long)count);

	return json_pack("{s:s, s:s}", "type", type, "value", value);
}

static json_t *resources(int64_t vcpus, int64_t mib)
{
	return json_pack("[o, o]", resource("VCPU", vcpus), resource("MEMORY", mib));
}

/* Returns what a machine with so much memory leaves to containers. */
static int64_t left_of(int64_t mib)
{
	int64_t kept = mib * KEPT_PERCENT / 100;

	return mib - (kept > KEPT_MIB ? kept : KEPT_MIB);
}

/* Returns all of a machine's resources, less those of the helper container; NULL if the plan does
 * not have them. */
static json_t *resources_of(const json_t *plan)
{
	int64_t mib = has(plan, "ram_mib", 0);
	int64_t vcpus = has(plan, "vcpus", 0);
	bool is_helped = uses_helper(plan);
	const struct accelerator *kind = kind_of(plan);
	json_t *ret;

	if (mib <= 0 || vcpus <= 0)
		return NULL;
	mib = left_of(mib) - (is_helped ? HELPER_MIB : 0);
	ret = resources(vcpus - (is_helped ? HELPER_VCPUS : 0), mib);
	if (kind && kind->resource && count_of(plan) > 0)
		json_array_append_new(ret, resource(kind->resource, count_of(plan)));
	return ret;
}

int batch_check_memory(const json_t *plan, int64_t mib, struct err **err)
{
	int64_t asked = left_of(has(plan, "ram_mib", 0));

	if (asked <= left_of(mib))
		return 0;
	return refuse(err, "resources.instance",
		      "correct 'ram' of the type in your own catalogue (STOKER_INSTANCES)",
		      "a job asks for %lld MiB; a machine of '%s' has %lld MiB and leaves it %lld",
		      (long long)asked, batch_spec_text(plan, "resources.instance"), (long long)mib,
		      (long long)left_of(mib));
}

int64_t batch_check_efa(const json_t *plan)
{
	return wants_efa(plan, (int)js_int(plan, "nodes", 1)) ? has(plan, "efa", 0) : 0;
}

/* ---- mounts ----------------------------------------------------------------------- */

/* "efs:ID/PATH"; rootDirectory must be absolute. */
static json_t *efs_of(const char *place)
{
	size_t len = strcspn(place, "/");
	json_t *efs = json_object();

	js_put(efs, "fileSystemId", json_stringn(place, len));
	js_put_str(efs, "rootDirectory", place[len] ? place + len : "/");
	js_put_str(efs, "transitEncryption", "ENABLED");
	return efs;
}

static int add_mount(const json_t *mount, size_t number, json_t *volumes, json_t *points,
		     struct err **err)
{
	AUTO(auto_free) char *name = mem_format("mount-%zu", number);
	AUTO(auto_free) char *field = mem_format("mounts[%zu].source", number);
	const char *source = js_str(mount, "source");
	json_t *volume;

	if (text_starts(source, "fsx:"))
		return refuse(err, field,
			      "mount the file system on the machines, in the launch template of "
			      "the compute environment, and name the host's path here",
			      "'%s': AWS Batch cannot mount FSx for Lustre", source);
	if (!text_starts(source, "efs:") && source[0] != '/')
		return refuse(err, field, "name a path of the host, or efs:ID/PATH",
			      "'%s' is not an absolute path", source);
	volume = json_pack("{s:s}", "name", name);
	if (source[0] == '/')
		js_put(volume, "host", json_pack("{s:s}", "sourcePath", source));
	else
		js_put(volume, "efsVolumeConfiguration", efs_of(source + 4));
	json_array_append_new(volumes, volume);
	json_array_append_new(points,
			      json_pack("{s:s, s:s, s:b}", "sourceVolume", name, "containerPath",
					js_str(mount, "target"), "readOnly", 0));
	return 0;
}

static int mounts_of(const json_t *plan, json_t *volumes, json_t *points, struct err **err)
{
	json_t *mount;
	size_t i;

	json_array_foreach (js_path(json_object_get(plan, "spec"), "mounts"), i, mount)
		if (add_mount(mount, i, volumes, points, err) < 0)
			return -1;
	return 0;
}

/* ---- the container ---------------------------------------------------------------- */

static void put_list(json_t *object, const char *name, json_t *list)
{
	if (json_array_size(list) > 0)
		js_put(object, name, list);
	else
		json_decref(list);
}

/* The default mode, non-blocking, drops lines. */
static json_t *log_of(void)
{
	return json_pack("{s:s, s:{s:s}}", "logDriver", "awslogs", "options", "mode", "blocking");
}

/* Members common to a container in a task and a container alone. */
static int container_of(const json_t *plan, int nodes, json_t **ret, json_t *volumes,
			struct err **err)
{
	json_auto_t *container = json_object(), *points = json_array();
	json_auto_t *helped = uses_helper(plan) ? agent_delivery_helper_mounts(true) : NULL;
	json_auto_t *asked = resources_of(plan);

	/* A plan of an earlier stoker may name a type that no catalogue has. */
	if (!asked)
		return refuse(err, "resources.instance",
			      "add the type to your own catalogue (STOKER_INSTANCES), and begin "
			      "another run",
			      "the plan does not say how many vCPUs and how much memory '%s' has",
			      batch_spec_text(plan, "resources.instance"));
	if (mounts_of(plan, volumes, points, err) < 0)
		return -1;
	if (helped)
		json_array_extend(points, helped);
	js_put_str(container, "image", engine_image(plan));
	js_put(container, "command", agent_delivery_command(plan));
	js_put(container, "resourceRequirements", TAKE(asked));
	js_put(container, "linuxParameters", linux_of(plan, nodes));
	js_put(container, "ulimits", limits_of(plan));
	put_list(container, "mountPoints", TAKE(points));
	js_put(container, "logConfiguration", log_of());
	*ret = TAKE(container);
	return 0;
}

/* For a single-node job the compute environment chooses the machine. */
static void put_machine(json_t *properties, const json_t *plan, int nodes, const char *name)
{
	if (nodes > 1)
		js_put_str(properties, name, batch_spec_text(plan, "resources.instance"));
}

/* The properties of a job of one container. */
static int alone(const json_t *plan, int nodes, json_t **ret, struct err **err)
{
	json_auto_t *volumes = json_array();

	if (container_of(plan, nodes, ret, volumes, err) < 0)
		return -1;
	js_put_str(*ret, "jobRoleArn", batch_spec_text(plan, "batch.job_role"));
	js_put_str(*ret, "executionRoleArn", batch_spec_text(plan, "batch.execution_role"));
	put_list(*ret, "volumes", TAKE(volumes));
	put_machine(*ret, plan, nodes, "instanceType");
	return 0;
}

/* The helper container, which copies the agent and ends before the main one runs. */
static json_t *helper_of(const json_t *plan)
{
	json_t *helper = agent_delivery_helper(plan);

	js_put(helper, "resourceRequirements", resources(HELPER_VCPUS, HELPER_MIB));
	js_put(helper, "logConfiguration", log_of());
	return helper;
}

/* The properties of a job with a helper container. */
static int helped(const json_t *plan, int nodes, json_t **ret, struct err **err)
{
	json_auto_t *volumes = json_array(), *container = NULL, *task = json_object();
	json_auto_t *more = agent_delivery_helper_volumes();

	if (container_of(plan, nodes, &container, volumes, err) < 0)
		return -1;
	js_put_str(container, "name", BATCH_MAIN);
	js_put(container, "essential", json_true());
	js_put(container, "dependsOn", agent_delivery_helper_depends());
	json_array_extend(volumes, more);
	js_put(task, "containers", json_pack("[o, O]", helper_of(plan), container));
	js_put_str(task, "taskRoleArn", batch_spec_text(plan, "batch.job_role"));
	js_put_str(task, "executionRoleArn", batch_spec_text(plan, "batch.execution_role"));
	put_list(task, "volumes", TAKE(volumes));
	*ret = json_pack("{s:[O]}", "taskProperties", task);
	return 0;
}

/* ---- the definition --------------------------------------------------------------- */

static void put_timeout(json_t *definition, const json_t *plan)
{
	int64_t ms = js_int(json_object_get(plan, "limits"), "deadline_ms", 0);
	int64_t seconds = ms / 1000 + TIMEOUT_SLACK_S;

	if (ms > 0)
		js_put(definition, "timeout",
		       json_pack("{s:I}", "attemptDurationSeconds",
				 (json_int_t)(seconds < TIMEOUT_LEAST_S ? TIMEOUT_LEAST_S
									: seconds)));
}

static int check_nodes(int nodes, struct err **err)
{
	if (nodes <= BATCH_NODES_MAX)
		return 0;
	return refuse(err, "resources.nodes", "use fewer nodes",
		      "AWS Batch runs at most %d nodes in one job", BATCH_NODES_MAX);
}

/* A single range for all nodes: they are alike. */
static json_t *nodes_of(const json_t *plan, int nodes, const char *kind, json_t *properties)
{
	json_t *range = json_pack("{s:s, s:O}", "targetNodes", "0:", kind, properties);

	if (strcmp(kind, "ecsProperties") == 0)
		js_put(range, "instanceTypes",
		       json_pack("[s]", batch_spec_text(plan, "resources.instance")));
	return json_pack("{s:i, s:i, s:[o]}", "numNodes", nodes, "mainNode", 0,
			 "nodeRangeProperties", range);
}

int batch_definition(const json_t *plan, int nodes, json_t **ret, struct err **err)
{
	json_auto_t *definition = json_object(), *properties = NULL;
	bool is_helped = uses_helper(plan);
	char hex[SHA256_HEX];
	AUTO(auto_free) char *name = NULL;

	if (check_nodes(nodes, err) < 0 ||
	    (is_helped ? helped : alone)(plan, nodes, &properties, err) < 0)
		return -1;
	js_put_str(definition, "type", nodes > 1 ? "multinode" : "container");
	if (nodes > 1)
		js_put(definition, "nodeProperties",
		       nodes_of(plan, nodes, is_helped ? "ecsProperties" : "container",
				properties));
	else
		js_put(definition, is_helped ? "ecsProperties" : "containerProperties",
		       TAKE(properties));
	js_put(definition, "platformCapabilities", json_pack("[s]", "EC2"));
	js_put(definition, "retryStrategy",
	       json_pack("{s:i, s:[{s:s, s:s}]}", "attempts", 1, "evaluateOnExit", "onReason", "*",
			 "action", "EXIT"));
	put_timeout(definition, plan);
	js_digest(definition, hex);
	name = strstr(engine_image(plan), ENGINE_NO_DIGEST)
		       ? mem_copy("stk-" ENGINE_NO_HASH)
		       : mem_format("stk-%.*s", NAME_DIGITS, hex);
	js_put_str(definition, "jobDefinitionName", name);
	*ret = TAKE(definition);
	return 0;
}

/* ---- the submission --------------------------------------------------------------- */

static json_t *tags_of(const json_t *plan, const struct engine_job *job)
{
	json_t *tags = json_object(), *value;
	const char *name;

	/* Copies: the request is wiped after sending, the plan is not. */
	json_object_foreach (js_path(json_object_get(plan, "spec"), "tags"), name, value)
		js_put(tags, name, json_deep_copy(value));
	/* No order exists for a plan alone; nor is such a job searched for later. */
	js_put_str(tags, BATCH_NONCE_TAG, job->order ? js_str(job->order, "nonce") : NULL);
	js_put_str(tags, "stoker:run", job->run);
	js_put_str(tags, "stoker:name", js_str(plan, "name"));
	js_put_str(tags, "stoker:phase", job->phase);
	return tags;
}

static json_t *environment_of(const json_t *env)
{
	json_t *list = json_array(), *value;
	const char *name;

	json_object_foreach ((json_t *)env, name, value)
		json_array_append_new(list, json_pack("{s:s, s:O}", "name", name, "value", value));
	return list;
}

/* Overrides of the main container, in the shape that the definition has. */
static json_t *overrides_of(bool is_helped, const json_t *env)
{
	json_t *list = environment_of(env);

	if (is_helped)
		return json_pack("{s:[{s:[{s:s, s:o}]}]}", "taskProperties", "containers", "name",
				 BATCH_MAIN, "environment", list);
	return json_pack("{s:o}", "environment", list);
}

static void put_overrides(json_t *body, const json_t *plan, const json_t *definition,
			  const json_t *env)
{
	bool is_helped = uses_helper(plan);
	const char *name = is_helped ? "ecsPropertiesOverride" : "containerOverrides";
	json_t *overrides = overrides_of(is_helped, env);

	if (json_object_get(definition, "nodeProperties"))
		js_put(body, "nodeOverrides",
		       json_pack("{s:[{s:s, s:o}]}", "nodePropertyOverrides", "targetNodes",
				 "0:", name, overrides));
	else
		js_put(body, name, overrides);
}

json_t *batch_submission(const json_t *plan, const struct engine_job *job, const json_t *definition,
			 const json_t *env)
{
	const json_t *priority =
		js_path(json_object_get(plan, "spec"), "batch.scheduling_priority");
	json_t *body = json_object();

	js_put_str(body, "jobName", job->name);
	js_put_str(body, "jobQueue", batch_spec_text(plan, "batch.job_queue"));
	js_put_str(body, "jobDefinition", js_str(definition, "jobDefinitionName"));
	js_put_str(body, "shareIdentifier", batch_spec_text(plan, "batch.share_identifier"));
	if (json_is_integer(priority))
		js_put(body, "schedulingPriorityOverride", json_incref((json_t *)priority));
	put_overrides(body, plan, definition, env);
	js_put(body, "tags", tags_of(plan, job));
	js_put(body, "propagateTags", json_true());
	return body;
}
