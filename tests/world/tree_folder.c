/* Wrappers of calls that list folders, and of fopen(): see call.h and calls.def. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "tests/world/tree_wraps.h"

/* How many names the kernel gives at once: a program sees them even if they are removed
 * meanwhile. */
#define BATCH 256

/* What a DIR is here. */
struct listing {
	int fd;
	struct file *file;
	struct dirent batch[BATCH];
	size_t at, count;
	struct dirent entry;
};

/* Offsets of a folder: 0 and 1 are "." and "..", the rest is the hash of the name before. */
#define AFTER_DOTS 2

static unsigned char type_of(mode_t mode)
{
	return (unsigned char)IFTODT(mode);
}

static void add_entry(struct listing *listing, const char *text, const struct inode *inode,
		      uint64_t offset)
{
	struct dirent *entry = &listing->batch[listing->count++];

	entry->d_ino = inode->number;
	entry->d_off = (off_t)offset;
	entry->d_type = type_of(inode->mode);
	entry->d_reclen = sizeof *entry;
	snprintf(entry->d_name, sizeof entry->d_name, "%s", text);
}

static void release_names(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i].text);
	free(names->list);
}

/* The next names of a folder from the offset of the description on. */
static int fill(struct listing *listing)
{
	struct opened *opened = opened_of(listing->file);
	struct inode *folder = opened->inode;
	const struct names *names;
	struct names made = { 0 };
	int64_t *offset = &listing->file->offset;

	listing->at = listing->count = 0;
	if (!opened->may_read)
		return -EBADF;
	if (folder->links == 0)
		return 0; /* removed: it has not even the dots */
	if (folder->made && folder->made->list) {
		folder->made->list(folder, self, &made);
		names = &made;
	} else {
		names = &folder->names;
	}
	if (*offset == 0)
		add_entry(listing, ".", folder, 1);
	if (*offset <= 1)
		add_entry(listing, "..", folder->parent ? folder->parent : folder, AFTER_DOTS);
	for (size_t i = names_after(names, (uint64_t)*offset);
	     i < names->count && listing->count < BATCH; i++)
		add_entry(listing, names->list[i].text, names->list[i].inode, names->list[i].hash);
	if (listing->count > 0)
		*offset = listing->batch[listing->count - 1].d_off;
	release_names(&made);
	return 0;
}

static struct listing *listing_new(int fd, struct file *file)
{
	struct listing *listing = calloc(1, sizeof *listing);

	if (!listing)
		abort();
	listing->fd = fd;
	listing->file = file;
	file_ref(file);
	return listing;
}

/* 1 with an entry, 0 at the end, or a negative errno. */
static int next_entry(struct listing *listing, struct dirent **ret)
{
	if (listing->at == listing->count) {
		int failed = fill(listing);

		if (failed < 0)
			return failed;
	}
	if (listing->at == listing->count)
		return 0;
	listing->entry = listing->batch[listing->at++];
	*ret = &listing->entry;
	return 1;
}

static void listing_free(struct listing *listing)
{
	file_unref(listing->file);
	free(listing);
}

/* ---- DIR ---- */

static int open_listing(const char *path, struct listing **ret)
{
	struct file *file = NULL;
	int fd, failed;

	failed = tree_open_path(self, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, &file);
	if (failed < 0)
		return failed;
	fd = fd_install(file, 0, true);
	if (fd < 0)
		return fd;
	*ret = listing_new(fd, file);
	return 0;
}

static void close_listing(struct listing *listing)
{
	int fd = listing->fd;

	listing_free(listing);
	(void)fd_close(self, fd);
}

DIR *__wrap_opendir(const char *path)
{
	struct call call = call_enter(CALL_opendir, call_path(AT_FDCWD, path), -1);
	struct listing *listing = NULL;

	if (REFUSED(call)) {
		(void)call_fail(&call);
		return NULL;
	}
	if (call_return(&call, open_listing(path, &listing)) == 0)
		return (DIR *)listing;
	if (listing)
		close_listing(listing); /* the answer is lost */
	return NULL;
}

DIR *__wrap_fdopendir(int fd)
{
	struct call call = call_enter(CALL_fdopendir, NULL, fd);
	struct file *file = fd_file(fd);
	struct opened *opened = opened_of(file);
	int failed = 0;

	if (call.error)
		failed = -call.error;
	else if (!file)
		failed = -EBADF;
	else if (!opened || !S_ISDIR(opened->inode->mode))
		failed = -ENOTDIR;
	else if ((file->flags & O_ACCMODE) == O_WRONLY)
		failed = -EINVAL;
	if (failed < 0) {
		errno = -failed;
		return NULL;
	}
	return (DIR *)listing_new(fd, file);
}

struct dirent *__wrap_readdir(DIR *stream)
{
	struct listing *listing = (struct listing *)stream;
	struct call call = call_enter(CALL_readdir, NULL, listing->fd);
	struct dirent *entry = NULL;
	int got, before = errno;

	if (REFUSED(call)) {
		(void)call_fail(&call);
		return NULL;
	}
	got = next_entry(listing, &entry);
	/* The kernel fails where a folder is gone; the C library makes that its end. */
	if (got == -ENOENT)
		got = 0;
	errno = before;
	if (call_return(&call, got) < 0)
		return NULL;
	return entry;
}

void __wrap_rewinddir(DIR *stream)
{
	struct listing *listing = (struct listing *)stream;
	struct call call = call_enter(CALL_rewinddir, NULL, listing->fd);

	(void)call;
	listing->file->offset = 0;
	listing->at = listing->count = 0;
}

int __wrap_dirfd(DIR *stream)
{
	return ((struct listing *)stream)->fd;
}

int __wrap_closedir(DIR *stream)
{
	struct listing *listing = (struct listing *)stream;
	struct call call = call_enter(CALL_closedir, NULL, listing->fd);

	close_listing(listing);
	return (int)call_return(&call, 0);
}

/* ---- scandir ---- */

static int scan(const char *path, struct dirent ***ret, int (*filter)(const struct dirent *))
{
	struct listing *listing;
	struct dirent *entry, **list = NULL;
	int failed = open_listing(path, &listing), count = 0, got;

	if (failed < 0)
		return failed;
	while ((got = next_entry(listing, &entry)) > 0) {
		if (filter && !filter(entry))
			continue;
		list = realloc(list, ((size_t)count + 1) * sizeof *list);
		if (!list || !(list[count] = malloc(sizeof *entry)))
			abort();
		*list[count++] = *entry;
	}
	close_listing(listing);
	if (got < 0) {
		while (count > 0)
			free(list[--count]);
		free(list);
		return got;
	}
	*ret = list ? list : calloc(1, sizeof *list);
	return count;
}

static int (*sort_entries)(const struct dirent **, const struct dirent **);

static int compare_entries(const void *a, const void *b)
{
	return sort_entries((const struct dirent **)(uintptr_t)a,
			    (const struct dirent **)(uintptr_t)b);
}

int __wrap_scandir(const char *restrict path, struct dirent ***restrict ret,
		   int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	struct call call = call_enter(CALL_scandir, call_path(AT_FDCWD, path), -1);
	struct dirent **list = NULL;
	int count;

	if (REFUSED(call))
		return call_fail(&call);
	count = scan(path, &list, filter);
	if (count > 1 && compare) {
		sort_entries = compare;
		qsort(list, (size_t)count, sizeof(struct dirent *), compare_entries);
	}
	if (call.error && count >= 0) { /* the answer is lost */
		while (count > 0)
			free(list[--count]);
		free(list);
	} else if (count >= 0) {
		*ret = list;
	}
	return (int)call_return(&call, count);
}

/* ---- fts: FTS_PHYSICAL | FTS_NOCHDIR, without an order ---- */

struct level {
	struct listing *listing; /* NULL: it could not be opened, or is not to be */
	size_t path_len;         /* of the folder, as it was given */
	size_t bare_len;         /* without a slash at its end */
	bool has_entries;
	struct stat st;
	struct level *above;
};

struct traversal {
	char path[PATH_MAX];
	char **roots;
	size_t root;
	int options;
	dev_t device;
	struct level *level;
	bool enter; /* the last entry was a folder, before its content */
	FTSENT entry;
	struct stat st;
};

FTS *__wrap_fts_open(char *const *roots, int options,
		     int (*compare)(const FTSENT **, const FTSENT **))
{
	struct call call = call_enter(CALL_fts_open, call_path(AT_FDCWD, roots[0]), -1);
	struct traversal *traversal;
	size_t count = 0;

	if (!(options & FTS_PHYSICAL) || !(options & FTS_NOCHDIR) || compare)
		abort(); /* the product uses nothing else */
	if (call.error) {
		(void)call_fail(&call);
		return NULL;
	}
	traversal = calloc(1, sizeof *traversal);
	while (roots[count])
		count++;
	if (!traversal || !(traversal->roots = calloc(count + 1, sizeof(char *))))
		abort();
	for (size_t i = 0; i < count; i++)
		traversal->roots[i] = strdup(roots[i]);
	traversal->options = options;
	return (FTS *)traversal;
}

static unsigned short info_of(mode_t mode)
{
	return S_ISDIR(mode) ? FTS_D : S_ISREG(mode) ? FTS_F : S_ISLNK(mode) ? FTS_SL : FTS_DEFAULT;
}

static FTSENT *entry_of(struct traversal *traversal, unsigned short info, int error)
{
	FTSENT *entry = &traversal->entry;
	size_t depth = 0;

	for (const struct level *level = traversal->level; level; level = level->above)
		depth++;
	entry->fts_info = info;
	entry->fts_errno = error;
	entry->fts_path = entry->fts_accpath = traversal->path;
	entry->fts_pathlen = (unsigned short)strlen(traversal->path);
	entry->fts_level = (short)depth;
	entry->fts_statp = &traversal->st;
	return entry;
}

/* Looks at what traversal->path names. */
static FTSENT *visit(struct traversal *traversal)
{
	struct walk walk;
	int failed = walk_found(&walk, self, AT_FDCWD, traversal->path, WALK_NOFOLLOW);

	memset(&traversal->st, 0, sizeof traversal->st);
	if (failed == 0 && walk.inode)
		inode_stat(walk.inode, &traversal->st);
	if (failed < 0)
		return entry_of(traversal, FTS_NS, -failed);
	if (!traversal->level)
		traversal->device = traversal->st.st_dev;
	traversal->enter = S_ISDIR(traversal->st.st_mode);
	return entry_of(traversal, info_of(traversal->st.st_mode), 0);
}

static bool is_elsewhere(const struct traversal *traversal)
{
	return (traversal->options & FTS_XDEV) && traversal->st.st_dev != traversal->device;
}

/* Into the folder that was told; NULL, or an entry where it cannot be read. */
static FTSENT *enter_folder(struct traversal *traversal)
{
	struct level *level = calloc(1, sizeof *level);
	int failed = 0;

	if (!level)
		abort();
	level->path_len = level->bare_len = strlen(traversal->path);
	if (level->path_len > 1 && traversal->path[level->path_len - 1] == '/')
		level->bare_len--;
	level->st = traversal->st;
	traversal->enter = false;
	if (!is_elsewhere(traversal))
		failed = open_listing(traversal->path, &level->listing);
	if (failed < 0) {
		free(level);
		return entry_of(traversal, FTS_DNR, -failed);
	}
	level->above = traversal->level;
	traversal->level = level;
	return NULL;
}

/* Out of a folder of which all was told. */
static FTSENT *leave_folder(struct traversal *traversal, int failed)
{
	struct level *level = traversal->level;

	if (level->listing)
		close_listing(level->listing);
	/* A root that was given with a slash at its end keeps it unless it is empty, as in glibc.
	 */
	traversal->path[level->has_entries ? level->path_len : level->bare_len] = '\0';
	traversal->st = level->st;
	traversal->level = level->above;
	free(level);
	return entry_of(traversal, failed < 0 ? FTS_ERR : FTS_DP, -failed);
}

static FTSENT *next_of_folder(struct traversal *traversal)
{
	struct level *level = traversal->level;
	struct dirent *entry = NULL;
	int got;

	do {
		got = level->listing ? next_entry(level->listing, &entry) : 0;
	} while (got > 0 && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	if (got <= 0)
		return leave_folder(traversal, got);
	level->has_entries = true;
	snprintf(traversal->path + level->bare_len, sizeof traversal->path - level->bare_len, "/%s",
		 entry->d_name);
	return visit(traversal);
}

static FTSENT *next_visit(struct traversal *traversal)
{
	FTSENT *failed = traversal->enter ? enter_folder(traversal) : NULL;

	if (failed)
		return failed;
	if (traversal->level)
		return next_of_folder(traversal);
	if (!traversal->roots[traversal->root])
		return NULL;
	snprintf(traversal->path, sizeof traversal->path, "%s",
		 traversal->roots[traversal->root++]);
	return visit(traversal);
}

FTSENT *__wrap_fts_read(FTS *tree)
{
	struct traversal *traversal = (struct traversal *)tree;
	struct call call = call_enter(CALL_fts_read, traversal->path, -1);
	FTSENT *entry;

	if (call.error == ENOMEM) {
		(void)call_fail(&call);
		return NULL;
	}
	entry = next_visit(traversal);
	if (!entry)
		errno = 0;
	if (entry && call.error && (entry->fts_info == FTS_D || entry->fts_info == FTS_F)) {
		traversal->enter = false;
		return entry_of(traversal, FTS_NS, call.error);
	}
	return entry;
}

int __wrap_fts_close(FTS *tree)
{
	struct traversal *traversal = (struct traversal *)tree;
	struct call call = call_enter(CALL_fts_close, NULL, -1);

	while (traversal->level)
		(void)leave_folder(traversal, 0);
	for (size_t i = 0; traversal->roots[i]; i++)
		free(traversal->roots[i]);
	free(traversal->roots);
	free(traversal);
	return (int)call_return(&call, 0);
}

/* ---- fopen: the C library's streams on descriptors of the world ---- */

static ssize_t cookie_read(void *cookie, char *buffer, size_t len)
{
	return __wrap_read((int)(intptr_t)cookie, buffer, len);
}

/* 0 is an error here: fopencookie(3). */
static ssize_t cookie_write(void *cookie, const char *bytes, size_t len)
{
	ssize_t put = __wrap_write((int)(intptr_t)cookie, bytes, len);

	return put < 0 ? 0 : put;
}

static int cookie_seek(void *cookie, off64_t *offset, int whence)
{
	off_t at = __wrap_lseek((int)(intptr_t)cookie, *offset, whence);

	*offset = at;
	return at < 0 ? -1 : 0;
}

static int cookie_close(void *cookie)
{
	return __wrap_close((int)(intptr_t)cookie);
}

static int flags_of(const char *mode)
{
	int flags = strchr(mode, 'e') ? O_CLOEXEC : 0;
	int both = strchr(mode, '+') != NULL;

	if (*mode == 'r')
		return flags | (both ? O_RDWR : O_RDONLY);
	return flags | (both ? O_RDWR : O_WRONLY) | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC);
}

FILE *__wrap_fopen(const char *restrict path, const char *restrict mode)
{
	static const cookie_io_functions_t calls = { .read = cookie_read,
						     .write = cookie_write,
						     .seek = cookie_seek,
						     .close = cookie_close };
	struct call call = call_enter(CALL_fopen, call_path(AT_FDCWD, path), -1);
	struct file *file = NULL;
	char plain[4] = { *mode, strchr(mode, '+') ? '+' : '\0', '\0' };
	FILE *stream;
	int failed, fd;

	if (REFUSED(call)) {
		(void)call_fail(&call);
		return NULL;
	}
	failed = tree_open_path(self, AT_FDCWD, path, flags_of(mode), 0666, &file);
	fd = wrap_opened(&call, failed, file, flags_of(mode));
	if (fd < 0)
		return NULL;
	stream = fopencookie((void *)(intptr_t)fd, plain, calls);
	if (!stream)
		abort();
	return stream;
}
