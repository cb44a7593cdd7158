/*
 * Fields against each other: one value can make another field needed, wrong or contradictory.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/base/usage.h"
#include "jobs/spec/resolved.h"

static void needed_by_engine(struct binder *binder, enum spec_field field)
{
	const struct spec *spec = binder->spec;
	struct problem *problem;

	if (spec_is_set(spec, field))
		return;
	problem = problem_error(&binder->reporter, access_mark_of_field(spec, SPEC_ENGINE),
				field_table[field].path, "'%s' is missing: engine '%s' needs it",
				field_table[field].path, spec_str(spec, SPEC_ENGINE));
	problem_missing(problem);
	problem_hint(problem, "%s; for example %s", field_table[field].help,
		     field_table[field].example);
}

/* On AWS the nodes can see S3, but no directory of this machine. */
static void must_be_s3(struct binder *binder, enum spec_field field)
{
	const struct spec *spec = binder->spec;
	const char *location = spec_str(spec, field);

	if (!location || text_starts(location, "s3://") ||
	    field_word_in(field_table[field].words, location))
		return;
	problem_hint(
		spec_error(
			binder, field, NULL,
			"'%s' must be an s3:// URL: engine '%s' sees no directory on this machine",
			field_table[field].path, spec_str(spec, SPEC_ENGINE)),
		"for example s3://bucket/%s", field_leaf((field_id)field));
}

/* Reports files that only some engines bring to the job, which would miss them silently. */
static void must_be_brought(struct binder *binder, enum spec_field field, const char *hint)
{
	const struct spec *spec = binder->spec;
	const char *engine = spec_str(spec, SPEC_ENGINE);

	if (json_array_size(spec_get(spec, field)) == 0 ||
	    (field_table[field].engines & bind_engine_bit(engine)) != 0)
		return;
	problem_hint(spec_error(binder, field, NULL, "engine '%s' cannot do '%s'", engine,
				field_table[field].path),
		     "%s", hint);
}

static void check_engine(struct binder *binder)
{
	static const enum spec_field places[] = { SPEC_WORKSPACE,      SPEC_COMPILE_CACHE_URL,
						  SPEC_CHECKPOINT_URL, SPEC_DATA_URL,
						  SPEC_PARENT_FROM,    SPEC_PARENT_FIRST,
						  SPEC_EVALUATE_DATA,  SPEC_INFER_INPUT,
						  SPEC_INFER_OUTPUT,   SPEC_PROMOTE_URL };
	const struct spec *spec = binder->spec;

	if (!access_on_aws(spec))
		return;
	needed_by_engine(binder, SPEC_WORKSPACE);
	needed_by_engine(binder, SPEC_IMAGE);
	needed_by_engine(binder, SPEC_RESOURCES_INSTANCE);
	if (spec_says(spec, SPEC_ENGINE, "batch"))
		needed_by_engine(binder, SPEC_BATCH_JOB_QUEUE);
	else
		needed_by_engine(binder, SPEC_SAGEMAKER_ROLE);
	for (size_t i = 0; i < STK_LENGTH(places); i++)
		must_be_s3(binder, places[i]);
	must_be_brought(binder, SPEC_SOURCE_LINK,
			"put the files on S3, or into the image; the machines of AWS Batch see no "
			"local folder");
	must_be_brought(binder, SPEC_MOUNTS,
			"use sagemaker.channels for data on S3; SageMaker jobs mount nothing");
}

static void missing_cache(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	struct problem *problem = problem_error(
		&binder->reporter, access_mark_of_field(spec, SPEC_COMPILE_KIND),
		"compile.cache_url", "'compile.cache_url' is missing: kind '%s' needs it",
		spec_str(spec, SPEC_COMPILE_KIND));

	problem_missing(problem);
	problem_hint(problem, "for example cache_url: %s",
		     access_on_aws(spec) ? "s3://bucket/neuron-cache" : "./cache");
}

static void missing_kind(struct binder *binder)
{
	struct problem *problem = problem_error(
		&binder->reporter, access_mark_of_field(binder->spec, SPEC_COMPILE), "compile.kind",
		"'compile.kind' is missing beside 'compile.cache_url'");

	problem_missing(problem);
	problem_hint(problem, "name the compiler of the cache: kind: neuron or kind: jax");
}

static void check_compile(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	bool none = spec_says(spec, SPEC_COMPILE_KIND, "none");

	if (none && spec_is_set(spec, SPEC_COMPILE_CACHE_URL) &&
	    !spec_is_set(spec, SPEC_COMPILE_KIND))
		missing_kind(binder);
	if (spec_str(spec, SPEC_COMPILE_KIND) && !none &&
	    !spec_is_set(spec, SPEC_COMPILE_CACHE_URL))
		missing_cache(binder);
}

static void check_retry(struct binder *binder)
{
	const struct spec *spec = binder->spec;
	int64_t first = spec_ms(spec, SPEC_RETRY_BACKOFF_FIRST);
	int64_t max = spec_ms(spec, SPEC_RETRY_BACKOFF_MAX);

	if (first < 0 || max < 0 || first <= max)
		return;
	problem_hint(
		problem_error(&binder->reporter,
			      access_mark_of_field(spec, spec_is_set(spec, SPEC_RETRY_BACKOFF_FIRST)
								 ? SPEC_RETRY_BACKOFF_FIRST
								 : SPEC_RETRY_BACKOFF_MAX),
			      "retry.backoff",
			      "'retry.backoff.first' (%s) is longer than 'max' (%s)",
			      spec_str(spec, SPEC_RETRY_BACKOFF_FIRST),
			      spec_str(spec, SPEC_RETRY_BACKOFF_MAX)),
		"swap them, or raise max");
}

/* Adds the names of the valid metrics of a list, whose items have them in this member: name →
 * true. */
static void add_metric_names(struct binder *binder, enum spec_field list, const char *member,
			     json_t *names)
{
	const struct node *metrics = access_node_of_field(binder->spec, list);

	for (size_t i = 0; metrics && metrics->kind == NODE_LIST && i < metrics->count; i++) {
		const struct node *metric = metrics->entries[i].value;
		const struct entry *name =
			metric->kind == NODE_MAP ? node_entry(metric, member) : NULL;

		if (!name || name->value->kind != NODE_SCALAR)
			continue;
		if (usage_is_reserved(name->value->text)) {
			AUTO(auto_free)
			char *field = mem_format("%s[%zu].%s", field_table[list].path, i, member);

			problem_hint(problem_error(&binder->reporter, name->value->at, field,
						   "the metric '%.80s' has the name of a figure of "
						   "the node",
						   name->value->text),
				     "give it a name that does not begin with '" USAGE_PREFIX "'");
		}
		if (json_object_get(names, name->value->text)) {
			AUTO(auto_free)
			char *field = mem_format("%s[%zu].%s", field_table[list].path, i, member);

			problem_hint(problem_error(&binder->reporter, name->value->at, field,
						   "duplicate metric '%.80s'", name->value->text),
				     "give each metric a unique name");
		}
		json_object_set_new(names, name->value->text, json_true());
	}
}

static void check_metrics(struct binder *binder)
{
	json_auto_t *names = json_object();

	add_metric_names(binder, SPEC_METRICS, "name", names);
	add_metric_names(binder, SPEC_METRIC_DEFINITIONS, "Name", names);
}

/* ECS refuses to start a container with such limits, once a machine is paid for. */
static void check_ulimits(struct binder *binder)
{
	json_auto_t *names = json_object();
	const json_t *limit;
	size_t i;

	json_array_foreach (spec_get(binder->spec, SPEC_BATCH_ULIMITS), i, limit) {
		const char *name = js_str(limit, "name");
		int64_t soft = js_int(limit, "soft", 0), hard = js_int(limit, "hard", soft);
		AUTO(auto_free) char *at_name = mem_format("[%zu].name", i);
		AUTO(auto_free) char *at_soft = mem_format("[%zu].soft", i);

		if (name && json_object_get(names, name))
			problem_hint(spec_error(binder, SPEC_BATCH_ULIMITS, at_name,
						"'%s' has a limit already", name),
				     "give each limit once");
		if (name)
			json_object_set_new(names, name, json_true());
		if (hard >= 0 && (soft < 0 || soft > hard))
			problem_hint(spec_error(binder, SPEC_BATCH_ULIMITS, at_soft,
						"the soft limit is above the hard one, %lld",
						(long long)hard),
				     "raise 'hard', or leave it out: it is as 'soft' then");
	}
}

static void check_notify(struct binder *binder)
{
	const struct node *notify = access_node_of_field(binder->spec, SPEC_NOTIFY);

	for (size_t i = 0; notify && notify->kind == NODE_LIST && i < notify->count; i++) {
		const struct node *rule = notify->entries[i].value;
		AUTO(auto_free) char *field = mem_format("notify[%zu]", i);
		int ways;

		if (rule->kind != NODE_MAP)
			continue;
		ways = (node_entry(rule, "command") != NULL) +
		       (node_entry(rule, "webhook") != NULL);
		if (ways != 1)
			problem_hint(problem_error(&binder->reporter, notify->entries[i].at, field,
						   "'%s' must have either 'command' or 'webhook'",
						   field),
				     ways ? "split the rule into two" : "add one of the two");
	}
}

void rules_check(struct binder *binder)
{
	check_engine(binder);
	rules_toolkit(binder);
	rules_sagemaker(binder);
	rules_modes(binder);
	check_compile(binder);
	phase_one_check(binder);
	machine_check(binder);
	rules_compatibility(binder);
	check_retry(binder);
	check_metrics(binder);
	check_notify(binder);
	check_ulimits(binder);
	rules_retrain(binder);
	rules_environment(binder);
	sweep_check(binder);
}
