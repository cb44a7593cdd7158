/*
 * Loading a spec, from bytes to a resolved one: the order of the steps, and
 * which of them still make sense after one has failed.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/bytes.h"
#include "jobs/spec/expand.h"
#include "jobs/spec/instance.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/set.h"
#include "jobs/spec/yaml.h"

static const char *process_getenv(const char *name)
{
	return getenv(name);
}

/* Text to spec->tree, a map. After a failure here nothing else can be said. */
static int read_tree(struct binder *binder, const char *text, size_t len)
{
	struct spec *spec = binder->spec;
	struct reporter *reporter = &binder->reporter;
	struct mark start = { 1, 1, NULL };
	size_t skip;

	if (bytes_check(reporter, text, len, &skip) < 0 ||
	    tree_parse(spec->arena, reporter, text + skip, len - skip, NULL, &spec->tree) < 0)
		return -1;
	if (!spec->tree || node_is_null(spec->tree)) {
		problem_hint(problem_error(reporter, start, NULL, "the spec is empty"),
			     "write a starter spec: stoker init FILE");
		return -1;
	}
	if (spec->tree->kind != NODE_MAP) {
		problem_hint(problem_error(reporter, spec->tree->at, NULL,
					   "a spec is a map of fields, this is %s",
					   node_kind_text(spec->tree)),
			     "begin with 'version: 1'; 'stoker init FILE' writes a starter spec");
		return -1;
	}
	return 0;
}

static void find_instance(struct binder *binder, spec_getenv_fn *getenv_fn)
{
	const char *type = spec_str(binder->spec, SPEC_RESOURCES_INSTANCE);
	json_auto_t *catalogue = NULL;

	if (!type)
		return;
	catalogue = instances_load(getenv_fn, binder->reporter.problems);
	binder->spec->instance = instance_find(catalogue, type);
}

int spec_parse(const char *file, const char *text, size_t len, char *const *sets,
	       spec_getenv_fn *getenv_fn, struct spec **ret, struct problems *ret_problems)
{
	AUTO(spec_freep) struct spec *spec = mem_zero(1, sizeof *spec);
	AUTO(binder_release) struct binder binder = { .spec = spec };

	spec->file = mem_copy(file);
	spec->arena = arena_new();
	binder.reporter = (struct reporter){ spec->file, ret_problems };
	if (read_tree(&binder, text, len) == 0) {
		set_apply(spec->arena, &binder.reporter, spec->tree, sets);
		expand_tree(spec->arena, &binder.reporter, getenv_fn ? getenv_fn : process_getenv,
			    spec->tree);
		bind_spec(&binder);
		find_instance(&binder, getenv_fn ? getenv_fn : process_getenv);
		rules_check(&binder);
		lint_check(&binder);
	}
	problems_finish(ret_problems);
	if (ret_problems->errors > 0)
		return -1;
	*ret = TAKE(spec);
	return 0;
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
