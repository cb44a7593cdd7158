/*
 * Loading a spec, from bytes to a resolved one: the order of the steps, and the ones that still
 * make sense after one has failed.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/derive/derive.h"
#include "jobs/spec/failures.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/layers/layers.h"
#include "jobs/spec/machines/instance.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/yaml.h"

static const char *process_getenv(const char *name)
{
	return getenv(name);
}

/* Parses text to spec->tree, a map. After a failure here no further check is possible. */
static int read_tree(struct binder *binder, const char *text, size_t len)
{
	struct spec *spec = binder->spec;
	struct reporter *reporter = &binder->reporter;
	struct mark start = { .line = 1, .column = 1 };

	if (spec_file_parse(spec->arena, reporter, text, len, &spec->tree) < 0)
		return -1;
	if (!spec->tree || node_is_null(spec->tree)) {
		problem_hint(problem_error(reporter, start, NULL, "the spec is empty"),
			     "write a starter spec: stoker init FILE");
		return -1;
	}
	if (spec->tree->kind != NODE_MAP) {
		problem_hint(problem_error(reporter, spec->tree->at, NULL,
					   "a spec is a mapping of fields, not %s",
					   node_kind_text(spec->tree)),
			     "begin with 'version: 1'; 'stoker init FILE' writes a starter spec");
		return -1;
	}
	spec->start = spec->tree->count > 0 ? spec->tree->entries[0].at : spec->tree->at;
	return 0;
}

static void find_instance(struct binder *binder)
{
	const char *type = spec_str(binder->spec, SPEC_RESOURCES_INSTANCE);

	/* "auto" is no type before this machine is asked. */
	if (!type || spec_says(binder->spec, SPEC_RESOURCES_INSTANCE, "auto"))
		return;
	binder->catalogue = instances_load(binder->getenv_fn, binder->reporter.problems);
	binder->spec->instance = instance_find(binder->catalogue, type);
}

static void find_failures(struct binder *binder)
{
	binder->spec->failures = failures_load(json_object_get(binder->spec->root, "failures"),
					       binder->getenv_fn, binder->reporter.problems);
}

/* Returns both lists as one, a copy; either may be NULL. */
static char **joined(char *const *first, char *const *second)
{
	char **all = mem_zero(1, sizeof *all);
	size_t count = 0;

	for (int i = 0; i < 2; i++)
		for (char *const *set = i ? second : first; set && *set; set++)
			auto_strv_add(&all, &count, *set);
	return all;
}

void load_resolve(struct binder *binder)
{
	bind_spec(binder);
	env_file_load(binder);
	pass_env_load(binder);
	find_instance(binder);
}

/* A spec that is to be parsed. */
struct request {
	const char *file, *text;
	size_t len;
	const struct spec_changes *changes; /* NULL: none */
	enum spec_field stage;              /* as it runs; SPEC_FIELD_COUNT: the spec itself */
	json_t *files;                      /* the other files, if they were read before */
	spec_getenv_fn *getenv_fn;          /* NULL: the process's own */
};

static struct spec *spec_begin(const struct request *request)
{
	struct spec *spec = mem_zero(1, sizeof *spec);
	const struct spec_changes *changes = request->changes;

	spec->file = mem_copy(request->file);
	spec->text = mem_copy_n(request->text, request->len);
	spec->len = request->len;
	spec->uses = joined(changes ? changes->uses : NULL, NULL);
	spec->sets = joined(changes ? changes->sets : NULL, NULL);
	spec->files = request->files ? json_incref(request->files) : json_object();
	spec->getenv_fn = request->getenv_fn ? request->getenv_fn : process_getenv;
	spec->variables = json_object();
	spec->arena = node_arena_new();
	return spec;
}

/* Makes one tree of all layers, with the variables expanded; -1 after problems that leave none. */
static int read_layers(struct binder *binder)
{
	struct spec *spec = binder->spec;

	if (read_tree(binder, spec->text, spec->len) < 0 || extends_apply(binder) < 0)
		return -1;
	profiles_apply(binder);
	set_apply(spec->arena, &binder->reporter, spec->tree, spec->sets);
	expand_tree(spec->arena, &binder->reporter, binder->getenv_fn, spec->tree, spec->variables);
	config_apply(binder);
	place_paths(binder);
	return 0;
}

static int parse_again(const struct spec *spec, enum spec_field stage, char *const *sets,
		       struct spec **ret, struct problems *ret_problems);

/* Checks the workers of the spec, and of the stages that it has as these will run. */
static void check_workers(struct binder *binder)
{
	static const enum spec_field stages[] = { SPEC_EVALUATE, SPEC_INFER };

	workers_check(binder, "");
	for (size_t i = 0; i < STK_LENGTH(stages); i++) {
		AUTO(problems_release) struct problems known = { 0 };
		AUTO(spec_freep) struct spec *spec = NULL;
		AUTO(auto_free) char *name = mem_format("%s.", field_table[stages[i]].path);
		struct binder stage = { .reporter = binder->reporter };

		if (!spec_get(binder->spec, stages[i]) ||
		    parse_again(binder->spec, stages[i], binder->spec->sets, &spec, &known) < 0)
			continue;
		stage.spec = spec;
		stage.getenv_fn = binder->getenv_fn;
		workers_check(&stage, name);
	}
}

/* *ret_profiles: the names of the profiles, also of a spec with errors; NULL: not wanted. */
static int parse(const struct request *request, struct spec **ret, struct problems *ret_problems,
		 json_t **ret_profiles)
{
	AUTO(spec_freep) struct spec *spec = spec_begin(request);
	AUTO(bind_release)
	struct binder binder = { .spec = spec,
				 .getenv_fn = spec->getenv_fn,
				 .reporter = { spec->file, ret_problems } };

	if (read_layers(&binder) == 0) {
		derive_apply(&binder);
		if (request->stage != SPEC_FIELD_COUNT)
			retrain_make_stage(spec, &binder.reporter, request->stage);
		load_resolve(&binder);
		find_failures(&binder);
		/* The spec itself was checked before. */
		if (request->stage == SPEC_FIELD_COUNT) {
			rules_check(&binder);
			check_workers(&binder);
			lint_check(&binder);
		}
	}
	problems_finish(ret_problems, spec->file);
	if (ret_profiles)
		*ret_profiles = spec->profiles ? json_incref(spec->profiles) : json_array();
	if (ret_problems->errors > 0)
		return -1;
	*ret = TAKE(spec);
	return 0;
}

int spec_parse(const char *file, const char *text, size_t len, const struct spec_changes *changes,
	       spec_getenv_fn *getenv_fn, struct spec **ret, struct problems *ret_problems)
{
	const struct request request = {
		file, text, len, changes, SPEC_FIELD_COUNT, NULL, getenv_fn
	};

	return parse(&request, ret, ret_problems, NULL);
}

/* Parses a spec again, as it was read, whatever has become of its files. */
static int parse_again(const struct spec *spec, enum spec_field stage, char *const *sets,
		       struct spec **ret, struct problems *ret_problems)
{
	const struct spec_changes changes = { spec->uses, sets };
	const struct request request = { spec->file, spec->text,  spec->len,      &changes,
					 stage,      spec->files, spec->getenv_fn };

	return parse(&request, ret, ret_problems, NULL);
}

int spec_stage(const struct spec *spec, enum spec_field stage, struct spec **ret,
	       struct problems *ret_problems)
{
	return parse_again(spec, stage, spec->sets, ret, ret_problems);
}

int spec_with(const struct spec *spec, char *const *sets, struct spec **ret,
	      struct problems *ret_problems)
{
	AUTO(auto_strv) char **all = joined(spec->sets, sets);

	return parse_again(spec, SPEC_FIELD_COUNT, all, ret, ret_problems);
}

int spec_load(const char *path, const struct spec_changes *changes, spec_getenv_fn *getenv_fn,
	      struct spec **ret, struct problems *ret_problems, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	struct reporter reporter = { path, ret_problems };

	if (bytes_read(&reporter, path, "the spec", &text, err) < 0)
		return -1;
	return spec_parse(path, text.text, text.len, changes, getenv_fn, ret, ret_problems);
}

json_t *spec_profiles_of(const char *path)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(err_freep) struct err *unreadable = NULL;
	struct reporter reporter = { path, &problems };
	struct request request = { .file = path, .stage = SPEC_FIELD_COUNT };
	json_t *profiles = NULL;

	if (bytes_read(&reporter, path, "the spec", &text, &unreadable) < 0)
		return json_array();
	request.text = text.text;
	request.len = text.len;
	(void)!parse(&request, &spec, &problems, &profiles);
	return profiles;
}

/* ---- a spec alone and with each of its profiles ---- */

struct way {
	const char *use; /* NULL: alone, or with the profiles of the command line */
	struct problems problems;
	bool is_whole;
};

static void check_way(const struct request *request, struct way *way, json_t **ret_profiles)
{
	AUTO(spec_freep) struct spec *spec = NULL;
	char *const uses[] = { (char *)(uintptr_t)way->use, NULL };
	const struct spec_changes changes = { uses,
					      request->changes ? request->changes->sets : NULL };
	struct request with = *request;

	if (way->use)
		with.changes = &changes;
	way->is_whole = parse(&with, &spec, &way->problems, ret_profiles) == 0;
	if (way->is_whole)
		spec_not_yet_warn(spec, &way->problems);
}

/* True if the field is missing in this way, and may be: the spec alone lacks it, too, and is
 * completed by a profile. */
static bool may_be_missing(const struct way *ways, size_t count, const struct problem *problem)
{
	bool any_is_whole = false, alone = false;

	for (size_t i = 0; i < count; i++)
		any_is_whole = any_is_whole || ways[i].is_whole;
	for (size_t i = 0; i < ways[0].problems.count; i++) {
		const struct problem *other = &ways[0].problems.list[i];

		alone = alone || (other->missing && other->field &&
				  strcmp(other->field, problem->field) == 0);
	}
	return problem->missing && any_is_whole && alone;
}

/* Moves the problems of one way to those of all. Returns what is missing, and may be. */
static json_t *collect(struct way *ways, size_t count, size_t at, struct problems *ret_problems)
{
	struct problems *problems = &ways[at].problems;
	json_t *missing = json_array();

	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->list[i];

		if (problem->field && may_be_missing(ways, count, problem))
			json_array_append_new(missing, json_string(problem->field));
		else
			problems_add_of(ret_problems, problem, ways[at].use);
	}
	ret_problems->dropped += problems->dropped;
	return missing;
}

int spec_check(const char *path, const struct spec_changes *changes, spec_getenv_fn *getenv_fn,
	       json_t **ret_ways, struct problems *ret_problems, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	struct reporter reporter = { path, ret_problems };
	struct request request = {
		.file = path, .changes = changes, .stage = SPEC_FIELD_COUNT, .getenv_fn = getenv_fn
	};
	json_auto_t *profiles = NULL;
	AUTO(auto_free) struct way *ways = NULL;
	json_t *told = json_array();
	size_t count = 1;

	*ret_ways = told;
	if (bytes_read(&reporter, path, "the spec", &text, err) < 0)
		return -1;
	request.text = text.text;
	request.len = text.len;
	ways = mem_zero(1, sizeof *ways);
	check_way(&request, &ways[0], &profiles);
	if (!changes || !changes->uses || !*changes->uses)
		count += json_array_size(profiles);
	ways = mem_grow(ways, count, sizeof *ways);
	for (size_t i = 1; i < count; i++) {
		ways[i] = (struct way){ .use = json_string_value(json_array_get(profiles, i - 1)) };
		check_way(&request, &ways[i], NULL);
	}
	for (size_t i = 0; i < count; i++) {
		json_t *way = json_object();

		js_put_str(way, "use", ways[i].use);
		js_put(way, "missing", collect(ways, count, i, ret_problems));
		json_array_append_new(told, way);
	}
	for (size_t i = 0; i < count; i++)
		problems_release(&ways[i].problems);
	problems_finish(ret_problems, path);
	return ret_problems->errors > 0 ? -1 : 0;
}

bool spec_is_one(const char *text, size_t len)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	AUTO(problems_release) struct problems problems = { 0 };
	struct reporter reporter = { "", &problems };
	struct node *tree;

	return spec_file_parse(arena, &reporter, text, len, &tree) == 0 && tree &&
	       tree->kind == NODE_MAP && node_entry(tree, "version") &&
	       ((node_entry(tree, "name") && node_entry(tree, "command")) ||
		node_entry(tree, "extends") || node_entry(tree, "profiles"));
}
