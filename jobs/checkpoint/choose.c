/* Chooses the checkpoint that a run resumes from, lists those that may be removed, and removes
 * them. See checkpoint.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/remote.h"

#define GONE_NAME FS_TEMP_PREFIX "gone-"

void checkpoint_choice_release(struct ckpt_choice *choice)
{
	checkpoint_mark_release(&choice->mark);
	json_decref(choice->rejected);
	*choice = (struct ckpt_choice){ 0 };
}

/* Returns why a mark in this root does not count for the run, or NULL. */
static const char *foreign(const struct ckpt_mark *mark, const struct ckpt_root *root,
			   const char *run)
{
	if (strcmp(mark->run, run) != 0)
		return "the mark is of another run";
	if (mark->attempt != root->attempt)
		return "the mark is of another attempt than the folder";
	if (root->nonce && strcmp(mark->nonce, root->nonce) != 0)
		return "marked by a job that did not hold the claim";
	return NULL;
}

/* Lists the names of the marks in all roots, newest first. */
static int names_of(const struct ckpt_root *roots, size_t count, struct mark_names *ret,
		    struct err **err)
{
	for (size_t i = 0; i < count; i++)
		if (mark_names_add(ret, &roots[i], err) < 0)
			return -1;
	mark_names_sort(ret);
	return 0;
}

/* Returns 1 with a mark of the run's own, 0 if it does not count, -1 with an error. */
static int read_own(const struct mark_name *name, const char *run, struct ckpt_mark *ret,
		    json_t *rejected, struct err **err)
{
	int there = mark_read(name->root, name->name, ret, rejected, err);
	const char *why = there > 0 ? foreign(ret, name->root, run) : NULL;

	if (!why)
		return there;
	mark_reject(rejected, ret->url, why);
	checkpoint_mark_release(ret);
	return 0;
}

/* Returns 1 if the checkpoint can be resumed from, 0 if not, -1 with an error. */
static int check_mark(const struct ckpt_mark *mark, int64_t below, json_t *rejected,
		      struct err **err)
{
	AUTO(auto_free) char *why = NULL;
	int holds;

	if (mark->step >= below) {
		mark_reject(rejected, mark->url, "the training made no progress from it");
		return 0;
	}
	holds = checkpoint_mark_holds(mark, &why, err);
	if (holds == 0)
		mark_reject(rejected, mark->url, why);
	return holds;
}

int checkpoint_choose(const struct ckpt_root *roots, size_t count, const char *run, int64_t below,
		      struct ckpt_choice *ret, struct err **err)
{
	AUTO(mark_names_release) struct mark_names names = { 0 };
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { .rejected = json_array() };

	if (names_of(roots, count, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.count && !choice.found; i++) {
		AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
		int good = read_own(&names.items[i], run, &mark, choice.rejected, err);

		if (good > 0)
			good = check_mark(&mark, below, choice.rejected, err);
		if (good < 0)
			return -1;
		if (good == 0)
			continue;
		choice.found = true;
		choice.mark = mark;
		mark = (struct ckpt_mark){ 0 };
	}
	*ret = choice;
	choice = (struct ckpt_choice){ 0 };
	return 0;
}

/* True if both paths are the same place, however written. */
static bool same_place(const char *a, const char *b)
{
	struct stat x, y;

	if (!a || !b)
		return false;
	return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
				     x.st_ino == y.st_ino);
}

static void reverse(struct ckpt_marks *marks)
{
	for (size_t i = 0; i < marks->count / 2; i++) {
		struct ckpt_mark other = marks->items[i];

		marks->items[i] = marks->items[marks->count - 1 - i];
		marks->items[marks->count - 1 - i] = other;
	}
}

int checkpoint_surplus(const struct ckpt_root *roots, size_t count, const char *run, int64_t keep,
		       const char *in_use, struct ckpt_marks *ret, struct err **err)
{
	AUTO(mark_names_release) struct mark_names names = { 0 };
	AUTO(checkpoint_marks_release) struct ckpt_marks surplus = { 0 };
	int64_t held = 0;

	*ret = (struct ckpt_marks){ 0 };
	if (keep <= 0)
		return 0;
	if (names_of(roots, count, &names, err) < 0)
		return -1;
	surplus.items = mem_zero(names.count + 1, sizeof *surplus.items);
	for (size_t i = 0; i < names.count; i++) {
		AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
		AUTO(auto_free) char *why = NULL;
		int there = read_own(&names.items[i], run, &mark, NULL, err);
		int holds = there > 0 && held < keep ? checkpoint_mark_holds(&mark, &why, err) : 0;

		if (there < 0 || holds < 0)
			return -1;
		if (there > 0 && held == keep && !same_place(mark.url, in_use)) {
			surplus.items[surplus.count++] = mark;
			mark = (struct ckpt_mark){ 0 };
		}
		held += holds;
	}
	reverse(&surplus);
	*ret = surplus;
	surplus = (struct ckpt_marks){ 0 };
	return 0;
}

/* Finishes removals that were interrupted. */
static int clear_gone(const char *root, struct err **err)
{
	AUTO(auto_strv) char **names = NULL;

	if (root_own(root, GONE_NAME, "", &names, err) < 0)
		return -1;
	for (char **name = names; *name; name++) {
		AUTO(auto_free) char *path = fs_join(root, *name);

		if (fs_remove_tree(path, err) < 0)
			return -1;
	}
	return 0;
}

int checkpoint_remove(const struct ckpt_mark *mark, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *key = mem_format("%s" CKPT_MARK_SUFFIX, mark->name);
	AUTO(auto_free) char *hidden = NULL;
	char hex[SHA256_HEX];

	if (mark->store)
		return remote_remove(mark, err);
	if (store_open(mark->root, &store, err) < 0 || clear_gone(mark->root, err) < 0)
		return -1;
	if (store_delete(store, key, err) < 0)
		return -1;
	hash_sha256_hex(mark->name, strlen(mark->name), hex);
	hidden = mem_format("%s/" GONE_NAME "%.24s", mark->root, hex);
	if (rename(mark->url, hidden) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot remove '%s'", mark->url);
	if (fs_sync_dir(mark->root, err) < 0)
		return -1;
	return fs_remove_tree(hidden, err);
}
