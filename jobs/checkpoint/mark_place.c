/* Place of the marks of a root, and their names. See mark.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/mark.h"

char *checkpoint_root_url(const struct ckpt_root *root, const char *name)
{
	if (!root->store)
		return fs_join(root->path, name);
	return mem_format("%s/%s%s", store_url(root->store), root->path, name);
}

int mark_place_open(const struct ckpt_root *root, struct mark_place *ret, struct err **err)
{
	if (!root->store && store_open(root->path, &ret->own, err) < 0)
		return -1;
	ret->store = root->store ? root->store : ret->own;
	ret->prefix = root->store ? mem_format("%s" MARK_FOLDER, root->path) : mem_copy("");
	return 0;
}

void mark_place_close(struct mark_place *place)
{
	store_freep(&place->own);
	free(place->prefix);
	*place = (struct mark_place){ 0 };
}

void mark_names_release(struct mark_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i].name);
	free(names->items);
	*names = (struct mark_names){ 0 };
}

/* Adds `file`, the name of a file among marks. */
static void add(struct mark_names *names, const struct ckpt_root *root, const char *file)
{
	size_t len = strlen(file), tail = strlen(CKPT_MARK_SUFFIX);
	struct mark_name *one;

	/* Hidden names are unfinished files of the store's own. */
	if (file[0] == '.' || len <= tail || strcmp(file + len - tail, CKPT_MARK_SUFFIX) != 0)
		return;
	names->items = mem_grow(names->items, names->count + 1, sizeof *names->items);
	one = &names->items[names->count++];
	*one = (struct mark_name){ root, mem_copy_n(file, len - tail), -1 };
	/* Every kind finds the same step in a name as checkpoint_name_any(). */
	if (!checkpoint_name_any(one->name, true, &one->step) &&
	    !checkpoint_name_any(one->name, false, &one->step))
		one->step = -1;
}

static int add_folder(struct mark_names *names, const struct ckpt_root *root, struct err **err)
{
	AUTO(auto_strv) char **files = NULL;

	if (root_own(root->path, "", CKPT_MARK_SUFFIX, &files, err) < 0)
		return -1;
	for (char **file = files; *file; file++)
		add(names, root, *file);
	return 0;
}

struct mark_place_listing {
	struct mark_names *names;
	const struct ckpt_root *root;
	size_t prefix;
};

static int add_object(void *arg, const struct store_object *object, struct err **err)
{
	const struct mark_place_listing *listing = arg;
	const char *file = object->key + listing->prefix;

	(void)err;
	if (!strchr(file, '/'))
		add(listing->names, listing->root, file);
	return 0;
}

int mark_names_add(struct mark_names *names, const struct ckpt_root *root, struct err **err)
{
	AUTO(auto_free) char *prefix = NULL;
	struct mark_place_listing listing = { names, root, 0 };

	if (!root->store)
		return add_folder(names, root, err);
	prefix = mem_format("%s" MARK_FOLDER, root->path);
	listing.prefix = strlen(prefix);
	return store_list(root->store, prefix, add_object, &listing, err);
}

static int newest_first(const void *a, const void *b)
{
	const struct mark_name *x = a, *y = b;

	if (x->step != y->step)
		return x->step > y->step ? -1 : 1;
	if (x->root->attempt != y->root->attempt)
		return x->root->attempt > y->root->attempt ? -1 : 1;
	return strcmp(y->name, x->name);
}

void mark_names_sort(struct mark_names *names)
{
	if (names->count)
		qsort(names->items, names->count, sizeof *names->items, newest_first);
}
