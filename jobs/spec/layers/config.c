/*
 * The user's own configuration: see layers.h. It gives defaults for what differs from person to
 * person, never for what decides the graphs: two colleagues with one spec must get one graph key.
 * The rows of fields.def that may stand in it are `configurable`, but for members that are
 * `spec_only`; `state` is the place of the runs,
 * which no spec names.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/bytes.h"
#include "jobs/spec/fields/keys.h"
#include "jobs/spec/layers/layers.h"
#include "jobs/spec/lint/suggest.h"
#include "jobs/spec/yaml.h"

#define STATE   "state"
#define ONE_KEY "write it in the spec: one spec has one graph key, whoever runs it"

/* Returns the path of the file; NULL: there is none. A file that is named must exist. The caller
 * frees it. */
static char *path_of(spec_getenv_fn *getenv_fn)
{
	const char *named = getenv_fn("STOKER_CONFIG");
	char *path;

	if (named)
		return *named ? mem_copy(named) : NULL;
	path = home_config_file(getenv_fn, "config.yaml");
	if (path && fs_exists(path))
		return path;
	free(path);
	return NULL;
}

static char *fields_list(void)
{
	AUTO(sb_release) struct sb words = SB_INIT;

	sb_adds(&words, STATE);
	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++)
		if (field_table[id].configurable)
			sb_addf(&words, " %s", field_table[id].path);
	return field_words_list(words.text, " and ");
}

/* Reports members of a section that decide graphs. */
static void check_members(struct reporter *reporter, field_id section, const struct node *value)
{
	for (size_t i = 0; value->kind == NODE_MAP && i < value->count; i++) {
		const struct entry *entry = &value->entries[i];
		field_id field = field_child(section, entry->key);

		if (field == FIELD_NONE || !field_table[field].spec_only)
			continue;
		problem_hint(problem_error(reporter, entry->at, field_table[field].path,
					   "'%s' cannot stand in a user's configuration",
					   field_table[field].path),
			     "%s", ONE_KEY);
	}
}

/* Checks a name at the top of the file; false if it must not count. */
static bool check_name(struct reporter *reporter, const struct entry *entry)
{
	field_id field = field_child(FIELD_NONE, entry->key);
	AUTO(auto_free) char *list = NULL;
	struct problem *problem;

	if (field_is_own(entry->key))
		return true;
	if (field != FIELD_NONE && field_table[field].configurable) {
		check_members(reporter, field, entry->value);
		return true;
	}
	list = fields_list();
	if (field == FIELD_NONE) {
		problem = problem_error(reporter, entry->at, entry->key, "unknown field '%.80s'",
					entry->key);
		problem_hint(problem, "a user's configuration has %s", list);
		return false;
	}
	problem = problem_error(reporter, entry->at, entry->key,
				"'%s' cannot stand in a user's configuration", entry->key);
	if (field_table[field].in_key || field == SPEC_ENGINE)
		problem_hint(problem, "%s", ONE_KEY);
	else
		problem_hint(problem, "write it in the spec; the configuration has %s", list);
	return false;
}

/* Reads the file into a tree; NULL: there is nothing in it. */
static struct node *read_tree(struct arena *arena, struct reporter *reporter)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(2 * SPEC_BYTES_MAX);
	AUTO(err_freep) struct err *err = NULL;
	struct mark whole = { 0 };
	struct node *tree;

	if (bytes_read(reporter, reporter->file, "the configuration", &text, &err) < 0) {
		if (err)
			problem_hint(problem_error(reporter, whole, NULL, "%s", err->message),
				     "correct STOKER_CONFIG, or set it empty for none");
		return NULL;
	}
	if (spec_file_parse(arena, reporter, text.text, text.len, &tree) < 0)
		return NULL;
	if (!tree || node_is_null(tree))
		return NULL;
	if (tree->kind != NODE_MAP) {
		problem_hint(problem_error(reporter, tree->at, NULL,
					   "a configuration is a mapping of fields, not %s",
					   node_kind_text(tree)),
			     "for example limits: {cost: 500}");
		return NULL;
	}
	return tree;
}

/* Reads what may stand below a spec; NULL: nothing does. */
static struct node *read_fields(struct binder *binder, const char *path)
{
	struct arena *arena = binder->spec->arena;
	struct reporter reporter = { node_arena_text(arena, path, strlen(path)),
				     binder->reporter.problems };
	const struct node *tree = read_tree(arena, &reporter);
	size_t room = TREE_NODES_MAX;
	struct node *kept;

	if (!tree)
		return NULL;
	kept = node_new(arena, NODE_MAP, tree->at);
	for (size_t i = 0; i < tree->count; i++) {
		const struct entry *entry = &tree->entries[i];

		if (strcmp(entry->key, STATE) != 0 && check_name(&reporter, entry))
			node_add(arena, kept, entry->key, entry->at, entry->value);
	}
	return node_copy(arena, kept, reporter.file, NULL, &room);
}

/* Removes the sections of other engines: they are settings for other specs. */
static void leave_out(struct node *config, const char *engine)
{
	unsigned bit = bind_engine_bit(engine);

	for (field_id id = 0; id < SPEC_FIELD_COUNT; id++) {
		const struct field *row = &field_table[id];

		if (row->configurable && row->engines != 0 && (row->engines & bit) == 0)
			node_remove(config, row->path);
	}
}

void config_apply(struct binder *binder)
{
	struct spec *spec = binder->spec;
	AUTO(auto_free) char *path = path_of(binder->getenv_fn);
	const struct entry *engine = node_entry(spec->tree, field_table[SPEC_ENGINE].path);
	struct node *config = path ? read_fields(binder, path) : NULL;
	struct mark at = spec->tree->at;

	if (!config)
		return;
	expand_tree(spec->arena, &binder->reporter, binder->getenv_fn, config, spec->variables);
	leave_out(config, engine && engine->value->kind == NODE_SCALAR
				  ? engine->value->text
				  : field_table[SPEC_ENGINE].fallback);
	spec->configuration = config->at.file;
	spec->tree = merge_nodes(spec->arena, FIELD_NONE, config, spec->tree, NULL_STAYS);
	spec->tree->at = at;
}

/* Returns the text at `name` of a map, expanded and checked as the row says; NULL: there is none,
 * or a problem. The caller frees it. */
static char *text_at(struct binder *binder, struct node *map, const char *name, const char *field)
{
	struct entry *entry = map && map->kind == NODE_MAP ? node_entry(map, name) : NULL;

	if (!entry || node_is_null(entry->value))
		return NULL;
	if (entry->value->kind != NODE_SCALAR) {
		problem_hint(problem_error(&binder->reporter, entry->value->at, field,
					   "'%s' must be a string, not %s", field,
					   node_kind_text(entry->value)),
			     "write one value");
		return NULL;
	}
	return home_expand(binder, entry->value, field);
}

/* Returns a place of the runs as the file has it; a relative folder is beside the file. */
static char *state_of(struct binder *binder, struct node *tree)
{
	AUTO(auto_free) char *text = text_at(binder, tree, STATE, STATE);

	if (!text || strchr(text, ':'))
		return TAKE(text);
	return extends_beside(binder->reporter.file, text);
}

int spec_configuration(spec_getenv_fn *getenv_fn, char **ret_state, char **ret_region,
		       struct err **err)
{
	AUTO(node_arena_freep) struct arena *arena = node_arena_new();
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(auto_free) char *path = path_of(getenv_fn);
	struct binder binder = { .reporter = { path, &problems }, .getenv_fn = getenv_fn };
	struct node *tree = path ? read_tree(arena, &binder.reporter) : NULL;
	struct entry *aws = tree ? node_entry(tree, field_table[SPEC_AWS].path) : NULL;

	*ret_state = *ret_region = NULL;
	if (tree)
		expand_tree(arena, &binder.reporter, getenv_fn, tree, NULL);
	*ret_state = tree ? state_of(&binder, tree) : NULL;
	*ret_region = aws ? text_at(&binder, aws->value, "region", "aws.region") : NULL;
	problems_finish(&problems, path ? path : "");
	if (problems.errors == 0)
		return 0;
	auto_free(ret_state);
	auto_free(ret_region);
	err_set(err, EXIT_SPEC, "%s", problems.list[0].message);
	err_at(err, problems.list[0].file, problems.list[0].line, problems.list[0].column);
	return problems.list[0].hint ? err_hint(err, "%s", problems.list[0].hint) : -1;
}
