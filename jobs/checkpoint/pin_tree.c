/* Trees of models that lie elsewhere. See pin_tree.h. */
#include "jobs/checkpoint/pin_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/remote.h"

/* Only metadata and indexes are read, and none is larger than this. */
#define READ_MAX ((uint64_t)256 << 20)

void pin_tree_release(struct pin_tree *far)
{
	checkpoint_tree_release(&far->tree);
	json_decref(far->files);
	free(far->name);
	err_freep(&far->why);
	*far = (struct pin_tree){ .tree = TREE_INIT };
}

static int open_file(void *arg, const char *path)
{
	struct pin_tree *far = arg;
	const struct checkpoint_tree_file *file = checkpoint_tree_find(&far->tree, path);
	AUTO(sb_release) struct sb bytes = SB_INIT_MAX(READ_MAX);
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_close) int fd = -1;
	int there;

	errno = EFBIG;
	if (!file || file->size > READ_MAX)
		return -1;
	err_freep(&far->why);
	key = remote_key(far->root, far->name, path);
	there = store_get(far->root->store, key, READ_MAX, &bytes, NULL, &far->why);
	if (there > 0)
		fd = fs_scratch(&far->why);
	if (fd < 0 || fs_write_full(fd, bytes.text, bytes.len) < 0) {
		errno = EIO;
		return -1;
	}
	return TAKE_FD(fd);
}

/* Adds a file; paths are set when all are there, as `names` moves while it grows. */
static void add(struct pin_tree *far, const char *path, uint64_t size)
{
	struct checkpoint_tree *tree = &far->tree;

	tree->files = mem_room(tree->files, tree->count, sizeof *tree->files);
	tree->files[tree->count++] =
		(struct checkpoint_tree_file){ .size = size, .remote = true, .opaque = true };
	tree->bytes += size;
	tree->single |= !*path;
	sb_add(&tree->names, path, strlen(path) + 1);
}

static void set_paths(struct pin_tree *far)
{
	const char *at = far->tree.names.text;

	for (size_t i = 0; i < far->tree.count; i++, at += strlen(at) + 1)
		far->tree.files[i].path = at;
}

int pin_tree_list(struct pin_tree *far, const struct ckpt_root *root, const char *name,
		  struct err **err)
{
	AUTO(remote_release) struct remote objects = { 0 };

	if (remote_list(root, name, true, &objects, err) < 0 ||
	    (objects.count == 0 && remote_list(root, name, false, &objects, err) < 0))
		return -1;
	far->root = root;
	far->name = mem_copy(name);
	far->files = json_array();
	far->tree.path = checkpoint_root_url(root, name);
	far->tree.open_remote = open_file;
	far->tree.arg = far;
	for (size_t i = 0; i < objects.count; i++) {
		const struct remote_file *object = &objects.items[i];
		json_t *one = json_object();

		add(far, object->path, object->size);
		js_put_str(one, "path", object->path);
		js_put(one, "size", json_integer((json_int_t)object->size));
		js_put_str(one, "tag", object->tag);
		json_array_append_new(far->files, one);
		/* Without a tag, other content of that size could not be told from this. */
		if (!*object->tag && !far->tree.odd)
			far->tree.odd = mem_format("'%s' was listed without its ETag",
						   *object->path ? object->path : name);
	}
	if (far->tree.count >= TREE_FILES_MAX || far->tree.names.truncated) {
		free(far->tree.odd);
		far->tree.odd = mem_copy("more files than are looked at");
		far->tree.count = 0;
	}
	set_paths(far);
	return objects.count > 0;
}

void pin_tree_name(struct pin_tree *far, const json_t *files)
{
	const json_t *file;
	size_t i;

	json_array_foreach (files, i, file)
		add(far, js_str(file, "path"), (uint64_t)js_int(file, "size", 0));
	set_paths(far);
}
