/* Overrides from the command line: see resolved.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/lint/suggest.h"
#include "jobs/spec/resolved.h"

#define SET_INDEX_MAX 10000

struct setter {
	struct arena *arena;
	struct reporter *reporter;
	const char *set; /* the whole "path=value" */
	struct mark at;
};

static void bad_path(struct setter *setter, field_id section, const char *name)
{
	AUTO(auto_free) char *path = mem_copy_n(setter->set, strcspn(setter->set, "="));
	AUTO(auto_free) char *hint = suggest_field(section, name);
	struct problem *problem;

	if (section == FIELD_NONE)
		problem = problem_error(setter->reporter, setter->at, path, "unknown field '%s'",
					name);
	else
		problem = problem_error(setter->reporter, setter->at, path,
					"unknown field '%s' in '%s'", name,
					field_table[section].path);
	problem_hint(problem, "%s", hint);
}

static enum node_kind container_of_field(field_id field)
{
	enum field_type type = field_table[field].type;

	if (type == FIELD_LIST)
		return NODE_LIST;
	return type == FIELD_SECTION || type == FIELD_FREE ? NODE_MAP : NODE_SCALAR;
}

static void no_members(struct setter *setter, field_id field)
{
	const struct field *row = &field_table[field];

	problem_hint(problem_error(setter->reporter, setter->at, row->path, "'%s' has no members",
				   row->path),
		     "for example: --set %s=%s", row->path, row->example);
}

static struct entry *entry_make(struct setter *setter, struct node *map, const char *key)
{
	struct entry *entry = node_entry(map, key);

	if (!entry) {
		node_add(setter->arena, map, node_arena_text(setter->arena, key, strlen(key)),
			 setter->at, node_new(setter->arena, NODE_SCALAR, setter->at));
		entry = &map->entries[map->count - 1];
		entry->value->text = entry->value->written = "";
	}
	return entry;
}

/* Makes the value of an entry a container of its own: an empty value becomes one, an anchored
 * one is copied, so that no alias changes with it. A value of another kind stays and is reported
 * when the tree is checked. */
static struct node *own_container(struct setter *setter, struct entry *entry, enum node_kind kind)
{
	if (node_is_null(entry->value))
		entry->value = node_new(setter->arena, kind, setter->at);
	else if (entry->value->shared && entry->value->kind == kind)
		entry->value = node_own(setter->arena, entry->value);
	return entry->value->kind == kind ? entry->value : NULL;
}

/* Returns the entry for "[2]" of a list; an index one past the end appends. */
static struct entry *item_entry(struct setter *setter, struct node *list, size_t index)
{
	if (index > list->count || index > SET_INDEX_MAX) {
		problem_hint(problem_error(setter->reporter, setter->at, NULL,
					   "the list has %zu items, but no [%zu]", list->count,
					   index),
			     "items count from 0; [%zu] appends one", list->count);
		return NULL;
	}
	if (index == list->count) {
		struct node *empty = node_new(setter->arena, NODE_SCALAR, setter->at);

		empty->text = empty->written = "";
		node_add(setter->arena, list, NULL, setter->at, empty);
	}
	return &list->entries[index];
}

/* Takes a step of the path below `*field`, whose container is `node`: moves on both and returns
 * the rest of the path, NULL after a problem. */
static const char *step(struct setter *setter, field_id *field, struct node *node, const char *path,
			struct entry **ret_entry)
{
	enum field_type type = *field == FIELD_NONE ? FIELD_SECTION : field_table[*field].type;
	size_t len = strcspn(path, ".[");
	AUTO(auto_free) char *name = NULL;
	field_id child;
	char *end;
	unsigned long index;

	if (type == FIELD_FREE) { /* names may hold dots: all the rest is one name */
		*ret_entry = entry_make(setter, node, path);
		*field = field_item(*field);
		return path + strlen(path);
	}
	if (type == FIELD_LIST) {
		path += *path == '[';
		index = strtoul(path, &end, 10);
		if (end == path) {
			problem_hint(problem_error(setter->reporter, setter->at, NULL,
						   "'%s' is a list", field_table[*field].path),
				     "name the item: %s[0]", field_table[*field].path);
			return NULL;
		}
		*ret_entry = item_entry(setter, node, index);
		*field = field_item(*field);
		end += *end == ']';
		return *ret_entry ? end + (*end == '.') : NULL;
	}
	name = mem_copy_n(path, len);
	child = field_child(*field, name);
	if (child == FIELD_NONE) {
		bad_path(setter, *field, name);
		return NULL;
	}
	*field = child;
	if (path[len] && container_of_field(child) == NODE_SCALAR) {
		no_members(setter, child);
		return NULL;
	}
	*ret_entry = entry_make(setter, node, name);
	return path + len + (path[len] == '.');
}

/* Returns the entry that the path leads to, which is made if it is not there; NULL after a problem.
 */
static struct entry *entry_of(struct setter *setter, struct node *root, const char *path,
			      field_id *ret_field)
{
	struct node *node = root;
	struct entry *entry = NULL;

	*ret_field = FIELD_NONE;
	for (;;) {
		path = step(setter, ret_field, node, path, &entry);
		if (!path || !entry)
			return NULL;
		if (!*path)
			return entry;
		if (container_of_field(*ret_field) == NODE_SCALAR) {
			no_members(setter, *ret_field);
			return NULL;
		}
		node = own_container(setter, entry, container_of_field(*ret_field));
		if (!node)
			return NULL;
	}
}

/* True if a path is a field of this name at the top, or is in it. */
static bool is_within(const char *path, const char *name)
{
	size_t len = strlen(name);

	return text_starts(path, name) && (path[len] == '\0' || strchr(".[", path[len]));
}

/* True for a field that is a layer of the spec, which is reported. */
static bool is_layer(struct setter *setter, const char *path)
{
	bool profiles = is_within(path, "profiles");

	if (!profiles && !is_within(path, "extends"))
		return false;
	problem_hint(problem_error(setter->reporter, setter->at, path, "'%s' cannot be set", path),
		     profiles ? "choose a profile: --use NAME"
			      : "write it in the spec, or set the fields themselves");
	return true;
}

static void apply_one(struct setter *setter, struct node *root)
{
	const char *equals = strchr(setter->set, '=');
	AUTO(auto_free) char *path = NULL;
	struct entry *entry;
	struct node *value;
	field_id field;

	if (!equals || equals == setter->set) {
		problem_hint(problem_error(setter->reporter, setter->at, NULL, "no 'path=value'"),
			     "for example: --set resources.nodes=8");
		return;
	}
	path = mem_copy_n(setter->set, (size_t)(equals - setter->set));
	if (is_layer(setter, path))
		return;
	entry = entry_of(setter, root, path, &field);
	if (!entry)
		return;
	value = bind_text(setter->arena, setter->reporter, field, equals + 1, setter->set);
	if (!value)
		return;
	entry->value = value;
	entry->at = setter->at;
}

void set_apply(struct arena *arena, struct reporter *reporter, struct node *root, char *const *sets)
{
	for (; sets && *sets; sets++) {
		const char *set = node_arena_text(arena, *sets, strlen(*sets));
		struct setter setter = { arena, reporter, set, { .set = set } };

		apply_one(&setter, root);
	}
}

void set_node(struct arena *arena, struct reporter *reporter, struct node *root, const char *path,
	      struct node *value)
{
	struct setter setter = { arena, reporter, path, value->at };
	field_id field;
	struct entry *entry = entry_of(&setter, root, path, &field);

	if (!entry)
		return;
	entry->value = value;
	entry->at = value->at;
}

/* ---- paths as keys ---- */

static void unknown_path(struct binder *binder, const struct entry *entry, const char *where)
{
	const char *near = spec_field_nearest(entry->key);
	struct problem *problem = problem_error(&binder->reporter, entry->at, where,
						"unknown field '%.80s' in '%s'", entry->key, where);

	if (near)
		problem_hint(problem, "did you mean '%s'?", near);
	else
		problem_hint(problem, "write the path as --set takes it: resources.nodes, "
				      "env.NAME, hyperparameters.NAME");
}

/* Reports a key whose shape its free map does not take. */
static bool has_good_key(struct binder *binder, field_id field, const struct entry *entry,
			 const char *where)
{
	field_id parent = field_parent(field);
	enum field_shape shape = parent == FIELD_NONE ? SHAPE_NONE : field_table[parent].key_shape;
	struct problem *problem;

	if (shape == SHAPE_NONE ||
	    value_has_shape(binder, shape, entry->key + strlen(field_table[parent].path) + 1))
		return true;
	problem = problem_error(&binder->reporter, entry->at, where, "'%.80s' in '%s' must be %s",
				entry->key, where, field_shape_rows[shape].what);
	problem_hint(problem, "%s",
		     field_shape_rows[shape].hint ? field_shape_rows[shape].hint
						  : field_table[field].help);
	return false;
}

field_id set_check_path(struct binder *binder, const struct entry *entry, const char *where,
			const char *const never[], const char *why)
{
	field_id field = field_find(entry->key);

	if (field == FIELD_NONE) {
		unknown_path(binder, entry, where);
		return FIELD_NONE;
	}
	for (; *never; never++)
		if (is_within(entry->key, *never)) {
			problem_hint(problem_error(&binder->reporter, entry->at, where, "'%s' %s",
						   entry->key, why),
				     "name a field of the job");
			return FIELD_NONE;
		}
	if (field_table[field].type == FIELD_SECTION || field_table[field].type == FIELD_FREE) {
		problem_hint(problem_error(&binder->reporter, entry->at, where,
					   "'%s' is no field, but has fields", entry->key),
			     "name one of them: %s.…", entry->key);
		return FIELD_NONE;
	}
	return has_good_key(binder, field, entry, where) ? field : FIELD_NONE;
}
