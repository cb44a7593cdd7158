/* Relative paths of other files: see layers.h. */
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/layers/layers.h"

/* Returns the folder of a file, relative to that of the spec; "" is the same. The caller frees it.
 */
static char *folder_of(const struct spec *spec, const char *file)
{
	const json_t *row = json_object_get(spec->files, file);

	return row ? mem_copy(js_str(row, "folder")) : fs_dirname(file);
}

/* Returns the length of what stands before the path in a text: "file:" and the like. */
static size_t path_at(const struct field *row, const char *text)
{
	static const char *const schemes[] = { "dir:", "file:" };

	for (size_t i = 0; i < STK_LENGTH(schemes); i++)
		if (text_starts(text, schemes[i]))
			return strlen(schemes[i]);
	return row->secret ? strlen(text) : 0; /* the other sources of secrets are no paths */
}

static bool is_relative(const struct field *row, const char *text, size_t skip)
{
	const char *path = text + skip;

	return *path && !strchr("/~$", *path) && !strstr(path, "://") &&
	       !field_word_in(row->words, text) && !text_starts(path, "git@") &&
	       !text_starts(path, "run:");
}

static const char *moved(struct arena *arena, const char *text, size_t skip, const char *folder)
{
	AUTO(auto_free) char *path = fs_join(folder, text + skip);
	AUTO(auto_free) char *whole = mem_format("%.*s%s", (int)skip, text, path);

	return node_arena_text(arena, whole, strlen(whole));
}

static void place_scalar(struct spec *spec, const struct field *row, struct node *node)
{
	AUTO(auto_free) char *folder = folder_of(spec, node->at.file);
	size_t skip = path_at(row, node->text);

	if (!*folder || node->unknown || !is_relative(row, node->text, skip))
		return;
	node->text = moved(spec->arena, node->text, skip, folder);
	if (node->deferred)
		node->deferred = moved(spec->arena, node->deferred, skip, folder);
}

static void place_node(struct spec *spec, field_id field, struct node *node)
{
	enum field_type type = field == FIELD_NONE ? FIELD_SECTION : field_table[field].type;

	if (node->kind == NODE_SCALAR) {
		if (type == FIELD_LIST)
			field = field_item(field);
		if (field != FIELD_NONE && field_table[field].is_path && node->at.file &&
		    !node_is_null(node))
			place_scalar(spec, &field_table[field], node);
		return;
	}
	for (size_t i = 0; i < node->count; i++) {
		struct entry *entry = &node->entries[i];
		field_id member = FIELD_NONE;

		if (type == FIELD_SECTION && node->kind == NODE_MAP)
			member = field_child(field, entry->key);
		else if (type == FIELD_LIST || type == FIELD_FREE)
			member = field_item(field);
		if (member != FIELD_NONE)
			place_node(spec, member, entry->value);
	}
}

void place_paths(struct binder *binder)
{
	place_node(binder->spec, FIELD_NONE, binder->spec->tree);
}
