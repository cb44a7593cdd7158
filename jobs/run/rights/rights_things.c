/* The things of a spec, with the names that ARNs have of them: see rights_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "aws/auth/endpoint.h"
#include "aws/image/image.h"
#include "aws/s3/s3.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/engine/sagemaker/sagemaker.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/rights/rights_internal.h"

/* Begins of names that stoker gives; policy.c makes patterns of them. */
#define OWN_JOB    "stk-"
#define OWN_DRIVER "stoker-"

struct things {
	const json_t *plan;
	const struct rights_where *where;
	struct rights_list *list;
};

void rights_list_release(struct rights_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; k < RIGHTS_TEXTS; k++)
			free(list->ones[i].own[k]);
	free(list->ones);
	*list = (struct rights_list){ 0 };
}

static struct rights_one *add(const struct things *things)
{
	struct rights_list *list = things->list;
	struct rights_one *one;

	list->ones = mem_grow(list->ones, list->count + 1, sizeof *list->ones);
	one = &list->ones[list->count++];
	*one = (struct rights_one){ .names = { .region = things->where->region,
					       .account = things->where->account } };
	return one;
}

/* Takes the text over. */
static const char *keep(struct rights_one *one, char *text)
{
	for (size_t i = 0; i < RIGHTS_TEXTS; i++)
		if (!one->own[i]) {
			one->own[i] = text;
			return text;
		}
	abort();
}

static const char *text_at(const struct things *things, const char *path)
{
	const char *text = json_string_value(js_path(things->plan, path));

	return text && *text && strcmp(text, "none") != 0 ? text : NULL;
}

static bool has_engine(const struct things *things, const char *name)
{
	return js_is(things->plan, "engine", name);
}

/* The plans of jobs that differ: of the training, and of stages that have others. */
static void each_jobs(const struct things *things,
		      void (*fn)(const struct things *things, const json_t *jobs))
{
	for (enum phase phase = PHASE_TRAIN; phase < PHASE_COUNT; phase++) {
		const json_t *section = json_object_get(things->plan, flow_phase_names[phase]);
		json_auto_t *jobs = NULL;

		if (phase != PHASE_TRAIN && !json_object_get(section, "job"))
			continue;
		jobs = plan_of_phase(things->plan, phase);
		fn(things, jobs);
	}
}

/* ---- places in buckets ---- */

/* `is_file`: the object of this key alone. */
static void add_url(const struct things *things, const char *url, bool is_file)
{
	AUTO(auto_free) char *bucket = NULL, *prefix = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	struct rights_one *one;

	if (!url || !text_starts(url, "s3:") || s3_parse_url(url, &bucket, &prefix, &ignored) < 0)
		return;
	one = add(things);
	one->is_file = is_file;
	one->names.of[POLICY_NAME_BUCKET] = keep(one, TAKE(bucket));
	one->names.of[POLICY_NAME_KEY] =
		keep(one, mem_format("%s%s", prefix, *prefix && !is_file ? "/" : ""));
	one->names.below = !is_file;
	if (!is_file)
		one->names.of[POLICY_NAME_PREFIX] = one->names.of[POLICY_NAME_KEY];
}

static void add_place(const struct things *things, const char *path)
{
	add_url(things, text_at(things, path), false);
}

static void state(const struct things *things)
{
	add_url(things, things->where->state, false);
}

static void workspace(const struct things *things)
{
	add_place(things, "workspace");
}

static void cache(const struct things *things)
{
	add_place(things, "compile.cache");
}

static void checkpoints(const struct things *things)
{
	add_place(things, "checkpoint.url");
}

static void models(const struct things *things)
{
	add_place(things, "promote.url");
}

static void results(const struct things *things)
{
	add_place(things, "infer.output");
}

static void preloaded(const struct things *things)
{
	const json_t *url;
	size_t i;

	json_array_foreach (js_path(things->plan, "compile.preload"), i, url)
		add_url(things, json_string_value(url), false);
}

/* A list of objects is a file, and says itself where they are. */
static bool is_list(const char *url)
{
	const char *dot = strrchr(url, '.');

	return dot && (strcmp(dot, ".jsonl") == 0 || strcmp(dot, ".ndjson") == 0);
}

static void data(const struct things *things)
{
	static const char *const paths[] = { "data.url", "evaluate.data", "infer.input" };

	for (size_t i = 0; i < STK_LENGTH(paths); i++)
		if (text_at(things, paths[i]))
			add_url(things, text_at(things, paths[i]),
				is_list(text_at(things, paths[i])));
}

/* A parent is a folder or a file; the mark that it is complete lies beside it. */
static void add_parent(const struct things *things, const char *url)
{
	AUTO(auto_free) char *bare = NULL, *above = NULL, *mark = NULL;

	if (!url || !text_starts(url, "s3:"))
		return;
	bare = mem_copy(url);
	for (size_t len = strlen(bare); len > 0 && bare[len - 1] == '/'; len--)
		bare[len - 1] = '\0';
	above = fs_dirname(bare);
	mark = mem_format("%s/marks/%s" CKPT_MARK_SUFFIX, above, fs_basename(bare));
	add_url(things, bare, false);
	add_url(things, bare, true);
	add_url(things, mark, true);
}

static void parents(const struct things *things)
{
	add_parent(things, text_at(things, "parent.from"));
	add_parent(things, text_at(things, "parent.first"));
}

static void channels(const struct things *things)
{
	const json_t *channel;
	size_t i;

	if (has_engine(things, "sagemaker"))
		json_array_foreach (js_path(things->plan, "spec.sagemaker.channels"), i, channel)
			add_url(things, js_str(channel, "url"), false);
}

/* ---- secrets ---- */

/* `end`: what may stand behind the name. An ARN is the whole resource. */
static void add_secrets(const struct things *things, const char *source, enum policy_name name,
			char end)
{
	const json_t *from;
	const char *variable;

	json_object_foreach (json_object_get(things->plan, "secrets"), variable, from) {
		const char *text = json_string_value(from), *behind;
		struct rights_one *one;

		if (!text || !text_starts(text, source))
			continue;
		text += strlen(source);
		behind = text_starts(text, "arn:") && end == ':' ? NULL : strchr(text, end);
		one = add(things);
		one->names.of[name] = keep(one, behind ? mem_copy_n(text, (size_t)(behind - text))
						       : mem_copy(text));
	}
}

static void secrets(const struct things *things)
{
	add_secrets(things, "secretsmanager:", POLICY_NAME_SECRET, '#');
}

static void parameters(const struct things *things)
{
	add_secrets(things, "ssm:", POLICY_NAME_PARAMETER, ':');
}

/* ---- images ---- */

static void add_image(const struct things *things, const char *reference)
{
	AUTO(auto_free) char *account = NULL, *region = NULL, *repository = NULL;
	struct rights_one *one;

	if (!reference || !image_in_ecr(reference, &account, &region, &repository))
		return;
	one = add(things);
	one->names.of[POLICY_NAME_REGISTRY] = keep(one, TAKE(account));
	one->names.region = keep(one, TAKE(region));
	one->names.of[POLICY_NAME_REPOSITORY] = keep(one, TAKE(repository));
}

static void images_of(const struct things *things, const json_t *jobs)
{
	add_image(things, json_string_value(js_path(jobs, "spec.image")));
}

static void images(const struct things *things)
{
	if (!has_engine(things, "local"))
		each_jobs(things, images_of);
}

static void pulled(const struct things *things)
{
	images(things);
	if (has_engine(things, "batch"))
		add_image(things, text_at(things, "spec.batch.helper_image"));
}

/* ---- AWS Batch ---- */

static void batch_jobs_of(const struct things *things, const json_t *jobs)
{
	const char *queue = json_string_value(js_path(jobs, "spec.batch.job_queue"));
	struct rights_one *one;

	if (!queue)
		return;
	one = add(things);
	one->is_tagged = true;
	one->names.of[POLICY_NAME_QUEUE] = keep(one, mem_copy(queue));
	one->names.of[POLICY_NAME_DEFINITION] = OWN_JOB;
}

static void batch_jobs(const struct things *things)
{
	if (has_engine(things, "batch"))
		each_jobs(things, batch_jobs_of);
}

static void definitions(const struct things *things)
{
	struct rights_one *one;

	if (!has_engine(things, "batch"))
		return;
	one = add(things);
	one->names.of[POLICY_NAME_DEFINITION] = OWN_JOB;
	one->names.of[POLICY_NAME_ROLE] = text_at(things, "spec.batch.job_role");
	one->names.of[POLICY_NAME_EXECUTION_ROLE] = text_at(things, "spec.batch.execution_role");
}

static void batch_logs(const struct things *things)
{
	if (has_engine(things, "batch"))
		add(things)->names.of[POLICY_NAME_LOG_GROUP] = BATCH_LOG_GROUP;
}

/* ---- SageMaker ---- */

static void training_jobs(const struct things *things)
{
	struct rights_one *one;

	if (!has_engine(things, "sagemaker"))
		return;
	one = add(things);
	one->is_tagged = json_object_size(js_path(things->plan, "spec.tags")) > 0;
	one->names.of[POLICY_NAME_TRAINING_JOB] = OWN_JOB;
	one->names.of[POLICY_NAME_ROLE] = text_at(things, "spec.sagemaker.role");
}

static void training_logs(const struct things *things)
{
	if (has_engine(things, "sagemaker"))
		add(things)->names.of[POLICY_NAME_LOG_GROUP] = SAGEMAKER_LOG_GROUP;
}

/* A key by its id or ARN, or by an alias, which is no resource itself. */
static void add_key(const struct things *things, const char *key)
{
	const char *alias = key ? strstr(key, "alias/") : NULL;
	struct rights_one *one;

	if (!key)
		return;
	one = add(things);
	if (alias && (alias == key || alias[-1] == ':'))
		one->names.key_alias = alias;
	else
		one->names.of[POLICY_NAME_KMS_KEY] = key;
}

static void keys(const struct things *things)
{
	const json_t *key;
	size_t i;

	json_array_foreach (js_path(things->plan, "spec.aws.kms_keys"), i, key)
		add_key(things, json_string_value(key));
}

static void volume_key(const struct things *things)
{
	if (has_engine(things, "sagemaker"))
		add_key(things, text_at(things, "spec.sagemaker.kms.volume"));
}

static void output_key(const struct things *things)
{
	if (has_engine(things, "sagemaker"))
		add_key(things, text_at(things, "spec.sagemaker.kms.output"));
}

static void add_each(const struct things *things, const char *path, enum policy_name name)
{
	const json_t *value;
	size_t i;

	if (has_engine(things, "sagemaker"))
		json_array_foreach (js_path(things->plan, path), i, value)
			add(things)->names.of[name] = json_string_value(value);
}

static void network(const struct things *things)
{
	if (has_engine(things, "sagemaker") &&
	    json_array_size(js_path(things->plan, "spec.sagemaker.vpc.subnets")) > 0)
		add(things);
}

static void subnets(const struct things *things)
{
	add_each(things, "spec.sagemaker.vpc.subnets", POLICY_NAME_SUBNET);
}

static void security_groups(const struct things *things)
{
	add_each(things, "spec.sagemaker.vpc.security_groups", POLICY_NAME_SECURITY_GROUP);
}

/* ---- EventBridge ---- */

static void schedules(const struct things *things)
{
	const char *role = text_at(things, "spec.driver.scheduler_role");
	struct rights_one *one;

	if (!role)
		return;
	one = add(things);
	one->names.of[POLICY_NAME_SCHEDULE_GROUP] = "default";
	one->names.of[POLICY_NAME_SCHEDULE] =
		keep(one, mem_format(OWN_DRIVER "%.40s-", js_str(things->plan, "name")));
	one->names.of[POLICY_NAME_ROLE] = role;
	one->names.below = true;
}

static void driver_jobs(const struct things *things)
{
	struct rights_one *one;

	if (!text_at(things, "spec.driver.scheduler_role"))
		return;
	one = add(things);
	one->names.of[POLICY_NAME_QUEUE] = text_at(things, "spec.driver.job_queue");
	one->names.of[POLICY_NAME_DEFINITION] = OWN_DRIVER;
	one->names.of[POLICY_NAME_ROLE] = text_at(things, "spec.driver.role");
	one->names.below = true;
}

static void roles(const struct things *things)
{
	static const char *const paths[][2] = { { "batch", "spec.batch.job_role" },
						{ "batch", "spec.batch.execution_role" },
						{ "sagemaker", "spec.sagemaker.role" } };

	for (size_t i = 0; i < STK_LENGTH(paths); i++)
		if (has_engine(things, paths[i][0]) && text_at(things, paths[i][1]))
			add(things)->names.of[POLICY_NAME_ROLE] = text_at(things, paths[i][1]);
}

/* ---- all ---- */

static void (*const kinds[RIGHTS_THING_COUNT])(const struct things *things) = {
	[RIGHTS_STATE] = state,
	[RIGHTS_WORKSPACE] = workspace,
	[RIGHTS_CACHE] = cache,
	[RIGHTS_CHECKPOINTS] = checkpoints,
	[RIGHTS_MODELS] = models,
	[RIGHTS_RESULTS] = results,
	[RIGHTS_PRELOADED] = preloaded,
	[RIGHTS_DATA] = data,
	[RIGHTS_PARENTS] = parents,
	[RIGHTS_CHANNELS] = channels,
	[RIGHTS_SECRETS] = secrets,
	[RIGHTS_PARAMETERS] = parameters,
	[RIGHTS_IMAGES] = images,
	[RIGHTS_PULLED] = pulled,
	[RIGHTS_BATCH_JOBS] = batch_jobs,
	[RIGHTS_DEFINITIONS] = definitions,
	[RIGHTS_BATCH_LOGS] = batch_logs,
	[RIGHTS_TRAINING_JOBS] = training_jobs,
	[RIGHTS_TRAINING_LOGS] = training_logs,
	[RIGHTS_KEYS] = keys,
	[RIGHTS_VOLUME_KEY] = volume_key,
	[RIGHTS_OUTPUT_KEY] = output_key,
	[RIGHTS_NETWORK] = network,
	[RIGHTS_SUBNETS] = subnets,
	[RIGHTS_SECURITY_GROUPS] = security_groups,
	[RIGHTS_SCHEDULES] = schedules,
	[RIGHTS_DRIVER_JOBS] = driver_jobs,
	[RIGHTS_ROLES] = roles,
};

void rights_things(const json_t *plan, const struct rights_where *where, enum rights_thing thing,
		   struct rights_list *ret)
{
	const struct things things = { plan, where, ret };
	size_t before = ret->count;

	kinds[thing](&things);
	for (size_t i = before; i < ret->count; i++) {
		struct policy_names *names = &ret->ones[i].names;

		names->partition =
			names->region ? endpoint_partition(names->region) : where->partition;
	}
}
