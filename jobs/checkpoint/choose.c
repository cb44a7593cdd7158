/* What a run resumes from, what of it may be removed, and the removal. See
 * checkpoint.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/proof.h"
#include "jobs/store/store.h"

#define GONE_NAME FS_TEMP_PREFIX "gone-"

void ckpt_choice_release(struct ckpt_choice *choice)
{
	ckpt_mark_release(&choice->mark);
	json_decref(choice->rejected);
	*choice = (struct ckpt_choice){ 0 };
}

/* Why a mark in this root is none of the run's, or NULL. */
static const char *foreign(const struct ckpt_mark *mark, const struct ckpt_root *root,
			   const char *run)
{
	if (strcmp(mark->run, run) != 0)
		return "it is of another run";
	if (mark->attempt != root->attempt)
		return "it was marked by another attempt than its folder is of";
	if (root->nonce && strcmp(mark->nonce, root->nonce) != 0)
		return "it was marked by a job that did not hold the claim";
	return NULL;
}

/* The run's marks in all roots, newest first. */
static int marks_of(const struct ckpt_root *roots, size_t count, const char *run,
		    struct ckpt_marks *ret, json_t *rejected, struct err **err)
{
	AUTO(ckpt_marks_release) struct ckpt_marks all = { 0 };

	for (size_t i = 0; i < count; i++) {
		AUTO(ckpt_marks_release) struct ckpt_marks here = { 0 };

		if (ckpt_mark_list(roots[i].path, &here, rejected, err) < 0)
			return -1;
		all.items = mem_grow(all.items, all.count + here.count + 1, sizeof *all.items);
		for (size_t k = 0; k < here.count; k++) {
			const char *why = foreign(&here.items[k], &roots[i], run);

			if (why) {
				mark_reject(rejected, here.items[k].url, why);
				continue;
			}
			all.items[all.count++] = here.items[k];
			here.items[k] = (struct ckpt_mark){ 0 };
		}
	}
	if (all.count)
		qsort(all.items, all.count, sizeof *all.items, mark_newest_first);
	*ret = all;
	all = (struct ckpt_marks){ 0 };
	return 0;
}

int ckpt_choose(const struct ckpt_root *roots, size_t count, const char *run, int64_t below,
		struct ckpt_choice *ret, struct err **err)
{
	AUTO(ckpt_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(ckpt_choice_release) struct ckpt_choice choice = { .rejected = json_array() };

	if (marks_of(roots, count, run, &marks, choice.rejected, err) < 0)
		return -1;
	for (size_t i = 0; i < marks.count && !choice.found; i++) {
		AUTO(auto_free) char *why = NULL;
		int holds;

		if (marks.items[i].step >= below) {
			mark_reject(choice.rejected, marks.items[i].url,
				    "the training did not get on from it");
			continue;
		}
		holds = ckpt_mark_holds(&marks.items[i], &why, err);
		if (holds < 0)
			return -1;
		if (holds == 0) {
			mark_reject(choice.rejected, marks.items[i].url, why);
			continue;
		}
		choice.found = true;
		choice.mark = marks.items[i];
		marks.items[i] = (struct ckpt_mark){ 0 };
	}
	*ret = choice;
	choice = (struct ckpt_choice){ 0 };
	return 0;
}

/* The same place, however it is written. */
static bool same_place(const char *a, const char *b)
{
	struct stat x, y;

	if (!a || !b)
		return false;
	return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
				     x.st_ino == y.st_ino);
}

int ckpt_surplus(const struct ckpt_root *roots, size_t count, const char *run, int64_t keep,
		 const char *in_use, struct ckpt_marks *ret, struct err **err)
{
	AUTO(ckpt_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(ckpt_marks_release) struct ckpt_marks surplus = { 0 };
	json_auto_t *rejected = json_array();
	int64_t held = 0;
	size_t first = 0;

	*ret = (struct ckpt_marks){ 0 };
	if (keep <= 0)
		return 0;
	if (marks_of(roots, count, run, &marks, rejected, err) < 0)
		return -1;
	for (; first < marks.count && held < keep; first++) {
		AUTO(auto_free) char *why = NULL;
		int holds = ckpt_mark_holds(&marks.items[first], &why, err);

		if (holds < 0)
			return -1;
		held += holds;
	}
	surplus.items = mem_zero(marks.count + 1, sizeof *surplus.items);
	for (size_t i = marks.count; i-- > first;) {
		if (same_place(marks.items[i].url, in_use))
			continue;
		surplus.items[surplus.count++] = marks.items[i];
		marks.items[i] = (struct ckpt_mark){ 0 };
	}
	*ret = surplus;
	surplus = (struct ckpt_marks){ 0 };
	return 0;
}

/* What earlier removals did not come to the end of. */
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

int ckpt_remove(const struct ckpt_mark *mark, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *key = mem_format("%s" CKPT_MARK_SUFFIX, mark->name);
	AUTO(auto_free) char *hidden = NULL;
	char hex[SHA256_HEX];

	if (store_open(mark->root, &store, err) < 0 || clear_gone(mark->root, err) < 0)
		return -1;
	if (store_delete(store, key, err) < 0)
		return -1;
	sha256_hex(mark->name, strlen(mark->name), hex);
	hidden = mem_format("%s/" GONE_NAME "%.24s", mark->root, hex);
	if (rename(mark->url, hidden) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot remove '%s'", mark->url);
	if (fs_sync_dir(mark->root, err) < 0)
		return -1;
	return fs_remove_tree(hidden, err);
}
