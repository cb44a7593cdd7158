/*
 * Downloads a marked checkpoint from its store into a folder. See checkpoint.h.
 *
 * As with a copy, the hidden folder's name follows from the checkpoint's, so that an
 * interrupted download is continued.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/remote.h"

#define STAGE_NAME FS_TEMP_PREFIX "fetch-"

struct fetch_fetch {
	const struct ckpt_mark *mark;
	struct ckpt_root root;
	const char *folder;
	char *path, *stage; /* owned; path of the checkpoint, and the hidden folder */
	bool single;
};

static void fetch_release(struct fetch_fetch *fetch)
{
	free(fetch->path);
	free(fetch->stage);
}

static void fetch_init(struct fetch_fetch *fetch)
{
	const char *url = fetch->mark->url;
	char hex[SHA256_HEX];
	json_t *file;
	size_t i;

	hash_sha256_hex(url, strlen(url), hex);
	fetch->path = fs_join(fetch->folder, fetch->mark->name);
	fetch->stage = mem_format("%s/" STAGE_NAME "%.24s", fetch->folder, hex);
	json_array_foreach (fetch->mark->files, i, file)
		fetch->single |= !*js_str(file, "path");
}

/* Returns 1 if the checkpoint lies at `path`, 0 if not (a different one there is removed), -1
 * with an error. */
static int is_there(const struct fetch_fetch *fetch, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(auto_free) char *why = NULL;
	int there = checkpoint_tree_read(fetch->path, &tree, err);

	if (there <= 0)
		return there;
	why = mark_files_differ(fetch->mark, &tree);
	if (!why && !tree.odd)
		return 1;
	return fs_remove_tree(fetch->path, err);
}

/* Names a complete download. Returns 1, 0 if it does not match the mark, -1 with an error. */
static int finish(const struct fetch_fetch *fetch, char **ret_why, struct err **err)
{
	AUTO(auto_free) char *single = fs_join(fetch->stage, fetch->mark->name);
	const char *made = fetch->single ? single : fetch->stage;
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	int there = checkpoint_tree_read(made, &tree, err);

	if (there < 0)
		return -1;
	*ret_why = there ? mark_files_differ(fetch->mark, &tree) : mem_copy("not found");
	if (*ret_why)
		return fs_remove_tree(fetch->stage, err);
	if (rename(made, fetch->path) < 0)
		return fs_error(err, errno, "cannot make '%s'", fetch->path);
	if (fetch->single && fs_remove_tree(fetch->stage, err) < 0)
		return -1;
	return fs_sync_dir(fetch->folder, err) < 0 ? -1 : 1;
}

/* Checks that the missing files have room, so that a full disk is reported now and not after an
 * hour of downloading. */
static int check_room(const struct fetch_fetch *fetch, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree here = TREE_INIT;
	AUTO(auto_free) char *needed = NULL, *left = NULL;
	struct statvfs fs;
	uint64_t bytes = 0, room;
	json_t *file;
	size_t i;

	json_array_foreach (fetch->mark->files, i, file)
		bytes += (uint64_t)js_int(file, "size", 0);
	if (statvfs(fetch->folder, &fs) < 0)
		return 0; /* the write that follows reports the error */
	if (checkpoint_tree_read(fetch->stage, &here, err) < 0)
		return -1;
	room = (uint64_t)fs.f_bavail * fs.f_frsize + here.bytes;
	if (bytes <= room)
		return 0;
	needed = text_format_bytes(bytes);
	left = text_format_bytes(room);
	err_system(err, EXIT_REFUSED, ENOSPC,
		   "cannot download '%s': %s needed, but '%s' has %s free", fetch->mark->url,
		   needed, fetch->folder, left);
	return err_hint(err,
			"use machines with a larger disk, or set STOKER_WORK to a folder on one");
}

int checkpoint_fetch(const struct ckpt_mark *mark, const char *folder, char **ret_why,
		     struct err **err)
{
	AUTO(fetch_release)
	struct fetch_fetch fetch = {
		.mark = mark,
		.root = { .path = mark->root, .store = mark->store },
		.folder = folder,
	};
	int done;

	*ret_why = NULL;
	fetch_init(&fetch);
	if (fs_mkdirs(folder, err) < 0)
		return -1;
	done = is_there(&fetch, err);
	if (done != 0)
		return done;
	if (check_room(&fetch, err) < 0)
		return -1;
	done = remote_holds(mark, ret_why, err);
	if (done <= 0)
		return done;
	if (fs_mkdirs(fetch.stage, err) < 0 ||
	    checkpoint_remote_fetch(&fetch.root, mark->name, fetch.single, fetch.stage, err) < 0)
		return -1;
	return finish(&fetch, ret_why, err);
}
