/*
 * The tree against the field table: every value gets its type or a problem,
 * every name its row or a suggestion, every absent field its default.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/lint/suggest.h"
#include "jobs/spec/resolved.h"
#include "jobs/spec/yaml.h"

static json_t *bind_value(struct binder *binder, field_id field, const struct entry *entry,
			  const struct path *path);

static void unknown_name(struct binder *binder, field_id section, const struct entry *entry,
			 const struct path *path)
{
	struct path at = { path, entry->key, 0 };
	AUTO(auto_free) char *where = node_path_text(path);
	AUTO(auto_free) char *field = node_path_text(&at);
	AUTO(auto_free) char *hint = NULL;
	struct problem *problem;

	problem = problem_error(&binder->reporter, entry->at, field,
				where ? "unknown field '%.80s' in '%s'" : "unknown field '%.80s'",
				entry->key, where);
	if (!problem)
		return; /* past the bound: skip the search */
	hint = suggest_field(section, entry->key);
	problem_hint(problem, "%s", hint);
}

/* Shows how to write a text such as "python3 train.py" as a list. */
static char *list_hint(field_id id, const struct node *node)
{
	const struct field *row = &field_table[id];
	AUTO(auto_free) char *copy = NULL;
	AUTO(sb_release) struct sb list = SB_INIT_MAX(200);
	char *rest = NULL;

	if (field_table[field_item(id)].type == FIELD_SECTION || node->kind != NODE_SCALAR ||
	    !*node->text || strpbrk(node->text, "\"'\\|&;<>$*#`"))
		return mem_format("for example: %s: %s", row->path,
				  row->example ? row->example : "[…]");
	copy = mem_copy(node->text);
	for (char *word = strtok_r(copy, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest))
		sb_addf(&list, "%s%s", list.len > 0 ? ", " : "", word);
	return mem_format("write [%s]", list.text);
}

static json_t *wrong_kind(struct binder *binder, field_id field, const struct node *node,
			  const struct path *path)
{
	const struct field *row = &field_table[field];
	AUTO(auto_free) char *name = node_path_text(path);
	AUTO(auto_free) char *hint = NULL;
	bool empty = node_is_null(node);
	struct problem *problem =
		problem_error(&binder->reporter, node->at, name,
			      empty ? "'%s' has no value" : "'%s' must be %s, not %s", name,
			      field_type_text(row->type), node_kind_text(node));

	if (!problem)
		return NULL;
	if (empty && row->fallback)
		hint = mem_format("write a value, or remove the line (default: %s)", row->fallback);
	else if (empty && !row->required)
		hint = mem_format("write a value, or remove the line");
	else if (row->type == FIELD_LIST)
		hint = list_hint(field, node);
	else if (row->type == FIELD_SECTION || row->type == FIELD_FREE)
		hint = mem_format("write the members below it, one 'name: value' a line, indented");
	else
		hint = mem_format("for example: %s", row->example ? row->example : "");
	problem_hint(problem, "%s", hint);
	return NULL;
}

unsigned bind_engine_bit(const char *engine)
{
	const char *words = field_table[SPEC_ENGINE].words;
	size_t len = strlen(engine);

	for (unsigned bit = 1; *words; bit <<= 1) {
		size_t n = strcspn(words, " ");

		if (n == len && strncmp(words, engine, n) == 0)
			return bit;
		words += n + (words[n] == ' ');
	}
	return 0;
}

/* True if a missing member is there under a wrong name, which was reported already. */
static bool mistyped(field_id section, field_id missing, const struct node *map)
{
	for (size_t i = 0; i < map->count && i < 100; i++)
		if (field_child(section, map->entries[i].key) == FIELD_NONE &&
		    suggest_member(section, map->entries[i].key) == missing)
			return true;
	return false;
}

static void report_missing(struct binder *binder, const struct field *row, struct mark at,
			   const struct path *path)
{
	AUTO(auto_free) char *name = node_path_text(path);

	struct problem *problem =
		problem_error(&binder->reporter, at, name, "'%s' is missing", name);

	problem_missing(problem);
	problem_hint(problem, "%s; for example %s: %s", row->help, path->name, row->example);
}

/* Reports required members that are missing; absent ones get defaults. */
static void fill_section(struct binder *binder, field_id section, json_t *object,
			 const struct node *map, struct mark at, const struct path *path)
{
	const char *engine = json_string_value(json_object_get(binder->spec->root, "engine"));
	unsigned bit = bind_engine_bit(engine ? engine : field_table[SPEC_ENGINE].fallback);

	for (field_id id = section + 1; id < SPEC_FIELD_COUNT; id++) {
		const struct field *row = &field_table[id];
		struct path missing = { path, field_leaf(id), 0 };
		json_t *value;

		if (field_parent(id) != section || node_entry(map, missing.name))
			continue;
		if (row->required) {
			if (!mistyped(section, id, map))
				report_missing(binder, row, at, &missing);
			continue;
		}
		if (row->optional ||
		    (row->type == FIELD_SECTION && row->engines != 0 && (row->engines & bit) == 0))
			continue;
		value = row->type == FIELD_SECTION ? bind_defaults(id) : bind_default(id);
		if (value)
			json_object_set_new_nocheck(object, missing.name, value);
	}
}

json_t *bind_defaults(field_id section)
{
	json_t *object = json_object();

	for (field_id id = section + 1; id < SPEC_FIELD_COUNT; id++) {
		json_t *value;

		if (field_parent(id) != section)
			continue;
		if (field_table[id].optional)
			continue;
		value = field_table[id].type == FIELD_SECTION ? bind_defaults(id)
							      : bind_default(id);
		if (value)
			json_object_set_new_nocheck(object, field_leaf(id), value);
	}
	if (json_object_size(object) > 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *bind_section(struct binder *binder, field_id section, const struct node *map,
			    json_t *object, struct mark at, const struct path *path)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct entry *entry = &map->entries[i];
		field_id id = field_child(section, entry->key);
		struct path below = { path, entry->key, 0 };
		json_t *value;

		if (id == FIELD_NONE && section == FIELD_NONE && field_is_own(entry->key))
			continue;
		if (id == FIELD_NONE) {
			unknown_name(binder, section, entry, path);
			continue;
		}
		value = bind_value(binder, id, entry, &below);
		if (value)
			json_object_set_new_nocheck(object, entry->key, value);
	}
	fill_section(binder, section, object, map, at, path);
	return object;
}

static json_t *bind_list(struct binder *binder, field_id list, const struct node *node,
			 const struct path *path)
{
	size_t most = field_table[list].max_items ? field_table[list].max_items : node->count;
	AUTO(auto_free) char *name = NULL;
	json_t *array = json_array();

	for (size_t i = 0; i < node->count && i < most; i++) {
		struct path below = { path, NULL, i };
		json_t *value = bind_value(binder, field_item(list), &node->entries[i], &below);

		if (value)
			json_array_append_new(array, value);
	}
	if (node->count >= field_table[list].min_items && node->count <= most)
		return array;
	name = node_path_text(path);
	if (node->count > most)
		problem_hint(problem_error(&binder->reporter, node->entries[most].at, name,
					   "'%s' has %zu items, more than %zu", name, node->count,
					   most),
			     "keep only the items that you use");
	else
		problem_hint(
			problem_error(&binder->reporter, node->at, name, "'%s' is empty", name),
			"for example: %s", field_table[list].example);
	return array;
}

static json_t *bind_free(struct binder *binder, field_id map, const struct node *node,
			 const struct path *path)
{
	const struct shape_row *shape = &field_shape_rows[field_table[map].key_shape];
	json_t *object = json_object();

	for (size_t i = 0; i < node->count; i++) {
		const struct entry *entry = &node->entries[i];
		struct path below = { path, entry->key, 0 };
		json_t *value;

		if (!value_has_shape(binder, field_table[map].key_shape, entry->key)) {
			AUTO(auto_free) char *name = node_path_text(&below);
			struct problem *problem = problem_error(
				&binder->reporter, entry->at, name, "'%.80s' in '%s' must be %s",
				entry->key, field_table[map].path, shape->what);

			problem_hint(problem, "%s",
				     shape->hint ? shape->hint : field_table[map].help);
		}
		value = bind_value(binder, field_item(map), entry, &below);
		if (value)
			json_object_set_new_nocheck(object, entry->key, value);
	}
	return object;
}

static json_t *bind_value(struct binder *binder, field_id field, const struct entry *entry,
			  const struct path *path)
{
	const struct node *node = entry->value;
	enum field_type type = field_table[field].type;
	bool empty = node_is_null(node);

	if (!binder->spec->written[field])
		binder->spec->written[field] = entry;
	switch (type) {
	case FIELD_SECTION:
		if (node->kind == NODE_MAP || empty)
			return bind_section(binder, field, node, json_object(), entry->at, path);
		break;
	case FIELD_LIST:
		if (node->kind == NODE_LIST || (empty && field_table[field].min_items == 0))
			return bind_list(binder, field, node, path);
		if (field_table[field].single && node->kind == NODE_SCALAR && !empty) {
			/* The entry outlives this call: its place is asked for later. */
			const struct node list = { .kind = NODE_LIST,
						   .at = node->at,
						   .entries = (struct entry *)(uintptr_t)entry,
						   .count = 1 };

			return bind_list(binder, field, &list, path);
		}
		break;
	case FIELD_FREE:
		if (node->kind == NODE_MAP || empty)
			return bind_free(binder, field, node, path);
		break;
	case FIELD_ANY:
		return value_any(binder, node, path);
	case FIELD_OVERLAY: /* layers/profiles.c takes them out of a spec */
		if (node->kind == NODE_MAP || empty)
			return json_object();
		break;
	default:
		if (node->kind == NODE_SCALAR && !empty)
			return value_convert(binder, field, node, path);
		break;
	}
	return wrong_kind(binder, field, node, path);
}

void bind_spec(struct binder *binder)
{
	struct spec *spec = binder->spec;

	spec->root = json_object();
	bind_section(binder, FIELD_NONE, spec->tree, spec->root, spec->start, NULL);
}

json_t *bind_field_as(struct binder *binder, field_id field, const char *name,
		      const struct entry *entry)
{
	struct path path = { NULL, name, 0 };

	return bind_value(binder, field, entry, &path);
}

json_t *bind_field(struct binder *binder, field_id field, const struct entry *entry)
{
	return bind_field_as(binder, field, field_leaf(field), entry);
}

/* Defaults are constant and a test reads each with all checks: they cause no problem, and texts
 * need no second look. */
json_t *bind_default(field_id field)
{
	const struct field *row = &field_table[field];
	struct problems problems = { 0 };
	struct spec spec = { 0 };
	struct binder binder = { .spec = &spec, .reporter = { row->path, &problems } };
	AUTO(node_arena_freep) struct arena *arena = NULL;
	struct node scalar = { .text = row->fallback, .written = row->fallback };
	struct entry entry = { .value = &scalar };
	json_t *value;

	if (row->type == FIELD_FREE)
		return json_object();
	if (!row->fallback)
		return NULL;
	if (row->type == FIELD_STRING || row->type == FIELD_CHOICE || row->type == FIELD_DURATION)
		return json_string_nocheck(row->fallback);
	if (row->type != FIELD_LIST)
		return value_convert(&binder, field, &scalar, NULL);
	if (strcmp(row->fallback, "[]") == 0)
		return json_array();
	arena = node_arena_new();
	entry.value = bind_text(arena, &binder.reporter, field, row->fallback, NULL);
	value = json_array();
	for (size_t i = 0; i < entry.value->count; i++)
		json_array_append_new(value,
				      json_string_nocheck(entry.value->entries[i].value->text));
	return value;
}

/* True for a text of several lines that is not written as YAML: it is taken as it is, because
 * YAML would join the lines. */
static bool is_plain_text(const struct node *node, const char *text)
{
	const char *second = text + strcspn(text, "\n");

	return node && node->kind == NODE_SCALAR && !node->quoted &&
	       second[strspn(second, " \t\n")] != '\0';
}

struct node *bind_text(struct arena *arena, struct reporter *reporter, field_id field,
		       const char *text, const char *set)
{
	enum field_type type = field_table[field].type;
	struct mark at = { .line = set ? 0 : 1, .column = set ? 0 : 1, .set = set };
	struct node *node = NULL;

	switch (type) {
	case FIELD_SECTION:
	case FIELD_LIST:
	case FIELD_FREE:
	case FIELD_ANY:
	case FIELD_OVERLAY:
		if (spec_tree_parse(arena, reporter, text, strlen(text), set, &node) < 0)
			return NULL;
		if (is_plain_text(node, text))
			return node_scalar(arena, text, true, at);
		return node ? node : node_scalar(arena, "", false, at);
	case FIELD_STRING:
		return node_scalar(arena, text, true, at);
	default:
		return node_scalar(arena, text, false, at);
	}
}

void bind_release(struct binder *binder)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++)
		regex_freep(&binder->shapes[i]);
	json_decref(binder->catalogue);
}
