/*
 * Copies a checkpoint to another root, as a whole or not at all. See checkpoint.h.
 *
 * The hidden folder's name follows from the checkpoint's, so that a copy that was interrupted,
 * even by a reboot, is found and continued. A file in it under its own name is whole and
 * durable and carries the time of its source: if size and time are equal, it is not copied
 * again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/remote.h"

#define BLOCK      ((size_t)1 << 20)
#define PART_NAME  FS_TEMP_PREFIX "part"
#define STAGE_NAME FS_TEMP_PREFIX "copy-"
#define MADE_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

/* A copy to a folder. */
struct copy {
	const struct ckpt *ckpt;
	const char *to; /* the new root */
	const struct checkpoint_tree *source;
	char *stage; /* owned: the hidden folder in the new root */
	int stage_fd;
	uint64_t done; /* bytes */
	char *buffer;  /* owned */
	ckpt_copy_fn fn;
	void *arg;
};

static void copy_release(struct copy *c)
{
	auto_close(&c->stage_fd);
	free(c->stage);
	free(c->buffer);
}

static int failed_on(const struct copy *c, int os_errno, const char *path, struct err **err)
{
	return fs_error(err, os_errno, "cannot copy '%s/%s' to '%s'", c->ckpt->path, path, c->to);
}

static int changed(const struct ckpt *ckpt, const char *path, struct err **err)
{
	return err_set(err, EXIT_REFUSED, "cannot copy '%s': '%s' has changed meanwhile",
		       ckpt->path, path);
}

/* Returns a file's name in the hidden folder: a single file has its own name. */
static const char *name_of(const struct copy *c, const struct checkpoint_tree_file *file)
{
	return *file->path ? file->path : c->ckpt->name;
}

/* Attributes that must be equal beside names and sizes. Times are compared with the source
 * alone, because not every file system keeps them to the nanosecond. */
enum likeness { BY_SIZE, BY_TIME, BY_ENDS };

static bool file_differs(const struct checkpoint_tree *a, const struct checkpoint_tree *b, size_t i,
			 enum likeness like)
{
	const struct checkpoint_tree_file *x = &a->files[i], *y = &b->files[i];
	char mine[SHA256_HEX], other[SHA256_HEX];

	if (x->size != y->size)
		return true;
	if (like == BY_ENDS)
		return checkpoint_tree_ends(a, x, mine) < 0 ||
		       checkpoint_tree_ends(b, y, other) < 0 || strcmp(mine, other) != 0;
	return like == BY_TIME && x->mtime_ns != y->mtime_ns;
}

/* Returns true and the first file that differs. A single file has a name only in the hidden
 * folder. */
static bool differ(const struct checkpoint_tree *a, const struct checkpoint_tree *b,
		   enum likeness like, const char **ret_path)
{
	size_t both = a->count < b->count ? a->count : b->count;

	for (size_t i = 0; i < both; i++) {
		*ret_path = b->files[i].path;
		if (a->single == b->single && strcmp(a->files[i].path, b->files[i].path) != 0)
			return true;
		if (file_differs(a, b, i, like))
			return true;
	}
	if (a->count != b->count)
		*ret_path = (a->count > both ? a : b)->files[both].path;
	return a->count != b->count;
}

/* Looks for an entry of that name in the new root. Returns 1 if it is the same, 0 if absent, -1
 * with an error. */
static int already_there(struct copy *c, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(c->to, c->ckpt->name);
	AUTO(checkpoint_tree_release) struct checkpoint_tree there = TREE_INIT;
	const char *other = NULL;
	struct stat st;
	int found;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : fs_error(err, errno, "cannot read '%s'", path);
	found = checkpoint_tree_read(path, &there, err);
	if (found < 0)
		return -1;
	if (found == 0 || there.odd || there.single != c->source->single ||
	    differ(c->source, &there, BY_ENDS, &other))
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': '%s' is another checkpoint",
			       c->ckpt->path, path);
	return 1;
}

static int open_stage(struct copy *c, struct err **err)
{
	AUTO(auto_free) char *name = NULL;
	char hex[SHA256_HEX];

	hash_sha256_hex(c->ckpt->name, strlen(c->ckpt->name), hex);
	name = mem_format(STAGE_NAME "%.24s", hex);
	c->stage = fs_join(c->to, name);
	if (mkdir(c->stage, 0700) < 0 && errno != EEXIST)
		return fs_error(err, errno, "cannot make the folder '%s'", c->stage);
	c->stage_fd = open(c->stage, DIR_FLAGS | O_CLOEXEC);
	if (c->stage_fd < 0)
		return fs_error(err, errno, "cannot open '%s'", c->stage);
	return 0;
}

/* Lists the source as it is now. */
static int read_source(const struct ckpt *ckpt, struct checkpoint_tree *ret, struct err **err)
{
	int there = checkpoint_tree_read(ckpt->path, ret, err);

	if (there < 0)
		return -1;
	if (there == 0 || ret->count == 0)
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': not found", ckpt->path);
	if (ret->odd)
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': %s", ckpt->path, ret->odd);
	return 0;
}

int checkpoint_copy_is_there(const struct ckpt *ckpt, const struct ckpt_root *to, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(remote_release) struct remote remote = { 0 };
	AUTO(auto_free) char *why = NULL;

	if (read_source(ckpt, &tree, err) < 0 ||
	    remote_list(to, ckpt->name, tree.single, &remote, err) < 0)
		return -1;
	why = remote_differs(&remote, &tree);
	return why == NULL;
}

/* Opens the folder in the stage that holds `path`, making it on the way; never through a link.
 * Returns -1 and errno on failure. */
static int open_folder(const struct copy *c, const char *path)
{
	AUTO(auto_free) char *copy = mem_copy(path);
	int dir = fcntl(c->stage_fd, F_DUPFD_CLOEXEC, 0);
	char *part = copy, *slash;

	for (; dir >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
		int below = -1;

		*slash = '\0';
		if (mkdirat(dir, part, 0700) == 0 || errno == EEXIST)
			below = openat(dir, part, DIR_FLAGS | O_CLOEXEC);
		close(dir);
		dir = below;
	}
	return dir;
}

static void times_of(const struct checkpoint_tree_file *file, struct timespec ret[2])
{
	ret[0] = ret[1] = (struct timespec){ .tv_sec = file->mtime_ns / 1000000000,
					     .tv_nsec = file->mtime_ns % 1000000000 };
	if (ret[0].tv_nsec < 0)
		for (int i = 0; i < 2; i++) {
			ret[i].tv_sec--;
			ret[i].tv_nsec += 1000000000;
		}
}

static bool is_same(const struct stat *st, const struct checkpoint_tree_file *file)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == file->size &&
	       (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec == file->mtime_ns;
}

/* Copies the open source to the open part. */
static int copy_bytes(struct copy *c, const struct checkpoint_tree_file *file, int in, int out,
		      struct err **err)
{
	for (uint64_t at = 0; at < file->size;) {
		uint64_t left = file->size - at;
		size_t len = left < BLOCK ? (size_t)left : BLOCK, put = 0;

		if (checkpoint_read_at(in, at, c->buffer, len) < 0)
			return errno ? failed_on(c, errno, file->path, err)
				     : changed(c->ckpt, file->path, err);
		while (put < len) {
			ssize_t now = write(out, c->buffer + put, len - put);

			if (now < 0 && errno != EINTR)
				return failed_on(c, errno, file->path, err);
			put += now > 0 ? (size_t)now : 0;
		}
		/* Starts writeback now, so that the fsync at the end does not take long. */
		(void)!sync_file_range(out, (off_t)at, (off_t)len, SYNC_FILE_RANGE_WRITE);
		at += len;
		c->done += len;
		if (c->fn && !c->fn(c->arg, c->done, c->source->bytes))
			return err_set(err, EXIT_REFUSED, "copying '%s' was stopped",
				       c->ckpt->path);
	}
	return 0;
}

/* Ends a file whose part is complete: makes it durable, then gives it its name. */
static int end_file(const struct copy *c, const struct checkpoint_tree_file *file, int *out,
		    struct err **err)
{
	const char *name = name_of(c, file);
	AUTO(auto_close) int folder = open_folder(c, name);
	struct timespec times[2];
	int failed = 0;

	times_of(file, times);
	if (folder < 0 || fchmod(*out, 0600) < 0 || futimens(*out, times) < 0 || fsync(*out) < 0)
		return failed_on(c, errno, file->path, err);
	if (close(TAKE_FD(*out)) < 0 && errno != EINTR)
		failed = errno; /* network file systems report here */
	if (!failed && renameat(c->stage_fd, PART_NAME, folder, fs_basename(name)) < 0)
		failed = errno;
	return failed ? failed_on(c, failed, file->path, err) : 0;
}

/* Copies a file, unless an earlier copy of it is there. */
static int copy_file(struct copy *c, const struct checkpoint_tree_file *file, struct err **err)
{
	AUTO(auto_close) int in = -1;
	AUTO(auto_close) int out = -1;
	struct stat st;

	if (fstatat(c->stage_fd, name_of(c, file), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    is_same(&st, file)) {
		c->done += file->size;
		return 0;
	}
	in = checkpoint_tree_open(c->source, file);
	if (in < 0 || fstat(in, &st) < 0)
		return failed_on(c, errno, file->path, err);
	if (!is_same(&st, file))
		return changed(c->ckpt, file->path, err);
	if (unlinkat(c->stage_fd, PART_NAME, 0) < 0 && errno != ENOENT)
		return failed_on(c, errno, file->path, err);
	out = openat(c->stage_fd, PART_NAME, MADE_FLAGS | O_CLOEXEC, 0600);
	if (out < 0)
		return failed_on(c, errno, file->path, err);
	return copy_bytes(c, file, in, out, err) < 0 ? -1 : end_file(c, file, &out, err);
}

/* Syncs a folder of the stage and those above it, up to the stage: they hold its name. */
static int sync_up(const struct copy *c, const char *folder, struct err **err)
{
	AUTO(auto_free) char *at = mem_copy(folder);

	while (strlen(at) >= strlen(c->stage)) {
		char *above = fs_dirname(at);

		if (fs_sync_dir(at, err) < 0) {
			free(above);
			return -1;
		}
		free(at);
		at = above;
	}
	return 0;
}

static int sync_folders(const struct copy *c, struct err **err)
{
	AUTO(auto_free) char *last = NULL;

	for (size_t i = 0; i < c->source->count; i++) {
		AUTO(auto_free) char *path = fs_join(c->stage, name_of(c, &c->source->files[i]));
		AUTO(auto_free) char *folder = fs_dirname(path);

		if (last && strcmp(last, folder) == 0)
			continue;
		if (sync_up(c, folder, err) < 0)
			return -1;
		free(last);
		last = TAKE(folder);
	}
	return 0;
}

static int verify_source(const struct ckpt *ckpt, const struct checkpoint_tree *source,
			 struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree now = TREE_INIT;
	const char *other = NULL;

	if (checkpoint_tree_read(ckpt->path, &now, err) < 0)
		return -1;
	other = now.odd;
	if (other || differ(source, &now, BY_TIME, &other))
		return changed(ckpt, other, err);
	return 0;
}

/* Checks that nothing else is in the stage and that the source has not changed. */
static int verify(struct copy *c, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree made = TREE_INIT;
	const char *other = NULL;

	if (verify_source(c->ckpt, c->source, err) < 0)
		return -1;
	if (checkpoint_tree_read(c->stage, &made, err) < 0)
		return -1;
	if (!made.odd && !differ(c->source, &made, BY_SIZE, &other))
		return 0;
	auto_close(&c->stage_fd);
	if (fs_remove_tree(c->stage, err) < 0)
		return -1;
	return err_set(err, EXIT_REFUSED,
		       "cannot copy '%s': an earlier copy in '%s' was of another checkpoint and is "
		       "removed now",
		       c->ckpt->path, c->to);
}

static int give_name(const char *from, const char *to)
{
	struct stat st;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return -1;
	if (lstat(to, &st) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(from, to);
}

static int finish(struct copy *c, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(c->to, c->ckpt->name);
	AUTO(auto_free) char *single = fs_join(c->stage, c->ckpt->name);

	if (unlinkat(c->stage_fd, PART_NAME, 0) < 0 && errno != ENOENT)
		return failed_on(c, errno, "", err);
	if (verify(c, err) < 0 || sync_folders(c, err) < 0)
		return -1;
	if (give_name(c->source->single ? single : c->stage, path) < 0)
		return failed_on(c, errno, "", err);
	if (c->source->single && fs_remove_tree(c->stage, err) < 0)
		return -1;
	if (fs_sync_dir(c->to, err) < 0 || checkpoint_point(c->to, c->ckpt, err) < 0)
		return -1;
	return 0;
}

static int copy_to_folder(struct copy *c, struct err **err)
{
	int there;

	if (fs_mkdirs(c->to, err) < 0)
		return -1;
	there = already_there(c, err);
	if (there != 0)
		return there < 0 ? -1 : 0;
	if (open_stage(c, err) < 0)
		return -1;
	c->buffer = mem_alloc(BLOCK);
	for (size_t i = 0; i < c->source->count; i++)
		if (copy_file(c, &c->source->files[i], err) < 0)
			return -1;
	return finish(c, err);
}

int checkpoint_copy(const struct ckpt *ckpt, const struct ckpt_root *to, ckpt_copy_fn fn, void *arg,
		    struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree source = TREE_INIT;
	AUTO(copy_release)
	struct copy copy = { .ckpt = ckpt,
			     .to = to->path,
			     .source = &source,
			     .stage_fd = -1,
			     .fn = fn,
			     .arg = arg };

	if (read_source(ckpt, &source, err) < 0)
		return -1;
	if (!to->store)
		return copy_to_folder(&copy, err);
	if (checkpoint_remote_send(to, ckpt, &source, fn, arg, err) < 0)
		return -1;
	return verify_source(ckpt, &source, err);
}
