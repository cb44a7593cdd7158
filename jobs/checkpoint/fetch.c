/*
 * A marked checkpoint comes back from its store into a folder. See checkpoint.h.
 *
 * As with a copy, the hidden folder's name follows from the checkpoint's, so that a
 * fetch that was interrupted is gone on with: what lies there and is what was marked is
 * not fetched again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/remote.h"

#define STAGE_NAME FS_TEMP_PREFIX "fetch-"

struct fetch {
	const struct ckpt_mark *mark;
	struct ckpt_root root;
	const char *folder;
	char *path, *stage; /* owned: of the checkpoint; the hidden folder */
	bool single;
	uint64_t done, total;
	ckpt_fetch_fn fn;
	void *arg;
};

static void fetch_release(struct fetch *fetch)
{
	free(fetch->path);
	free(fetch->stage);
}

static void fetch_init(struct fetch *fetch)
{
	const char *url = fetch->mark->url;
	char hex[SHA256_HEX];
	json_t *file;
	size_t i;

	sha256_hex(url, strlen(url), hex);
	fetch->path = fs_join(fetch->folder, fetch->mark->name);
	fetch->stage = mem_format("%s/" STAGE_NAME "%.24s", fetch->folder, hex);
	json_array_foreach (fetch->mark->files, i, file) {
		fetch->total += (uint64_t)js_int(file, "size", 0);
		fetch->single |= !*js_str(file, "path");
	}
}

/* 1 the checkpoint lies at `path`, 0 it does not (or another one: that is removed), -1. */
static int is_there(const struct fetch *fetch, struct err **err)
{
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	AUTO(auto_free) char *why = NULL;
	int there = ckpt_tree_read(fetch->path, &tree, err);

	if (there <= 0)
		return there;
	why = mark_files_differ(fetch->mark, &tree);
	if (!why && !tree.odd)
		return 1;
	return fs_remove_tree(fetch->path, err);
}

/* An earlier fetch brought this file, whole. */
static bool is_staged(const struct tree *staged, const char *name, const json_t *file)
{
	const struct tree_file *there = ckpt_tree_find(staged, name);
	char ends[SHA256_HEX];

	return there && (int64_t)there->size == js_int(file, "size", -1) &&
	       ckpt_tree_ends(staged, there, ends) == 0 && strcmp(ends, js_str(file, "ends")) == 0;
}

/* 1, 0 it is gone (its key was checked by the store: no path leads out), -1. */
static int fetch_file(const struct fetch *fetch, const char *path, const char *name,
		      struct err **err)
{
	AUTO(auto_free) char *key = remote_key(&fetch->root, fetch->mark->name, path);
	AUTO(auto_free) char *to = fs_join(fetch->stage, name);
	AUTO(auto_free) char *folder = fs_dirname(to);
	struct store_object object;
	int there = store_stat(fetch->root.store, key, &object, err);

	if (there <= 0)
		return there;
	if (fs_mkdirs(folder, err) < 0)
		return -1;
	return store_download(fetch->root.store, key, to, err);
}

static int fetch_all(struct fetch *fetch, char **ret_why, struct err **err)
{
	AUTO(ckpt_tree_release) struct tree staged = TREE_INIT;
	json_t *file;
	size_t i;

	if (fs_mkdirs(fetch->stage, err) < 0 || ckpt_tree_read(fetch->stage, &staged, err) < 0)
		return -1;
	json_array_foreach (fetch->mark->files, i, file) {
		const char *path = js_str(file, "path");
		const char *name = *path ? path : fetch->mark->name;
		int there = 1;

		if (fetch->fn && !fetch->fn(fetch->arg, fetch->done, fetch->total))
			return err_set(err, EXIT_REFUSED, "fetching '%s' was stopped",
				       fetch->mark->url);
		if (!is_staged(&staged, name, file))
			there = fetch_file(fetch, path, name, err);
		if (there < 0)
			return err_wrap(err, "cannot fetch '%s'", fetch->mark->url);
		if (there == 0) {
			*ret_why = mem_format("'%s' is missing", name);
			return 0;
		}
		fetch->done += (uint64_t)js_int(file, "size", 0);
	}
	return 1;
}

/* All is there; give it its name. 1, 0 it is not what was marked, -1. */
static int finish(const struct fetch *fetch, char **ret_why, struct err **err)
{
	AUTO(auto_free) char *single = fs_join(fetch->stage, fetch->mark->name);
	const char *made = fetch->single ? single : fetch->stage;
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	int there = ckpt_tree_read(made, &tree, err);

	if (there < 0)
		return -1;
	*ret_why = there ? mark_files_differ(fetch->mark, &tree) : mem_copy("it is gone");
	if (*ret_why)
		return fs_remove_tree(fetch->stage, err);
	if (rename(made, fetch->path) < 0)
		return fs_error(err, errno, "cannot make '%s'", fetch->path);
	if (fetch->single && fs_remove_tree(fetch->stage, err) < 0)
		return -1;
	return fs_sync_dir(fetch->folder, err) < 0 ? -1 : 1;
}

int ckpt_fetch(const struct ckpt_mark *mark, const char *folder, ckpt_fetch_fn fn, void *arg,
	       char **ret_why, struct err **err)
{
	AUTO(fetch_release)
	struct fetch fetch = {
		.mark = mark,
		.root = { .path = mark->root, .store = mark->store },
		.folder = folder,
		.fn = fn,
		.arg = arg,
	};
	int done;

	*ret_why = NULL;
	fetch_init(&fetch);
	if (fs_mkdirs(folder, err) < 0)
		return -1;
	done = is_there(&fetch, err);
	if (done != 0)
		return done;
	done = remote_holds(mark, ret_why, err);
	if (done > 0)
		done = fetch_all(&fetch, ret_why, err);
	return done > 0 ? finish(&fetch, ret_why, err) : done;
}
