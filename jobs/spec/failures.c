/* The user's own rows of the failure table: see failures.h. */
#include "jobs/spec/failures.h"

#include "jobs/base/fs/fs.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/yaml.h"

static void read_rows(struct reporter *reporter, const char *text, size_t len, json_t *ret)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	struct spec spec = { 0 };
	AUTO(bind_release) struct binder binder = { .spec = &spec, .reporter = *reporter };
	struct mark start = { .line = 1, .column = 1 };
	struct node *tree;
	json_auto_t *rows = NULL;
	const struct entry *entry;

	if (spec_file_parse(arena, reporter, text, len, &tree) < 0)
		return;
	if (!tree || node_is_null(tree))
		return;
	entry = tree->kind == NODE_MAP ? node_entry(tree, "failures") : NULL;
	if (!entry || tree->count != 1) {
		problem_hint(problem_error(reporter, tree->count > 0 ? tree->at : start, NULL,
					   "a file of failures has one field, 'failures'"),
			     "for example failures: %s", field_table[SPEC_FAILURES].example);
		return;
	}
	rows = bind_field(&binder, SPEC_FAILURES, entry);
	if (rows && reporter->problems->errors == 0)
		json_array_extend(ret, rows);
}

json_t *failures_load(const json_t *of_spec, spec_getenv_fn *getenv_fn,
		      struct problems *ret_problems)
{
	json_t *ret = of_spec ? json_deep_copy(of_spec) : json_array();
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = home_config_file(getenv_fn, "failures.yaml");
	struct reporter reporter = { path, ret_problems };
	struct mark whole = { 0 };

	if (!path || !fs_exists(path))
		return ret;
	if (bytes_read(&reporter, path, "the failure table", &text, &err) == 0)
		read_rows(&reporter, text.text, text.len, ret);
	else if (err)
		problem_hint(problem_error(&reporter, whole, NULL, "%s", err->message),
			     "correct the file, or move it away");
	return ret;
}
