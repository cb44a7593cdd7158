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
	struct mark start = { 1, 1, NULL };

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
	return 0;
}

static void find_instance(struct binder *binder)
{
	const char *type = spec_str(binder->spec, SPEC_RESOURCES_INSTANCE);

	if (!type)
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

int spec_parse(const char *file, const char *text, size_t len, char *const *sets,
	       spec_getenv_fn *getenv_fn, struct spec **ret, struct problems *ret_problems)
{
	AUTO(spec_freep) struct spec *spec = mem_zero(1, sizeof *spec);
	AUTO(bind_release)
	struct binder binder = { .spec = spec,
				 .getenv_fn = getenv_fn ? getenv_fn : process_getenv };

	spec->file = mem_copy(file);
	spec->text = mem_copy_n(text, len);
	spec->len = len;
	spec->sets = joined(sets, NULL);
	spec->getenv_fn = binder.getenv_fn;
	spec->arena = node_arena_new();
	binder.reporter = (struct reporter){ spec->file, ret_problems };
	if (read_tree(&binder, text, len) == 0) {
		set_apply(spec->arena, &binder.reporter, spec->tree, sets);
		expand_tree(spec->arena, &binder.reporter, binder.getenv_fn, spec->tree);
		derive_apply(&binder);
		load_resolve(&binder);
		find_failures(&binder);
		rules_check(&binder);
		lint_check(&binder);
	}
	problems_finish(ret_problems);
	if (ret_problems->errors > 0)
		return -1;
	*ret = TAKE(spec);
	return 0;
}

int spec_with(const struct spec *spec, char *const *sets, struct spec **ret,
	      struct problems *ret_problems)
{
	AUTO(auto_strv) char **all = joined(spec->sets, sets);

	return spec_parse(spec->file, spec->text, spec->len, all, spec->getenv_fn, ret,
			  ret_problems);
}

int spec_load(const char *path, char *const *sets, spec_getenv_fn *getenv_fn, struct spec **ret,
	      struct problems *ret_problems, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	struct reporter reporter = { path, ret_problems };

	if (bytes_read(&reporter, path, &text, err) < 0)
		return -1;
	return spec_parse(path, text.text, text.len, sets, getenv_fn, ret, ret_problems);
}

bool spec_is_one(const char *text, size_t len)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	AUTO(problems_release) struct problems problems = { 0 };
	struct reporter reporter = { "", &problems };
	struct node *tree;

	return spec_file_parse(arena, &reporter, text, len, &tree) == 0 && tree &&
	       tree->kind == NODE_MAP && node_entry(tree, "version") && node_entry(tree, "name") &&
	       node_entry(tree, "command");
}
