/* Overrides from the command line: see resolved.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
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

static void apply_one(struct setter *setter, struct node *root)
{
	const char *equals = strchr(setter->set, '=');
	AUTO(auto_free) char *whole = NULL;
	struct node *node = root, *value;
	struct entry *entry = NULL;
	field_id field = FIELD_NONE;
	const char *path;

	if (!equals || equals == setter->set) {
		problem_hint(problem_error(setter->reporter, setter->at, NULL, "no 'path=value'"),
			     "for example: --set resources.nodes=8");
		return;
	}
	path = whole = mem_copy_n(setter->set, (size_t)(equals - setter->set));
	for (;;) {
		path = step(setter, &field, node, path, &entry);
		if (!path || !entry)
			return;
		if (!*path)
			break;
		if (container_of_field(field) == NODE_SCALAR) {
			no_members(setter, field);
			return;
		}
		node = own_container(setter, entry, container_of_field(field));
		if (!node)
			return;
	}
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
		struct setter setter = { arena, reporter, set, { 0, 0, set } };

		apply_one(&setter, root);
	}
}
