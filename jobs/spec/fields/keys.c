/* Duplicate keys and merge keys: see keys.h. */
#include "jobs/spec/fields/keys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"

const char keys_merge[] = "<<";

/* Indices of entries by hash of their key: open addressing, no removal. */
struct index {
	uint32_t *slots; /* index + 1; 0 is free */
	size_t mask;
};

static void index_init(struct index *index, size_t count)
{
	size_t size = 16;

	while (size < 2 * count)
		size *= 2;
	index->slots = mem_zero(size, sizeof *index->slots);
	index->mask = size - 1;
}

static void index_release(struct index *index)
{
	free(index->slots);
}

static size_t hash_of(const char *key)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * UINT64_C(1099511628211);
	return (size_t)(hash ^ (hash >> 32));
}

/* Returns the entry that already has this key, or NULL after adding `at`. */
static struct entry *index_add(struct index *index, struct entry *entries, size_t at)
{
	size_t slot = hash_of(entries[at].key) & index->mask;

	while (index->slots[slot] != 0) {
		struct entry *other = &entries[index->slots[slot] - 1];

		if (strcmp(other->key, entries[at].key) == 0)
			return other;
		slot = (slot + 1) & index->mask;
	}
	index->slots[slot] = (uint32_t)at + 1;
	return NULL;
}

void keys_check(struct reporter *reporter, struct node *map, const char *path)
{
	AUTO(index_release) struct index index = { 0 };
	size_t kept = 0;

	index_init(&index, map->count);
	for (size_t i = 0; i < map->count; i++) {
		struct entry *entry = &map->entries[i], *first;
		AUTO(auto_free) char *field = NULL;

		map->entries[kept] = *entry;
		first = index_add(&index, map->entries, kept);
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

static void merge_map(struct arena *arena, struct node *merged, struct index *index,
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
		       struct index *index, const struct entry *merge)
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
	AUTO(index_release) struct index index = { 0 };
	struct node *merged;
	size_t room = map->count;
	bool any = false;

	for (size_t i = 0; i < map->count; i++) {
		any = any || map->entries[i].key == keys_merge;
		room += map->entries[i].value->weight;
	}
	if (!any)
		return 0;
	index_init(&index, room);
	merged = node_new(arena, NODE_MAP, map->at);
	/* Own entries go first, so that they win; their order is the spec's. */
	for (size_t i = 0; i < map->count; i++)
		if (map->entries[i].key != keys_merge) {
			node_add(arena, merged, map->entries[i].key, map->entries[i].at,
				 map->entries[i].value);
			index_add(&index, merged->entries, merged->count - 1);
		}
	for (size_t i = 0; i < map->count; i++)
		if (map->entries[i].key == keys_merge &&
		    merge_value(arena, reporter, merged, &index, &map->entries[i]) < 0)
			return -1;
	map->entries = merged->entries;
	map->count = merged->count;
	map->cap = merged->cap;
	return 0;
}
