/* Listing a directory store in key order. Of each level of depth some names are in
 * memory, never all of a large folder: that is read several times over, each time
 * for the names that come next. See store_dir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/store/store_dir.h"

/* Of the names of one folder, in bytes with their pointers. As many as a folder
 * usually has: 20,000 to 40,000. Between once and twice this is in use. */
#define NAMES_BYTES ((size_t)2 << 20)

struct listing {
	struct store_dir *store;
	store_list_fn fn;
	void *arg;
	struct err **err;
	struct sb key; /* of the folder being listed, with its slash, or "" */
};

/* The names in one folder, or those of them that come next. Names of folders carry
 * a slash at the end: with it they sort as their keys do, so that "a.b" comes
 * before "a/b". */
struct names {
	struct sb text; /* all of them, each with its NUL */
	const char **sorted;
	size_t count;
	bool more;   /* others come behind the last one */
	char *limit; /* then none is wanted from this one on; else NULL */
	char *after; /* wanted are those behind this; NULL: from the first on */
};

#define NAMES_INIT ((struct names){ .text = SB_INIT })

static void names_release(struct names *names)
{
	sb_release(&names->text);
	free(names->sorted);
	free(names->limit);
	free(names->after);
	*names = NAMES_INIT;
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

static size_t bytes_of(size_t count, size_t text)
{
	return text + count * sizeof(char *);
}

static void names_sort(struct names *names)
{
	const char *at = names->text.text;

	names->sorted = mem_grow(names->sorted, names->count + 1, sizeof *names->sorted);
	for (size_t i = 0; i < names->count; i++, at += strlen(at) + 1)
		names->sorted[i] = at;
	qsort(names->sorted, names->count, sizeof *names->sorted, by_bytes);
}

/* Keep the first names, as many as fit into NAMES_BYTES; what comes behind them is
 * for the next time that the folder is read. */
static void names_cut(struct names *names)
{
	const char *at = names->text.text, *end = at + names->text.len;
	char *to = names->text.text;
	size_t count = 0, bytes = 0;

	names_sort(names);
	while (count == 0 || bytes_of(count, bytes) < NAMES_BYTES)
		bytes += strlen(names->sorted[count++]) + 1;
	free(names->limit);
	names->limit = mem_copy(names->sorted[count]);
	names->more = true;
	names->count = count;
	for (size_t len; at < end; at += len) {
		len = strlen(at) + 1;
		if (strcmp(at, names->limit) < 0) {
			memmove(to, at, len);
			to += len;
		}
	}
	names->text.len = (size_t)(to - names->text.text);
}

static void names_add(struct names *names, const char *name, bool folder)
{
	size_t before = names->text.len;

	sb_adds(&names->text, name);
	sb_add(&names->text, folder ? "/" : "", folder ? 2 : 1);
	name = names->text.text + before;
	if ((names->after && strcmp(name, names->after) <= 0) ||
	    (names->limit && strcmp(name, names->limit) >= 0)) {
		names->text.len = before;
		return;
	}
	names->count++;
	if (bytes_of(names->count, names->text.len) >= 2 * NAMES_BYTES)
		names_cut(names);
}

/* The names behind names->after, replacing those that it has. */
static int names_read(const struct listing *l, int dir, const char *prefix, struct names *names)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0); /* closedir closes what it was given */
	DIR *stream = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	int failed;

	if (!stream) {
		failed = errno;
		auto_close(&own);
		return list_error(l, failed);
	}
	if (names->after)
		rewinddir(stream); /* its place is shared with `dir` */
	sb_clear(&names->text);
	names->count = 0;
	names->more = false;
	free(names->limit);
	names->limit = NULL;
	while ((errno = 0, entry = readdir(stream))) {
		unsigned char type;

		if (!is_ours(entry->d_name, prefix))
			continue;
		type = type_of(dir, entry);
		if (type == DT_DIR || type == DT_REG)
			names_add(names, entry->d_name, type == DT_DIR);
	}
	failed = errno;
	closedir(stream);
	if (failed)
		return list_error(l, failed);
	names_sort(names);
	return 0;
}

/* Once what was read is used up: is there more to read? */
static bool names_next(struct names *names)
{
	if (!names->more)
		return false;
	free(names->after);
	names->after = mem_copy(names->sorted[names->count - 1]);
	return true;
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

/* The names that were read, one after the other. */
static int list_names(struct listing *l, int dir, const struct names *names)
{
	size_t before = l->key.len;

	for (size_t i = 0; i < names->count; i++) {
		int done;

		sb_adds(&l->key, names->sorted[i]);
		done = list_name(l, dir, names->sorted[i]);
		l->key.len = before;
		if (l->key.cap)
			l->key.text[before] = '\0';
		if (done != 0)
			return done;
	}
	return 0;
}

static int list_folder(struct listing *l, int dir, const char *prefix)
{
	AUTO(names_release) struct names names = NAMES_INIT;
	int done;

	do {
		done = names_read(l, dir, prefix, &names);
		if (done == 0)
			done = list_names(l, dir, &names);
	} while (done == 0 && names_next(&names));
	return done;
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

static int tell_folders(const struct listing *l, const struct names *names, store_folder_fn fn)
{
	int done = 0;

	for (size_t i = 0; done == 0 && i < names->count; i++) {
		size_t len = strlen(names->sorted[i]);

		if (names->sorted[i][len - 1] == '/') {
			AUTO(auto_free) char *bare = mem_copy_n(names->sorted[i], len - 1);

			done = fn(l->arg, bare, l->err);
		}
	}
	return done;
}

int dir_folders(struct store *base, const char *prefix, store_folder_fn fn, void *arg,
		struct err **err)
{
	AUTO(dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(names_release) struct names names = NAMES_INIT;
	struct listing l = { (struct store_dir *)base, NULL, arg, err, SB_INIT };
	int done = dir_place_open(l.store, prefix, false, &place, err);

	if (done <= 0)
		return done;
	do {
		done = names_read(&l, place.fd, "", &names);
		if (done == 0)
			done = tell_folders(&l, &names, fn);
	} while (done == 0 && names_next(&names));
	return done < 0 ? -1 : 0;
}
