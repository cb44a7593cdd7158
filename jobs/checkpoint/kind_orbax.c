/*
 * `orbax`: a folder <step>, or <prefix>_<step>, that Orbax wrote under another name
 * (<step>.orbax-checkpoint-tmp…) and renamed. In a store without rename, the file
 * commit_success.txt marks the end. The file _CHECKPOINT_METADATA names the items saved and
 * the time of the commit. Seen in the files that orbax-checkpoint 0.12.8 writes.
 */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_orbax(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && checkpoint_name_any(name, true, ret_step);
}

static bool has_name(const struct checkpoint_check *check, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;
		size_t own = strlen(path);

		if (own >= len && strcmp(path + own - len, name) == 0 &&
		    (own == len || path[own - len - 1] == '/'))
			return true;
	}
	return false;
}

static bool looks_orbax(const struct checkpoint_check *check)
{
	static const char *const markers[] = { "_CHECKPOINT_METADATA", "orbax.checkpoint",
					       "manifest.ocdbt", "commit_success.txt",
					       "_METADATA" };

	for (size_t i = 0; i < STK_LENGTH(markers); i++)
		if (has_name(check, markers[i]))
			return true;
	return false;
}

/* Checks that each manifest has its data beside it. */
static bool prove_data(struct checkpoint_check *check)
{
	static const char manifest[] = "manifest.ocdbt";

	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;
		size_t len = strlen(path), tail = sizeof manifest - 1;
		AUTO(auto_free) char *data = NULL;

		if (len < tail || strcmp(path + len - tail, manifest) != 0)
			continue;
		data = mem_format("%.*sd/", (int)(len - tail), path);
		if (!checkpoint_tree_first(check->tree, data))
			return checkpoint_check_fail(check, "'%s' is missing, which '%s' needs",
						     data, path);
	}
	return true;
}

/* Checks that every item saved has its folder, and each item that uses the database its
 * manifest. */
static bool prove_items(struct checkpoint_check *check, const json_t *metadata)
{
	json_t *items = json_object_get(metadata, "item_handlers"), *handler;
	const char *item;

	if (!json_is_object(items))
		return true;
	json_object_foreach (items, item, handler) {
		AUTO(auto_free) char *folder = mem_format("%s/", item);
		AUTO(auto_free) char *tree = mem_format("%s/_METADATA", item);
		AUTO(auto_free) char *manifest = mem_format("%s/manifest.ocdbt", item);
		json_auto_t *about = checkpoint_check_json(check, tree);

		if (!checkpoint_tree_first(check->tree, folder))
			return checkpoint_check_fail(check, "'%s' is missing, which was saved",
						     folder);
		if (js_bool(about, "use_ocdbt", false) &&
		    !checkpoint_tree_find(check->tree, manifest))
			return checkpoint_check_fail(check, "'%s' is missing", manifest);
	}
	return true;
}

static bool prove_orbax(struct checkpoint_check *check)
{
	static const char about[] = "_CHECKPOINT_METADATA";
	json_auto_t *metadata = checkpoint_check_json(check, about);
	bool marked = checkpoint_tree_find(check->tree, "commit_success.txt") ||
		      checkpoint_tree_find(check->tree, "orbax.checkpoint");

	if (metadata && !json_is_number(json_object_get(metadata, "commit_timestamp_nsecs")))
		return checkpoint_check_fail(check, "'%s' says that it was not committed", about);
	if (!metadata && !marked && !checkpoint_tree_find(check->tree, "_METADATA"))
		return checkpoint_check_fail(check,
					     "no marker of a finished save is there ('%s', "
					     "'commit_success.txt', 'orbax.checkpoint')",
					     about);
	if (check->tree->count == 1)
		return checkpoint_check_fail(check, "nothing but a marker is there");
	return prove_items(check, metadata) && prove_data(check);
}

const struct ckpt_kind kind_orbax = {
	.name = "orbax", .named = named_orbax, .looks = looks_orbax, .prove = prove_orbax
};
