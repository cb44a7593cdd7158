/* A checkpoint in a store. See remote.h. */
#include "jobs/checkpoint/remote.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/checkpoint/kind.h"
#include "jobs/checkpoint/mark.h"

/* Suffix of a note in the folder of the marks: its checkpoint is being removed. */
#define GONE_SUFFIX ".gone"

void remote_release(struct remote *remote)
{
	for (size_t i = 0; i < remote->count; i++)
		free(remote->items[i].path);
	free(remote->items);
	*remote = (struct remote){ 0 };
}

char *remote_key(const struct ckpt_root *root, const char *name, const char *path)
{
	return mem_format("%s%s%s%s", root->path, name, *path ? "/" : "", path);
}

struct remote_listing {
	struct remote *remote;
	size_t prefix;
};

static void add(struct remote *remote, const char *path, const struct store_object *object)
{
	struct remote_file *file;

	remote->items = mem_room(remote->items, remote->count, sizeof *remote->items);
	file = &remote->items[remote->count++];
	*file = (struct remote_file){ .path = mem_copy(path), .size = object->size };
	memcpy(file->tag, object->tag, sizeof file->tag);
}

static int add_object(void *arg, const struct store_object *object, struct err **err)
{
	struct remote_listing *listing = arg;

	/* Stop one above the limit, which shows that there are too many. */
	if (listing->remote->count > TREE_FILES_MAX)
		return 1;
	(void)err;
	add(listing->remote, object->key + listing->prefix, object);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct remote_file *)a)->path, ((const struct remote_file *)b)->path);
}

int remote_list(const struct ckpt_root *root, const char *name, bool single, struct remote *ret,
		struct err **err)
{
	AUTO(remote_release) struct remote remote = { 0 };
	struct remote_listing listing = { .remote = &remote };

	if (single) {
		AUTO(auto_free) char *key = remote_key(root, name, "");
		struct store_object object;
		int there = store_stat(root->store, key, &object, err);

		if (there < 0)
			return -1;
		if (there > 0)
			add(&remote, "", &object);
	} else {
		AUTO(auto_free) char *prefix = mem_format("%s%s/", root->path, name);

		listing.prefix = strlen(prefix);
		if (store_list(root->store, prefix, add_object, &listing, err) < 0)
			return -1;
	}
	if (remote.count)
		qsort(remote.items, remote.count, sizeof *remote.items, by_path);
	*ret = remote;
	remote = (struct remote){ 0 };
	return 0;
}

const struct remote_file *remote_find(const struct remote *remote, const char *path)
{
	const struct remote_file key = { .path = (char *)path };

	return remote->count ? bsearch(&key, remote->items, remote->count, sizeof key, by_path)
			     : NULL;
}

char *remote_differs(const struct remote *remote, const struct checkpoint_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct checkpoint_tree_file *file = &tree->files[i];
		const struct remote_file *there = remote_find(remote, file->path);

		if (!there)
			return mem_format("'%s' is missing", file->path);
		if (there->size != file->size)
			return mem_format("'%s' has %" PRIu64 " bytes, not %" PRIu64, file->path,
					  there->size, file->size);
	}
	if (remote->count != tree->count)
		return mem_format("%zu files lie there, not %zu", remote->count, tree->count);
	return NULL;
}

int remote_pin(const struct ckpt_root *root, const char *name, const struct checkpoint_tree *tree,
	       json_t *files, struct err **err)
{
	AUTO(remote_release) struct remote remote = { 0 };
	AUTO(auto_free) char *url = checkpoint_root_url(root, name);
	AUTO(auto_free) char *why = NULL;
	json_t *file;
	size_t i;

	if (remote_list(root, name, tree->single, &remote, err) < 0)
		return -1;
	why = remote_differs(&remote, tree);
	if (why)
		return err_set(err, EXIT_REFUSED, "cannot mark '%s': %s", url, why);
	json_array_foreach (files, i, file) {
		const char *path = js_str(file, "path");
		const struct remote_file *there = remote_find(&remote, path);

		/* Without a tag, other content of that size could not be told from this. */
		if (!there || !*there->tag)
			return err_set(err, EXIT_REFUSED,
				       "cannot mark '%s': '%s' cannot be verified: listed without "
				       "its ETag",
				       url, *path ? path : name);
		js_put_str(file, "tag", there->tag);
	}
	return 0;
}

/* ---- checking again ---- */

static struct ckpt_root root_of(const struct ckpt_mark *mark)
{
	return (struct ckpt_root){ .path = mark->root, .store = mark->store };
}

static bool is_single(const struct ckpt_mark *mark)
{
	const char *path = js_str(json_array_get(mark->files, 0), "path");

	return path && !*path;
}

static char *objects_differ(const struct ckpt_mark *mark, const struct remote *remote)
{
	json_t *file;
	size_t i;

	json_array_foreach (mark->files, i, file) {
		const char *path = js_str(file, "path");
		const struct remote_file *now = remote_find(remote, path);
		const char *shown = *path ? path : mark->name, *tag = js_str(file, "tag");

		if (!now)
			return mem_format("'%s' is missing", shown);
		if ((int64_t)now->size != js_int(file, "size", -1))
			return mem_format("'%s' has %" PRIu64 " bytes, not %" PRId64
					  " as when it was marked",
					  shown, now->size, js_int(file, "size", -1));
		if (!tag) /* a model's file, of which the sum is known instead */
			continue;
		if (!*now->tag)
			return mem_format("'%s' cannot be verified: listed without its ETag",
					  shown);
		if (strcmp(now->tag, tag) != 0)
			return mem_format("'%s' has changed since it was marked", shown);
	}
	if (remote->count != json_array_size(mark->files))
		return mem_format("%zu files, not %zu as when it was marked", remote->count,
				  json_array_size(mark->files));
	return NULL;
}

int remote_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err)
{
	AUTO(remote_release) struct remote remote = { 0 };
	const struct ckpt_root root = root_of(mark);
	int64_t step;

	if (remote_list(&root, mark->name, is_single(mark), &remote, err) < 0)
		return -1;
	if (remote.count == 0)
		*ret_why = mem_copy("not found");
	else
		*ret_why = objects_differ(mark, &remote);
	if (*ret_why)
		return 0;
	if (mark->step < 0)
		return 1;
	if (mark->kind->named(mark->name, !is_single(mark), &step) && step == mark->step)
		return 1;
	*ret_why = mem_copy("the mark is of another step");
	return 0;
}

/* ---- removing ---- */

static int remove_objects(const struct ckpt_root *root, const char *name, struct err **err)
{
	AUTO(remote_release) struct remote remote = { 0 };
	AUTO(auto_free) char *single = remote_key(root, name, "");

	if (remote_list(root, name, false, &remote, err) < 0)
		return -1;
	for (size_t i = 0; i < remote.count; i++) {
		AUTO(auto_free) char *key = remote_key(root, name, remote.items[i].path);

		if (store_delete(root->store, key, err) < 0)
			return -1;
	}
	return store_delete(root->store, single, err);
}

struct gone {
	char **names;
	size_t count, prefix;
};

static int note_gone(void *arg, const struct store_object *object, struct err **err)
{
	struct gone *gone = arg;
	const char *file = object->key + gone->prefix;
	size_t len = strlen(file), tail = strlen(GONE_SUFFIX);

	(void)err;
	if (len <= tail || strcmp(file + len - tail, GONE_SUFFIX) != 0 || strchr(file, '/'))
		return 0;
	gone->names = mem_grow(gone->names, gone->count + 2, sizeof *gone->names);
	gone->names[gone->count++] = mem_copy_n(file, len - tail);
	gone->names[gone->count] = NULL;
	return 0;
}

/* Finishes removals. A store has no rename, so a note beside the marks names each checkpoint to
 * remove. */
static int clear_gone(const struct ckpt_root *root, struct err **err)
{
	AUTO(auto_free) char *prefix = mem_format("%s" MARK_FOLDER, root->path);
	struct gone gone = { .prefix = strlen(prefix) };
	AUTO(auto_strv) char **names = NULL;
	int listed = store_list(root->store, prefix, note_gone, &gone, err);

	names = gone.names;
	for (size_t i = 0; listed >= 0 && i < gone.count; i++) {
		AUTO(auto_free) char *note = mem_format("%s%s" GONE_SUFFIX, prefix, names[i]);

		if (remove_objects(root, names[i], err) < 0 ||
		    store_delete(root->store, note, err) < 0)
			return -1;
	}
	return listed;
}

int remote_remove(const struct ckpt_mark *mark, struct err **err)
{
	const struct ckpt_root root = root_of(mark);
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *note = NULL;

	key = mem_format("%s" MARK_FOLDER "%s" CKPT_MARK_SUFFIX, root.path, mark->name);
	note = mem_format("%s" MARK_FOLDER "%s" GONE_SUFFIX, root.path, mark->name);
	if (store_put(root.store, note, "\n", 1, err) < 0 || store_delete(root.store, key, err) < 0)
		return -1;
	return clear_gone(&root, err);
}
