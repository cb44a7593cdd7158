/* Removes a tree with any content that other programs may have left: see fs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

/* Deeper folders are moved up to the top first: depth costs no stack and no
 * descriptors, however long the path is. */
#define DEPTH_MAX 32
/* Number of passes over a folder that fills up again while it is emptied. */
#define PASSES_MAX 64

struct fs_tree_removal {
	const char *path; /* for errors */
	struct err **err;
	int top;   /* the folder being removed */
	dev_t dev; /* the file system it is on */
	unsigned moved;
};

static int failed_on(const struct fs_tree_removal *r, const char *name, int os_errno)
{
	return fs_error(r->err, os_errno, "cannot remove '%s': '%s'", r->path, name);
}

/* Open the folder `name` to empty it, and give it the rights for that; -1 with errno. */
static int open_dir(const struct fs_tree_removal *r, int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	if (st.st_dev != r->dev) {
		errno = EBUSY;
		return -1;
	}
	if ((st.st_mode & 0700) != 0700) /* a failure shows in later calls */
		(void)!fchmodat(parent, name, (st.st_mode & 07777) | 0700, AT_SYMLINK_NOFOLLOW);
	return openat(parent, name, flags);
}

static int empty_dir(struct fs_tree_removal *r, int dir, unsigned depth);

/* Move a folder that lies too deep into the top folder, where a later pass removes it. */
static int move_up(struct fs_tree_removal *r, int dir, const char *name)
{
	char fresh[64];

	do {
		snprintf(fresh, sizeof fresh, FS_TEMP_PREFIX "%ld-%u", (long)getpid(), r->moved++);
	} while (faccessat(r->top, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	return renameat(dir, name, r->top, fresh) < 0 ? failed_on(r, name, errno) : 0;
}

static int remove_dir(struct fs_tree_removal *r, int parent, const char *name, unsigned depth)
{
	AUTO(auto_close) int dir = open_dir(r, parent, name);

	if (dir < 0)
		return errno == ENOENT ? 0 : failed_on(r, name, errno);
	if (depth >= DEPTH_MAX)
		return move_up(r, parent, name);
	if (empty_dir(r, dir, depth) < 0)
		return -1;
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return failed_on(r, name, errno);
	return 0;
}

/* Remove one entry; what the directory says about its type may be out of date. */
static int remove_entry(struct fs_tree_removal *r, int dir, const struct dirent *entry,
			unsigned depth)
{
	struct stat st;
	int failed;

	if (entry->d_type == DT_DIR)
		return remove_dir(r, dir, entry->d_name, depth + 1);
	if (unlinkat(dir, entry->d_name, 0) == 0 || errno == ENOENT)
		return 0;
	failed = errno;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return remove_dir(r, dir, entry->d_name, depth + 1);
	return failed_on(r, entry->d_name, failed);
}

/* Makes one pass of removals over `dir`. Returns 1 if it had entries, 0 if none, -1 on failure. */
static int empty_once(struct fs_tree_removal *r, int dir, DIR *names, unsigned depth)
{
	const struct dirent *entry;
	int seen = 0;

	rewinddir(names);
	while ((errno = 0, entry = readdir(names))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		seen = 1;
		if (remove_entry(r, dir, entry, depth) < 0)
			return -1;
	}
	return errno ? failed_on(r, ".", errno) : seen;
}

static int empty_dir(struct fs_tree_removal *r, int dir, unsigned depth)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0); /* closedir closes what it was given */
	DIR *names = own < 0 ? NULL : fdopendir(own);
	unsigned passes = 0;
	int seen;

	if (!names) {
		int failed = errno;

		auto_close(&own);
		return failed_on(r, ".", failed);
	}
	/* Names may be skipped while the folder shrinks, and the top one gets new ones
	 * from below: look again until nothing is left. */
	do {
		unsigned moved_before = r->moved;

		seen = empty_once(r, dir, names, depth);
		passes = r->moved != moved_before ? 0 : passes + 1;
	} while (seen > 0 && passes < PASSES_MAX);
	closedir(names);
	return seen > 0 ? failed_on(r, ".", ENOTEMPTY) : seen;
}

/* The tree `name` in the open folder `parent`. */
static int remove_tree_at(struct fs_tree_removal *r, int parent, const char *name)
{
	AUTO(auto_close) int top = open_dir(r, parent, name);

	if (top < 0)
		return errno == ENOENT ? 0 : failed_on(r, name, errno);
	r->top = top;
	if (empty_dir(r, top, 0) < 0)
		return -1;
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return failed_on(r, name, errno);
	return 0;
}

int fs_remove_tree(const char *path, struct err **err)
{
	struct fs_tree_removal r = { .path = path, .err = err, .top = -1 };
	AUTO(auto_free) char *bare = mem_copy(path);
	AUTO(auto_free) char *dir = NULL;
	AUTO(auto_close) int parent = -1;
	const char *name;
	size_t len = strlen(bare);
	struct stat st;

	while (len > 1 && bare[len - 1] == '/')
		bare[--len] = '\0';
	name = fs_basename(bare);
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, EXIT_REFUSED, "cannot remove '%s': not a name in a folder",
			       path);
	dir = fs_dirname(bare);
	parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : fs_error(err, errno, "cannot remove '%s'", path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot remove '%s'", path);
	r.dev = st.st_dev;
	if (S_ISDIR(st.st_mode))
		return remove_tree_at(&r, parent, name);
	if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
		return fs_error(err, errno, "cannot remove '%s'", path);
	return 0;
}

int fs_measure(const char *path, uint64_t *ret_files, uint64_t *ret_bytes, struct err **err)
{
	char *const roots[] = { (char *)(uintptr_t)path, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	const FTSENT *entry;
	int failed = 0;

	*ret_files = *ret_bytes = 0;
	if (!tree)
		return fs_error(err, errno, "cannot look into '%s'", path);
	while (!failed && (errno = 0, entry = fts_read(tree))) {
		bool is_gone = entry->fts_errno == ENOENT || entry->fts_errno == ENOTDIR;

		if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR ||
		    entry->fts_info == FTS_NS) {
			failed = is_gone ? 0 : entry->fts_errno;
		} else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP) {
			++*ret_files;
			*ret_bytes += (uint64_t)entry->fts_statp->st_size;
		}
	}
	if (!failed && !entry)
		failed = errno;
	fts_close(tree);
	return failed && failed != ENOENT ? fs_error(err, failed, "cannot look into '%s'", path)
					  : 0;
}

int fs_count_numbered(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	size_t len = strlen(prefix);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		count += strncmp(entry->d_name, prefix, len) == 0 && entry->d_name[len] >= '0' &&
			 entry->d_name[len] <= '9';
	closedir(dir);
	return count;
}
