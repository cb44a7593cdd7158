/*
 * `files`: any format that a custom script writes, a folder or a file per step.
 *
 * Nothing says when such a save is over, so files beside the state that describe it are
 * believed: a JSON file with "<stem>_bytes" gives the size of <stem>.*, as
 * configs/quickstart/train.py leaves it (meta.json, written last, with the bytes of
 * state.npz). In a folder with state.npz and without meta.json the save did not end.
 */
#include <math.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

static bool looks_any(const struct checkpoint_check *check)
{
	(void)check;
	return true;
}

/* Checks that each size named by a JSON object is that of its file. */
static bool sizes_agree(struct checkpoint_check *check, const char *path, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach (object, key, value) {
		size_t len = strlen(key), ending = strlen("_bytes");
		AUTO(auto_free) char *stem = NULL;
		const struct checkpoint_tree_file *file;

		if (len <= ending || strcmp(key + len - ending, "_bytes") != 0 ||
		    !json_is_number(value))
			continue;
		stem = mem_format("%.*s.", (int)(len - ending), key);
		file = checkpoint_tree_first(check->tree, stem);
		if (!file && strcmp(path, "meta.json") == 0)
			return checkpoint_check_fail(check, "'%s*' is missing, which '%s' names",
						     stem, path);
		if (file && fabs(json_number_value(value) - (double)file->size) >= 1)
			return checkpoint_check_fail(check, "'%s' has not the size that '%s' names",
						     file->path, path);
		check->described |= file != NULL;
	}
	return true;
}

static bool prove_files(struct checkpoint_check *check)
{
	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;
		size_t len = strlen(path);
		json_auto_t *object = NULL;

		if (len < 5 || strcmp(path + len - 5, ".json") != 0 || strchr(path, '/') ||
		    check->tree->files[i].size > ((size_t)1 << 20))
			continue;
		object = checkpoint_check_json(check, path);
		if (object && !sizes_agree(check, path, object))
			return false;
	}
	if (checkpoint_tree_find(check->tree, "state.npz") &&
	    !checkpoint_tree_find(check->tree, "meta.json"))
		return checkpoint_check_fail(check,
					     "'meta.json' is missing, which is written last");
	return true;
}

const struct ckpt_kind kind_files = {
	.name = "files", .named = checkpoint_name_any, .looks = looks_any, .prove = prove_files
};
