/* Lists a directory store in key order. Each level of depth keeps some names in memory, never
 * all of a large folder: that is read several times, each time for the names that come next. See
 * store_dir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/store/store_dir.h"

/* Memory for the names of one folder, in bytes with their pointers: enough for 20,000 to 40,000
 * names, as many as a folder usually has. Up to twice this is in use. */
#define NAMES_BYTES ((size_t)2 << 20)

/* The names in one folder, or those of them that come next. Names of folders carry a slash at
 * the end: with it they sort as their keys do, so that "a.b" comes before "a/b". */
struct names {
	struct sb text; /* all of them, each with its NUL */
	const char **sorted;
	size_t count;
	bool more;   /* more names follow the last one */
	char *limit; /* with `more`: names from this one on are left out; else NULL */
	char *after; /* only names after this one are read; NULL: from the first on */
};

#define NAMES_INIT ((struct names){ .text = SB_INIT })

/* A folder on the path from the root to the current position. */
struct level {
	int fd;
	struct names names;
	size_t next;    /* index into names.sorted */
	size_t key_len; /* length of the walk's key up to this folder, with its slash */
};

struct dir_walk {
	struct store_dir *store;
	struct sb key; /* key of the object returned last; while a level is read, of its folder */
	char *prefix;  /* prefix of the names on the first level */
	struct level *levels;
	size_t count;
	dir_other_fn other;
	void *arg;
};

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

static int list_error(const struct dir_walk *walk, int os_errno, struct err **err)
{
	return fs_error(err, os_errno, "cannot list '%s' in the store '%s'", walk->key.text,
			walk->store->root);
}

/* Returns the type of an entry; the file is asked if the folder does not tell the type. */
static unsigned char type_of(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_reserved(const char *name)
{
	return strncmp(name, STORE_RESERVED, strlen(STORE_RESERVED)) == 0;
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

/* Keeps the first names, as many as fit into NAMES_BYTES; the names behind them are read when
 * the folder is read next. */
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

/* Adds one entry of a folder to `names`, or reports it to `other`. */
static void names_add_entry(const struct dir_walk *walk, int dir, const char *prefix,
			    const struct dirent *entry, struct names *names)
{
	const char *name = entry->d_name;
	unsigned char type;

	if (is_dots(name) || strncmp(name, prefix, strlen(prefix)) != 0)
		return;
	type = is_reserved(name) ? DT_UNKNOWN : type_of(dir, entry);
	if (type == DT_DIR || type == DT_REG)
		names_add(names, name, type == DT_DIR);
	else if (walk->other && !names->after) /* only when the folder is first read */
		walk->other(walk->arg, dir, walk->key.text, name);
}

/* Reads the names behind names->after, in place of those held. */
static int names_read(const struct dir_walk *walk, int dir, const char *prefix, struct names *names,
		      struct err **err)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0); /* closedir() closes its descriptor */
	DIR *stream = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;
	int failed;

	if (!stream) {
		failed = errno;
		auto_close(&own);
		return list_error(walk, failed, err);
	}
	if (names->after)
		rewinddir(stream); /* the duplicate shares its offset with `dir` */
	sb_clear(&names->text);
	names->count = 0;
	names->more = false;
	free(names->limit);
	names->limit = NULL;
	while ((errno = 0, entry = readdir(stream)))
		names_add_entry(walk, dir, prefix, entry, names);
	failed = errno;
	closedir(stream);
	if (failed)
		return list_error(walk, failed, err);
	names_sort(names);
	return 0;
}

/* Call once all names are used. Returns true if the folder has more names to read. */
static bool names_next(struct names *names)
{
	if (!names->more)
		return false;
	free(names->after);
	names->after = mem_copy(names->sorted[names->count - 1]);
	return true;
}

static void level_release(struct level *level)
{
	auto_close(&level->fd);
	names_release(&level->names);
}

/* Enters a folder. The walk takes over the descriptor; walk->key ends with the folder. */
static int level_push(struct dir_walk *walk, int fd, const char *prefix, struct err **err)
{
	struct level *level;

	walk->levels = mem_grow(walk->levels, walk->count + 1, sizeof *walk->levels);
	level = &walk->levels[walk->count++];
	*level = (struct level){ fd, NAMES_INIT, 0, walk->key.len };
	return names_read(walk, fd, prefix, &level->names, err);
}

/* Sets *ret to the next name of the deepest level, or NULL at its end. Returns 0 or -1. */
static int level_next(struct dir_walk *walk, const char **ret, struct err **err)
{
	struct level *level = &walk->levels[walk->count - 1];

	*ret = NULL;
	if (level->next == level->names.count) {
		if (!names_next(&level->names))
			return 0;
		walk->key.len = level->key_len;
		if (walk->key.cap)
			walk->key.text[walk->key.len] = '\0';
		if (names_read(walk, level->fd, walk->count == 1 ? walk->prefix : "", &level->names,
			       err) < 0)
			return -1;
		level->next = 0;
		if (level->names.count == 0)
			return 0;
	}
	*ret = level->names.sorted[level->next++];
	return 0;
}

static int enter_folder(struct dir_walk *walk, int dir, const char *name, struct err **err)
{
	AUTO(auto_free) char *bare = mem_copy_n(name, strlen(name) - 1);
	int below = openat(dir, bare, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* The folder was removed or replaced since its name was read. */
	if (below < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	return below < 0 ? list_error(walk, errno, err) : level_push(walk, below, "", err);
}

int store_dir_walk_next(struct dir_walk *walk, struct dir_row *ret, struct err **err)
{
	while (walk->count > 0) {
		struct level *level = &walk->levels[walk->count - 1];
		const char *name;

		if (level_next(walk, &name, err) < 0)
			return -1;
		if (!name) {
			level_release(level);
			walk->count--;
			continue;
		}
		walk->key.len = level->key_len;
		sb_adds(&walk->key, name);
		if (name[strlen(name) - 1] == '/') {
			if (enter_folder(walk, level->fd, name, err) < 0)
				return -1;
			continue;
		}
		if (fstatat(level->fd, name, &ret->st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return list_error(walk, errno, err);
		}
		if (!S_ISREG(ret->st.st_mode))
			continue;
		ret->key = walk->key.text;
		ret->folder = level->fd;
		ret->name = name;
		return 1;
	}
	return 0;
}

int store_dir_walk_open(struct store_dir *store, const char *prefix, dir_other_fn other, void *arg,
			struct dir_walk **ret, struct err **err)
{
	AUTO(store_dir_walk_freep) struct dir_walk *walk = mem_zero(1, sizeof *walk);
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	int found;

	walk->store = store;
	walk->key = SB_INIT;
	walk->other = other;
	walk->arg = arg;
	found = store_dir_place_open(store, prefix, false, &place, err);
	if (found < 0)
		return -1;
	if (found > 0) {
		sb_add(&walk->key, prefix, (size_t)(place.name - prefix));
		walk->prefix = mem_copy(place.name);
		if (level_push(walk, TAKE_FD(place.fd), walk->prefix, err) < 0)
			return -1;
	}
	*ret = TAKE(walk);
	return 0;
}

void store_dir_walk_freep(struct dir_walk **walk)
{
	if (!*walk)
		return;
	while ((*walk)->count > 0)
		level_release(&(*walk)->levels[--(*walk)->count]);
	free((*walk)->levels);
	free((*walk)->prefix);
	sb_release(&(*walk)->key);
	free(*walk);
	*walk = NULL;
}

int store_dir_list(struct store *base, const char *prefix, store_list_fn fn, void *arg,
		   struct err **err)
{
	AUTO(store_dir_walk_freep) struct dir_walk *walk = NULL;
	struct dir_row row;
	int done;

	if (store_dir_walk_open((struct store_dir *)base, prefix, NULL, NULL, &walk, err) < 0)
		return -1;
	while ((done = store_dir_walk_next(walk, &row, err)) > 0) {
		struct store_object object;

		store_dir_object(&row.st, row.key, &object);
		done = fn(arg, &object, err);
		if (done != 0)
			break;
	}
	return done < 0 ? -1 : 0;
}

static int pass_folders(const struct names *names, store_folder_fn fn, void *arg, struct err **err)
{
	int done = 0;

	for (size_t i = 0; done == 0 && i < names->count; i++) {
		size_t len = strlen(names->sorted[i]);

		if (names->sorted[i][len - 1] == '/') {
			AUTO(auto_free) char *bare = mem_copy_n(names->sorted[i], len - 1);

			done = fn(arg, bare, err);
		}
	}
	return done;
}

int store_dir_folders(struct store *base, const char *prefix, store_folder_fn fn, void *arg,
		      struct err **err)
{
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(names_release) struct names names = NAMES_INIT;
	struct dir_walk where = { .store = (struct store_dir *)base, .key = SB_INIT };
	int done = store_dir_place_open(where.store, prefix, false, &place, err);

	if (done <= 0)
		return done;
	do {
		done = names_read(&where, place.fd, "", &names, err);
		if (done == 0)
			done = pass_folders(&names, fn, arg, err);
	} while (done == 0 && names_next(&names));
	return done < 0 ? -1 : 0;
}
