/* Duplicate keys and merge keys: see keys.h. */
#include "jobs/spec/fields/keys.h"

#include "jobs/base/text/js.h"

const char keys_merge[] = "<<";

/* `index`: key → position of its entry. Returns the entry that already has the key of the one at
 * `at`, or NULL after adding that one. */
static struct entry *index_add(json_t *index, struct entry *entries, size_t at)
{
	const json_t *first = json_object_get(index, entries[at].key);

	if (first)
		return &entries[json_integer_value(first)];
	json_object_set_new_nocheck(index, entries[at].key, json_integer((json_int_t)at));
	return NULL;
}

void keys_check(struct reporter *reporter, struct node *map, const char *path)
{
	json_auto_t *index = json_object();
	size_t kept = 0;

	for (size_t i = 0; i < map->count; i++) {
		struct entry *entry = &map->entries[i], *first;
		AUTO(auto_free) char *field = NULL;

		map->entries[kept] = *entry;
		first = index_add(index, map->entries, kept);
		if (!first) {
			kept++;
			continue;
		}
		field = mem_format("%s%s%s", path ? path : "", path ? "." : "", first->key);
		problem_hint(problem_error(reporter, entry->at, field,
					   "duplicate '%.80s', first in line %d", first->key,
					   first->at.line),
			     "keep one of the two");
	}
	map->count = kept;
}

static void merge_map(struct arena *arena, struct node *merged, json_t *index,
		      const struct node *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct entry *entry = &from->entries[i];

		node_add(arena, merged, entry->key, entry->at, entry->value);
		entry->value->shared = true;
		if (index_add(index, merged->entries, merged->count - 1))
			merged->count--;
	}
}

/* Merges the maps behind one "<<": one map, or a list of maps. */
static int merge_value(struct arena *arena, struct reporter *reporter, struct node *merged,
		       json_t *index, const struct entry *merge)
{
	const struct node *value = merge->value;
	bool good = value->kind != NODE_SCALAR;

	for (size_t i = 0; value->kind == NODE_LIST && i < value->count; i++)
		good = good && value->entries[i].value->kind == NODE_MAP;
	if (!good) {
		problem_hint(problem_error(reporter, merge->at, NULL,
					   "'<<' merges a mapping or a list of mappings"),
			     "write '<<: *anchor' with the anchor of a mapping");
		return -1;
	}
	if (value->kind == NODE_MAP)
		merge_map(arena, merged, index, value);
	for (size_t i = 0; value->kind == NODE_LIST && i < value->count; i++)
		merge_map(arena, merged, index, value->entries[i].value);
	return 0;
}

int keys_resolve_merges(struct arena *arena, struct reporter *reporter, struct node *map)
{
	json_auto_t *index = json_object();
	struct node *merged;
	bool any = false;

	for (size_t i = 0; i < map->count; i++)
		any = any || map->entries[i].key == keys_merge;
	if (!any)
		return 0;
	merged = node_new(arena, NODE_MAP, map->at);
	/* Own entries go first, so that they win; their order is the spec's. */
	for (size_t i = 0; i < map->count; i++)
		if (map->entries[i].key != keys_merge) {
			node_add(arena, merged, map->entries[i].key, map->entries[i].at,
				 map->entries[i].value);
			index_add(index, merged->entries, merged->count - 1);
		}
	for (size_t i = 0; i < map->count; i++)
		if (map->entries[i].key == keys_merge &&
		    merge_value(arena, reporter, merged, index, &map->entries[i]) < 0)
			return -1;
	map->entries = merged->entries;
	map->count = merged->count;
	map->cap = merged->cap;
	return 0;
}
