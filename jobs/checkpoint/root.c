/* Entries of a root that could be a checkpoint, by name and type. See candidate.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/candidate.h"

/* A name with the suffix of its mark must still be a valid name (255 bytes). */
#define NAME_BYTES_MAX 200

void root_list_release(struct root_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].name);
	free(list->items);
	*list = (struct root_list){ 0 };
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);

	return len >= tail && strcmp(name + len - tail, suffix) == 0;
}

/* Opens the folder. Returns 1, 0 if absent, -1 with an error. */
static int open_root(const char *root, DIR **ret, struct err **err)
{
	*ret = opendir(root);
	if (*ret)
		return 1;
	if (errno == ENOENT)
		return 0;
	return fs_error(err, errno, "cannot list the checkpoints in '%s'", root);
}

/* Returns 1 if the entry belongs to the list, 0 if not, -1 with errno. */
static int read_entry(int dir, const char *name, const struct ckpt_kind *kind,
		      struct root_entry *ret)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    text_starts(name, FS_TEMP_PREFIX) || has_suffix(name, CKPT_MARK_SUFFIX))
		return 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	*ret = (struct root_entry){ .folder = S_ISDIR(st.st_mode), .step = INT64_MAX };
	ret->candidate = strlen(name) <= NAME_BYTES_MAX && text_is_utf8(name, strlen(name)) &&
			 name[0] != '.' && !checkpoint_name_temporary(name) &&
			 kind->named(name, ret->folder, &ret->step);
	return 1;
}

static int by_step(const void *a, const void *b)
{
	const struct root_entry *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return strcmp(x->name, y->name);
}

int root_read(const char *root, const struct ckpt_kind *kind, struct root_list *ret,
	      struct err **err)
{
	AUTO(root_list_release) struct root_list list = { 0 };
	const struct dirent *entry;
	int failed = 0;
	DIR *dir;
	int there = open_root(root, &dir, err);

	if (there <= 0)
		return there;
	while (!failed && (errno = 0, entry = readdir(dir))) {
		struct root_entry one;
		int good = read_entry(dirfd(dir), entry->d_name, kind, &one);

		failed = good < 0 ? errno : 0;
		if (good <= 0)
			continue;
		list.items = mem_room(list.items, list.count, sizeof *list.items);
		one.name = mem_copy(entry->d_name);
		list.items[list.count++] = one;
	}
	if (!failed)
		failed = errno;
	closedir(dir);
	if (failed)
		return fs_error(err, failed, "cannot list the checkpoints in '%s'", root);
	if (list.count)
		qsort(list.items, list.count, sizeof *list.items, by_step);
	*ret = list;
	list = (struct root_list){ 0 };
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int root_own(const char *root, const char *prefix, const char *suffix, char ***ret,
	     struct err **err)
{
	AUTO(auto_strv) char **names = mem_zero(1, sizeof *names);
	const struct dirent *entry;
	size_t count = 0;
	int failed;
	DIR *dir;
	int there = open_root(root, &dir, err);

	if (there < 0)
		return -1;
	while (there && (errno = 0, entry = readdir(dir))) {
		if (!text_starts(entry->d_name, prefix) || !has_suffix(entry->d_name, suffix))
			continue;
		names = mem_grow(names, count + 2, sizeof *names);
		names[count++] = mem_copy(entry->d_name);
		names[count] = NULL;
	}
	failed = there ? errno : 0;
	if (there)
		closedir(dir);
	if (failed)
		return fs_error(err, failed, "cannot list the checkpoints in '%s'", root);
	if (count)
		qsort(names, count, sizeof *names, by_text);
	*ret = TAKE(names);
	return 0;
}
