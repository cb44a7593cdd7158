/* Builds the body of CreateTrainingJob from a plan: see sagemaker_internal.h. Names and limits are
 * those of sagemaker:CreateTrainingJobRequest in botocore 1.43. */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/delivery/agent_delivery.h"
#include "jobs/engine/sagemaker/sagemaker_internal.h"
#include "jobs/engine/sagemaker/sagemaker_toolkit.h"
#include "jobs/store/local_store_dir.h"
#include "jobs/store/order.h"

#define METRICS_MAX      40
#define METRIC_REGEX_MAX 500
#define ENTRYPOINT_MAX   256 /* length of each word */
#define ENV_VALUE_MAX    512
#define IMAGE_MAX        255
#define URI_MAX          1024
#define LONGEST_S        2419200 /* 28 days */
/* 5 days: the quota "Longest run time for a training job" of an account that has not asked for more
 * (AWS General Reference, "Amazon SageMaker endpoints and quotas"). */
#define USUAL_S 432000

static const json_t *spec_value(const struct sagemaker *sagemaker, const char *path)
{
	AUTO(auto_free) char *dotted = mem_format("spec.%s", path);

	return js_path(sagemaker->plan, dotted);
}

static const char *spec_text(const struct sagemaker *sagemaker, const char *path)
{
	return json_string_value(spec_value(sagemaker, path));
}

/* Returns the seconds of a duration, rounded up; `none` if the text is a word or absent. */
static int64_t spec_seconds(const struct sagemaker *sagemaker, const char *path, int64_t none)
{
	const char *text = spec_text(sagemaker, path);
	int64_t ms;

	return text && text_duration(text, &ms) ? (ms + 999) / 1000 : none;
}

static int64_t limit_seconds(const struct sagemaker *sagemaker, const char *name)
{
	int64_t ms = js_int(json_object_get(sagemaker->plan, "limits"), name, 0);

	return (ms + 999) / 1000;
}

static int too_long(struct err **err, const char *what, size_t len, size_t most)
{
	err_set(err, EXIT_SPEC, "%s is %zu bytes long; SageMaker takes %zu", what, len, most);
	return err_hint(err, "use shorter names, or a shorter prefix for the workspace");
}

/* ---- the container ---- */

static json_t *metric_definitions(const struct sagemaker *sagemaker)
{
	json_t *rows = json_array(), *metric;
	size_t i;

	json_array_foreach (json_object_get(sagemaker->plan, "metrics"), i, metric) {
		const char *name = js_str(metric, "name"), *regex = js_str(metric, "regex");

		/* stoker parses metrics itself; these are for SageMaker's own pages. */
		if (json_array_size(rows) < METRICS_MAX && name && regex &&
		    strlen(regex) <= METRIC_REGEX_MAX)
			json_array_append_new(
				rows, json_pack("{s:s, s:s}", "Name", name, "Regex", regex));
	}
	if (json_array_size(rows) == 0) {
		json_decref(rows);
		return NULL;
	}
	return rows;
}

static int put_algorithm(const struct sagemaker *sagemaker, const struct engine_job *job,
			 json_t *body, struct err **err)
{
	json_t *algorithm = json_object(), *command = NULL, *word;
	const char *image = engine_image(sagemaker->plan);
	size_t i;

	js_put(body, "AlgorithmSpecification", algorithm);
	js_put_str(algorithm, "TrainingImage", image);
	js_put_str(algorithm, "TrainingInputMode", "File");
	if (!sagemaker->toolkit)
		command = agent_delivery_command(sagemaker->plan);
	js_put(algorithm, "ContainerEntrypoint", command);
	/* Metrics printed in phase 1 come from no real computation, so they are not declared. The
	 * SDK sends them all the same. */
	if (sagemaker->toolkit || strcmp(job->phase, "precompile") != 0)
		js_put(algorithm, "MetricDefinitions", metric_definitions(sagemaker));
	if (image && strlen(image) > IMAGE_MAX)
		return too_long(err, "'image'", strlen(image), IMAGE_MAX);
	json_array_foreach (command, i, word)
		if (json_string_length(word) > ENTRYPOINT_MAX)
			return too_long(err, "a word of the entry point", json_string_length(word),
					ENTRYPOINT_MAX);
	return 0;
}

/* Script mode: see sagemaker_toolkit.h. */
static int put_script(const struct sagemaker *sagemaker, const struct engine_job *job,
		      const char *region, json_t *body, struct err **err)
{
	const struct toolkit_input input = { .plan = sagemaker->plan,
					     .order = job->order,
					     .phase = job->phase,
					     .job = job->name,
					     .region = region };

	return sagemaker_toolkit_put(body, &input, err);
}

/* No variable of the caller: everybody with the right to describe the job can read a request. */
static int put_environment(const struct sagemaker *sagemaker, const struct engine_job *job,
			   const char *region, json_t *body, struct err **err)
{
	const char *name;
	json_t *env = NULL, *value;

	if (agent_delivery_env(sagemaker->plan, store_url(sagemaker->store), job, &env, NULL, err) <
	    0)
		return -1;
	js_put(body, "Environment", env);
	js_put_str(env, "AWS_REGION", region);
	js_put_str(env, WORK_VARIABLE, spec_text(sagemaker, "sagemaker.work_dir"));
	js_put_str(env, ORDER_TOKEN, job->name);
	json_object_foreach (env, name, value)
		if (json_string_length(value) > ENV_VALUE_MAX)
			return too_long(err, name, json_string_length(value), ENV_VALUE_MAX);
	return 0;
}

/* ---- inputs and outputs ---- */

static json_t *channel(const char *name, const char *uri, const char *mode,
		       const char *distribution)
{
	json_t *source = json_pack("{s:{s:s, s:s, s:s}}", "S3DataSource", "S3DataType", "S3Prefix",
				   "S3Uri", uri, "S3DataDistributionType", distribution);

	return json_pack("{s:s, s:o, s:s}", "ChannelName", name, "DataSource", source, "InputMode",
			 mode);
}

static const char *word_or(const json_t *object, const char *name, const char *fallback)
{
	const char *word = js_str(object, name);

	return word ? word : fallback;
}

/* Adds the channel that delivers the agent. */
static int add_own_channel(const struct sagemaker *sagemaker, const struct engine_job *job,
			   json_t *channels, struct err **err)
{
	AUTO(auto_free) char *uri = agent_delivery_channel_uri(store_url(sagemaker->store), job);

	if (strlen(uri) > URI_MAX)
		return too_long(err, "the agent's URL", strlen(uri), URI_MAX);
	json_array_append_new(channels,
			      channel(AGENT_DELIVERY_CHANNEL_NAME, uri, "File", "FullyReplicated"));
	return 0;
}

static int put_channels(const struct sagemaker *sagemaker, const struct engine_job *job,
			json_t *body, struct err **err)
{
	json_auto_t *channels = json_array();
	json_t *row;
	size_t i;

	if (!sagemaker->toolkit && add_own_channel(sagemaker, job, channels, err) < 0)
		return -1;
	json_array_foreach (spec_value(sagemaker, "sagemaker.channels"), i, row)
		json_array_append_new(channels,
				      channel(js_str(row, "name"), js_str(row, "url"),
					      word_or(row, "mode", "File"),
					      word_or(row, "distribution", "FullyReplicated")));
	if (json_array_size(channels) > 0)
		js_put(body, "InputDataConfig", TAKE(channels));
	return 0;
}

static int put_output(const struct sagemaker *sagemaker, const struct engine_job *job, json_t *body,
		      struct err **err)
{
	AUTO(auto_free)
	char *path = mem_format("%s/%ssagemaker", store_url(sagemaker->store), job->prefix);
	json_t *output = json_object();

	js_put(body, "OutputDataConfig", output);
	js_put_str(output, "S3OutputPath", path);
	js_put_str(output, "KmsKeyId", spec_text(sagemaker, "sagemaker.kms.output"));
	return strlen(path) > URI_MAX ? too_long(err, path, strlen(path), URI_MAX) : 0;
}

/* With `checkpoint.sync: engine`, which is for script mode alone, SageMaker itself copies the
 * folder; the next attempt finds the files of this one there. */
static void put_checkpoints(const struct sagemaker *sagemaker, const struct engine_job *job,
			    json_t *body)
{
	const json_t *checkpoint = json_object_get(sagemaker->plan, "checkpoint");
	const char *url = js_str(checkpoint, "url");
	AUTO(auto_free) char *uri = NULL;

	if (!url || !js_is(checkpoint, "sync", "engine") || strcmp(job->phase, "train") != 0)
		return;
	uri = mem_format("%s/%s", url, job->run);
	js_put(body, "CheckpointConfig", json_pack("{s:s}", "S3Uri", uri));
}

/* ---- the machines ---- */

/* Returns SageMaker's name: ml.trn1.32xlarge for "trn1.32xlarge". The caller frees it. */
static char *instance_type(const char *instance)
{
	if (!instance)
		return mem_copy("");
	return text_starts(instance, "ml.") ? mem_copy(instance) : mem_format("ml.%s", instance);
}

static json_t *instance_groups(const json_t *groups)
{
	json_t *rows = json_array(), *group;
	size_t i;

	json_array_foreach (groups, i, group) {
		AUTO(auto_free) char *type = instance_type(js_str(group, "instance"));

		json_array_append_new(rows, json_pack("{s:s, s:I, s:s}", "InstanceType", type,
						      "InstanceCount",
						      (json_int_t)js_int(group, "nodes", 1),
						      "InstanceGroupName", js_str(group, "name")));
	}
	return rows;
}

static int64_t volume_gigabytes(const struct sagemaker *sagemaker)
{
	const char *text = spec_text(sagemaker, "sagemaker.volume");
	uint64_t bytes;

	return text && text_size(text, &bytes) ? (int64_t)((bytes + (1 << 30) - 1) >> 30) : 100;
}

static void put_resources(const struct sagemaker *sagemaker, const struct engine_job *job,
			  json_t *body)
{
	AUTO(auto_free) char *type = instance_type(spec_text(sagemaker, "resources.instance"));
	const json_t *groups = spec_value(sagemaker, "sagemaker.instance_groups");
	int64_t keep = spec_seconds(sagemaker, "sagemaker.warm_pool", 0);
	json_t *resources = json_object();

	js_put(body, "ResourceConfig", resources);
	if (json_array_size(groups) > 0) {
		js_put(resources, "InstanceGroups", instance_groups(groups));
	} else {
		js_put_str(resources, "InstanceType", type);
		js_put(resources, "InstanceCount", json_integer(job->nodes));
	}
	js_put(resources, "VolumeSizeInGB", json_integer(volume_gigabytes(sagemaker)));
	js_put_str(resources, "VolumeKmsKeyId", spec_text(sagemaker, "sagemaker.kms.volume"));
	/* The last attempt is not known beforehand: the machines are given back after it. */
	if (keep > 0)
		js_put(resources, "KeepAlivePeriodInSeconds", json_integer(keep));
	js_put_str(resources, "TrainingPlanArn", spec_text(sagemaker, "sagemaker.training_plan"));
}

int64_t sagemaker_runtime_s(const json_t *plan)
{
	const struct sagemaker view = { .plan = (json_t *)(uintptr_t)plan };
	int64_t deadline = limit_seconds(&view, "deadline_ms");

	return spec_seconds(&view, "sagemaker.max_runtime",
			    deadline > LONGEST_S ? LONGEST_S
			    : deadline > 0       ? deadline
						 : USUAL_S);
}

static void put_limits(const struct sagemaker *sagemaker, json_t *body)
{
	int64_t runtime = sagemaker_runtime_s(sagemaker->plan);
	int64_t wait = spec_seconds(sagemaker, "sagemaker.max_wait",
				    runtime + limit_seconds(sagemaker, "queue_ms"));
	int64_t pending = spec_seconds(sagemaker, "sagemaker.max_pending", 0);
	json_t *stop = json_object();

	js_put(body, "StoppingCondition", stop);
	js_put(stop, "MaxRuntimeInSeconds", json_integer(runtime));
	if (json_is_true(spec_value(sagemaker, "sagemaker.spot"))) {
		js_put(body, "EnableManagedSpotTraining", json_true());
		js_put(stop, "MaxWaitTimeInSeconds", json_integer(wait < runtime ? runtime : wait));
	}
	if (pending > 0)
		js_put(stop, "MaxPendingTimeInSeconds", json_integer(pending));
}

static void put_switches(const struct sagemaker *sagemaker, json_t *body)
{
	json_t *subnets = js_path(sagemaker->plan, "spec.sagemaker.vpc.subnets");
	json_t *groups = js_path(sagemaker->plan, "spec.sagemaker.vpc.security_groups");

	if (json_array_size(subnets) > 0)
		js_put(body, "VpcConfig",
		       json_pack("{s:O, s:O}", "SecurityGroupIds", groups, "Subnets", subnets));
	if (json_is_true(spec_value(sagemaker, "sagemaker.remote_debug")))
		js_put(body, "RemoteDebugConfig", json_pack("{s:b}", "EnableRemoteDebug", 1));
	if (json_is_true(spec_value(sagemaker, "sagemaker.infra_check")))
		js_put(body, "InfraCheckConfig", json_pack("{s:b}", "EnableInfraCheck", 1));
	/* No DebugHookConfig is ever sent: the debugger is off without it. */
	if (json_is_false(spec_value(sagemaker, "sagemaker.profiler")) ||
	    json_is_true(json_object_get(sagemaker->plan, "benchmark")))
		js_put(body, "ProfilerConfig", json_pack("{s:b}", "DisableProfiler", 1));
}

/* Creating with tags needs the right to tag, so an empty list is left out. */
static void put_tags(const struct sagemaker *sagemaker, json_t *body)
{
	json_t *rows = json_array(), *tags = js_path(sagemaker->plan, "spec.tags"), *value;
	const char *name;

	json_object_foreach (tags, name, value)
		json_array_append_new(rows, json_pack("{s:s, s:s}", "Key", name, "Value",
						      json_string_value(value)));
	if (json_array_size(rows) > 0)
		js_put(body, "Tags", rows);
	else
		json_decref(rows);
}

static int check_name(const char *name, struct err **err)
{
	size_t len = strlen(name);

	/* [a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}, and "<id>" before there is a run */
	if (len > SAGEMAKER_NAME_MAX || strchr(name, '_') || name[len - 1] == '-') {
		err_set(err, EXIT_SPEC, "SageMaker takes no training job named '%s'", name);
		return err_hint(err, "choose a run id of letters, digits and dashes, so short that "
				     "the name has at most 63 characters");
	}
	return 0;
}

int sagemaker_request(const struct sagemaker *sagemaker, const struct engine_job *job,
		      const char *region, json_t **ret, struct err **err)
{
	json_auto_t *body = json_object();

	if (check_name(job->name, err) < 0)
		return -1;
	js_put_str(body, "TrainingJobName", job->name);
	js_put_str(body, "RoleArn", spec_text(sagemaker, "sagemaker.role"));
	if (put_algorithm(sagemaker, job, body, err) < 0 ||
	    put_channels(sagemaker, job, body, err) < 0 ||
	    put_output(sagemaker, job, body, err) < 0)
		return -1;
	put_resources(sagemaker, job, body);
	put_limits(sagemaker, body);
	put_checkpoints(sagemaker, job, body);
	put_switches(sagemaker, body);
	put_tags(sagemaker, body);
	if ((sagemaker->toolkit ? put_script : put_environment)(sagemaker, job, region, body, err) <
	    0)
		return -1;
	*ret = TAKE(body);
	return 0;
}

bool sagemaker_is_same(const json_t *request, const json_t *described)
{
	const char *mine = js_str(json_object_get(request, "OutputDataConfig"), "S3OutputPath");
	const char *theirs = js_str(json_object_get(described, "OutputDataConfig"), "S3OutputPath");

	return mine && theirs && strcmp(mine, theirs) == 0;
}
