/* Listing a directory store in key order, one folder's names in memory for each
 * level of depth. See store_dir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/store/store_dir.h"

struct listing {
	struct store_dir *store;
	store_list_fn fn;
	void *arg;
	struct err **err;
	struct sb key; /* of the folder being listed, with its slash, or "" */
};

/* The names in one folder. Names of folders carry a slash at the end: with it
 * they sort as their keys do, so that "a.b" comes before "a/b". */
struct names {
	struct sb text; /* all of them, each with its NUL */
	const char **sorted;
	size_t count;
};

static void names_release(struct names *names)
{
	sb_release(&names->text);
	free(names->sorted);
	names->sorted = NULL;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_error(const struct listing *l, int os_errno)
{
	return fs_error(l->err, os_errno, "cannot list '%s' in the store '%s'", l->key.text,
			l->store->root);
}

/* What kind of entry it is, asked of the file where the folder does not say. */
static unsigned char type_of(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static bool is_ours(const char *name, const char *prefix)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	if (strncmp(name, STORE_RESERVED, strlen(STORE_RESERVED)) == 0)
		return false;
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static int names_read(const struct listing *l, int dir, const char *prefix, struct names *names)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0); /* closedir closes what it was given */
	DIR *stream = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	const char *at;
	int failed;

	if (!stream) {
		failed = errno;
		auto_close(&own);
		return list_error(l, failed);
	}
	while ((errno = 0, entry = readdir(stream))) {
		unsigned char type;

		if (!is_ours(entry->d_name, prefix))
			continue;
		type = type_of(dir, entry);
		if (type != DT_DIR && type != DT_REG)
			continue;
		sb_adds(&names->text, entry->d_name);
		sb_add(&names->text, type == DT_DIR ? "/" : "", type == DT_DIR ? 2 : 1);
		names->count++;
	}
	failed = errno;
	closedir(stream);
	if (failed)
		return list_error(l, failed);
	if (names->text.truncated)
		return list_error(l, EFBIG);
	names->sorted = mem_grow(NULL, names->count + 1, sizeof *names->sorted);
	at = names->text.text;
	for (size_t i = 0; i < names->count; i++, at += strlen(at) + 1)
		names->sorted[i] = at;
	qsort(names->sorted, names->count, sizeof *names->sorted, by_bytes);
	return 0;
}

static int list_folder(struct listing *l, int dir, const char *prefix);

/* One name; l->key already ends with it. 0 go on, 1 stop, -1. */
static int list_name(struct listing *l, int dir, const char *name)
{
	struct store_object object;
	struct stat st;
	size_t len = strlen(name);

	if (name[len - 1] == '/') {
		AUTO(auto_free) char *bare = mem_copy_n(name, len - 1);
		AUTO(auto_close)
		int below = openat(dir, bare, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		/* What has gone, or became something else, since its name was read. */
		if (below < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
			return 0;
		return below < 0 ? list_error(l, errno) : list_folder(l, below, "");
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : list_error(l, errno);
	if (!S_ISREG(st.st_mode))
		return 0;
	dir_object(&st, l->key.text, &object);
	return l->fn(l->arg, &object, l->err);
}

static int list_folder(struct listing *l, int dir, const char *prefix)
{
	AUTO(names_release) struct names names = { .text = SB_INIT_MAX((size_t)1 << 30) };
	size_t before = l->key.len;

	if (names_read(l, dir, prefix, &names) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		int done;

		sb_adds(&l->key, names.sorted[i]);
		done = list_name(l, dir, names.sorted[i]);
		l->key.len = before;
		if (l->key.cap)
			l->key.text[before] = '\0';
		if (done != 0)
			return done;
	}
	return 0;
}

int dir_list(struct store *base, const char *prefix, store_list_fn fn, void *arg, struct err **err)
{
	AUTO(dir_place_close) struct dir_place place = { .fd = -1 };
	struct listing l = { (struct store_dir *)base, fn, arg, err, SB_INIT };
	int done = dir_place_open(l.store, prefix, false, &place, err);

	if (done > 0) {
		sb_add(&l.key, prefix, (size_t)(place.name - prefix));
		done = list_folder(&l, place.fd, place.name);
	}
	sb_release(&l.key);
	return done < 0 ? -1 : 0;
}

int dir_folders(struct store *base, const char *prefix, store_folder_fn fn, void *arg,
		struct err **err)
{
	AUTO(dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(names_release) struct names names = { .text = SB_INIT_MAX((size_t)1 << 30) };
	struct listing l = { (struct store_dir *)base, NULL, arg, err, SB_INIT };
	int done = dir_place_open(l.store, prefix, false, &place, err);

	if (done > 0)
		done = names_read(&l, place.fd, "", &names);
	for (size_t i = 0; done == 0 && i < names.count; i++) {
		size_t len = strlen(names.sorted[i]);

		if (names.sorted[i][len - 1] == '/') {
			AUTO(auto_free) char *bare = mem_copy_n(names.sorted[i], len - 1);

			done = fn(arg, bare, err);
		}
	}
	return done < 0 ? -1 : 0;
}
