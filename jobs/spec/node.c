/* The tree of a spec and the memory it lives in: see node.h. */
#include "jobs/spec/node.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/fields/scalar.h"

#define ARENA_CHUNK ((size_t)16 << 10)

struct chunk {
	struct chunk *next;
	size_t used, size;
	alignas(max_align_t) unsigned char bytes[];
};

struct arena {
	struct chunk *head;
};

struct arena *node_arena_new(void)
{
	return mem_zero(1, sizeof(struct arena));
}

void node_arena_freep(struct arena **arena)
{
	struct chunk *next;

	if (!*arena)
		return;
	for (struct chunk *chunk = (*arena)->head; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(*arena);
	*arena = NULL;
}

static void *arena_get(struct arena *arena, size_t size)
{
	struct chunk *chunk = arena->head;
	size_t rounded =
		(size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);

	if (!chunk || chunk->size - chunk->used < rounded) {
		size_t room = rounded > ARENA_CHUNK ? rounded : ARENA_CHUNK;

		chunk = mem_zero(1, sizeof *chunk + room);
		chunk->size = room;
		chunk->next = arena->head;
		arena->head = chunk;
	}
	chunk->used += rounded;
	return chunk->bytes + chunk->used - rounded;
}

char *node_arena_text(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_get(arena, len + 1);

	memcpy(copy, text, len);
	return copy;
}

struct node *node_new(struct arena *arena, enum node_kind kind, struct mark at)
{
	struct node *node = arena_get(arena, sizeof *node);

	node->kind = kind;
	node->at = at;
	node->weight = 1;
	return node;
}

struct node *node_scalar(struct arena *arena, const char *text, bool quoted, struct mark at)
{
	struct node *node = node_new(arena, NODE_SCALAR, at);

	node->bytes = strlen(text);
	node->text = node->written = node_arena_text(arena, text, node->bytes);
	node->quoted = quoted;
	return node;
}

void node_add(struct arena *arena, struct node *node, const char *key, struct mark at,
	      struct node *value)
{
	if (node->count == node->cap) {
		size_t cap = node->cap ? 2 * node->cap : 4;
		struct entry *more = arena_get(arena, cap * sizeof *more);

		if (node->count > 0)
			memcpy(more, node->entries, node->count * sizeof *more);
		node->entries = more;
		node->cap = cap;
	}
	node->entries[node->count++] = (struct entry){ .key = key, .at = at, .value = value };
	node->weight += value->weight;
	node->bytes += value->bytes;
}

struct node *node_own(struct arena *arena, const struct node *node)
{
	struct node *own = node_new(arena, node->kind, node->at);

	*own = *node;
	own->shared = false;
	own->entries = NULL;
	own->count = own->cap = 0;
	own->weight = 1;
	own->bytes = node->kind == NODE_SCALAR ? node->bytes : 0;
	for (size_t i = 0; i < node->count; i++) {
		const struct entry *entry = &node->entries[i];

		/* The nodes below are still used in both places. */
		entry->value->shared = true;
		node_add(arena, own, entry->key, entry->at, entry->value);
	}
	return own;
}

static struct mark stamped(struct mark at, const char *file, const char *profile)
{
	at.file = file ? file : at.file;
	at.profile = profile ? profile : at.profile;
	return at;
}

struct node *node_copy(struct arena *arena, const struct node *node, const char *file,
		       const char *profile, size_t *room)
{
	struct node *copy;

	if (*room == 0)
		return NULL;
	--*room;
	copy = node_new(arena, node->kind, node->at);
	*copy = *node;
	copy->at = stamped(node->at, file, profile);
	copy->shared = false;
	copy->entries = NULL;
	copy->count = copy->cap = 0;
	for (size_t i = 0; i < node->count; i++) {
		const struct entry *entry = &node->entries[i];
		struct node *value = node_copy(arena, entry->value, file, profile, room);

		if (!value)
			return NULL;
		node_add(arena, copy, entry->key, stamped(entry->at, file, profile), value);
	}
	return copy;
}

void node_remove(struct node *map, const char *key)
{
	struct entry *entry = node_entry(map, key);

	if (!entry)
		return;
	memmove(entry, entry + 1,
		(map->count - (size_t)(entry - map->entries) - 1) * sizeof *entry);
	map->count--;
}

struct entry *node_entry(const struct node *map, const char *key)
{
	for (size_t i = 0; i < map->count; i++)
		if (map->entries[i].key && strcmp(map->entries[i].key, key) == 0)
			return &map->entries[i];
	return NULL;
}

const char *node_deferred(const struct node *node)
{
	return node->deferred ? node->deferred : node->text;
}

bool node_is_null(const struct node *node)
{
	return node->kind == NODE_SCALAR && !node->quoted && !node->expanded &&
	       scalar_kind(node->text) == SCALAR_NULL;
}

const char *node_kind_text(const struct node *node)
{
	switch (node->kind) {
	case NODE_SCALAR:
		break;
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "a mapping";
	}
	if (node->quoted)
		return "a string";
	switch (scalar_kind(node->text)) {
	case SCALAR_NULL:
		return "empty";
	case SCALAR_BOOL:
		return "true or false";
	case SCALAR_INT:
	case SCALAR_REAL:
		return "a number";
	case SCALAR_TEXT:
		break;
	}
	return "a string";
}

static void add_path(struct sb *text, const struct path *path)
{
	if (path->up)
		add_path(text, path->up);
	if (!path->name)
		sb_addf(text, "[%zu]", path->index);
	else
		sb_addf(text, "%s%s", text->len > 0 ? "." : "", path->name);
}

char *node_path_text(const struct path *path)
{
	struct sb text = SB_INIT_MAX(1024);

	if (!path)
		return NULL;
	add_path(&text, path);
	return sb_take(&text);
}
