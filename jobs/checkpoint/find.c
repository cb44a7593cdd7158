/* Lists the candidates in a root, each proved beside its older siblings. See checkpoint.h. */
#include "jobs/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"

void checkpoint_release(struct ckpt *ckpt)
{
	free(ckpt->name);
	free(ckpt->path);
	free(ckpt->why);
	*ckpt = (struct ckpt){ 0 };
}

void checkpoint_list_release(struct ckpt_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		checkpoint_release(&list->items[i]);
	free(list->items);
	*list = (struct ckpt_list){ 0 };
}

/* More than SIBLINGS, as several families of names may lie side by side. */
#define TRAIL 4

/* The last sound candidates in order of their steps, the latest first. */
struct trail {
	struct checkpoint_tree trees[TRAIL];
	size_t count;
};

static void trail_release(struct trail *trail)
{
	for (size_t i = 0; i < trail->count; i++)
		checkpoint_tree_release(&trail->trees[i]);
	trail->count = 0;
}

static void trail_add(struct trail *trail, struct checkpoint_tree *tree)
{
	if (trail->count == TRAIL)
		checkpoint_tree_release(&trail->trees[--trail->count]);
	memmove(&trail->trees[1], &trail->trees[0], trail->count * sizeof *trail->trees);
	trail->trees[0] = *tree;
	trail->count++;
	*tree = TREE_INIT;
}

/* Returns 1 with `ret` filled, 0 if it is gone, -1 with an error. */
static int find_one(const char *root, const char *name, const struct ckpt_kind *kind,
		    struct trail *trail, struct ckpt *ret, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	const struct checkpoint_tree *older[SIBLINGS];
	size_t count = 0;
	int there = candidate_read(root, name, kind, &tree, ret, err);

	if (there <= 0)
		return there;
	for (size_t i = 0; i < trail->count && count < SIBLINGS; i++)
		if (sibling_check_related(name, fs_basename(trail->trees[i].path)))
			older[count++] = &trail->trees[i];
	if (candidate_prove(root, &tree, ret, older, count))
		trail_add(trail, &tree);
	return 1;
}

int checkpoint_find(const char *root, const struct ckpt_kind *kind, struct ckpt_list *ret,
		    struct err **err)
{
	AUTO(root_list_release) struct root_list entries = { 0 };
	AUTO(checkpoint_list_release) struct ckpt_list found = { 0 };
	AUTO(trail_release) struct trail trail = { .count = 0 };

	if (root_read(root, kind, &entries, err) < 0)
		return -1;
	found.items = mem_zero(entries.count + 1, sizeof *found.items);
	for (size_t i = 0; i < entries.count; i++) {
		int there;

		if (!entries.items[i].candidate)
			continue;
		there = find_one(root, entries.items[i].name, kind, &trail,
				 &found.items[found.count], err);
		if (there < 0)
			return -1;
		found.count += there > 0;
	}
	for (size_t i = 0; i < found.count / 2; i++) {
		struct ckpt other = found.items[i];

		found.items[i] = found.items[found.count - 1 - i];
		found.items[found.count - 1 - i] = other;
	}
	*ret = found;
	found = (struct ckpt_list){ 0 };
	return 0;
}

int checkpoint_prove(const char *path, const struct ckpt_kind *kind, struct ckpt *ret,
		     struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(auto_free) char *root = fs_dirname(path);
	struct ckpt ckpt = { 0 };
	int there = candidate_read(root, fs_basename(path), kind, &tree, &ckpt, err);

	if (there < 0)
		return -1;
	if (there > 0) {
		candidate_prove(root, &tree, &ckpt, NULL, 0);
	} else {
		ckpt = (struct ckpt){ .kind = kind->looks ? kind : &kind_files,
				      .name = mem_copy(fs_basename(path)),
				      .path = mem_copy(path),
				      .why = mem_copy("gone, or not the name of a checkpoint") };
	}
	*ret = ckpt;
	return 0;
}

int checkpoint_point(const char *root, const struct ckpt *ckpt, struct err **err)
{
	AUTO(auto_free) char *old = checkpoint_pointer_text(root, ckpt->kind);
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *text = NULL;
	int64_t step;

	if (!ckpt->kind->pointer)
		return 0;
	if (old && checkpoint_name_any(old, true, &step) && step > ckpt->step)
		return 0;
	path = fs_join(root, ckpt->kind->pointer);
	text = ckpt->kind->points_by_name ? mem_copy(ckpt->name)
					  : mem_format("%" PRId64, ckpt->step);
	return fs_write_atomic(path, text, strlen(text), 0600, err);
}
