/* Lists and reads the files of one checkpoint without following a link. See tree.h. */
#include "jobs/checkpoint/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/base/err.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/checkpoint.h"

/* O_NONBLOCK: opening a pipe does not wait. O_NOCTTY: a terminal does not become ours. */
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

#define STATX_FIELDS (STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_BTIME)

struct tree_walk {
	struct checkpoint_tree *tree;
	struct sb path; /* path of the folder being listed, with its slash, or "" */
	struct err **err;
};

static int walk_error(const struct tree_walk *w, int os_errno)
{
	return fs_error(w->err, os_errno, "cannot list '%s/%s'", w->tree->path, w->path.text);
}

/* Keeps the reason and returns 0: the listing goes on, but the checkpoint does not count. */
static int walk_odd(struct tree_walk *w, const char *what)
{
	if (!w->tree->odd)
		w->tree->odd = mem_format("'%s' %s", w->path.text, what);
	return 0;
}

static int64_t in_ns(const struct statx_timestamp *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static void add_file(struct tree_walk *w, const struct statx *st)
{
	struct checkpoint_tree *tree = w->tree;
	struct checkpoint_tree_file *file;

	tree->files = mem_room(tree->files, tree->count, sizeof *tree->files);
	file = &tree->files[tree->count++];
	/* `names` moves while it grows, so the path is set later. */
	*file = (struct checkpoint_tree_file){ .size = st->stx_size,
					       .mtime_ns = in_ns(&st->stx_mtime) };
	file->birth_ns = st->stx_mask & STATX_BTIME ? in_ns(&st->stx_btime) : file->mtime_ns;
	tree->bytes += file->size;
	sb_add(&tree->names, w->path.text, w->path.len + 1);
}

static int walk_folder(struct tree_walk *w, int dir, unsigned depth);

/* Handles the entry `name`, with which w->path ends. Returns 0 or -1. */
static int walk_entry(struct tree_walk *w, int dir, const char *name, unsigned depth)
{
	AUTO(auto_close) int below = -1;
	struct statx st;

	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_FIELDS, &st) < 0)
		return errno == ENOENT ? 0 : walk_error(w, errno);
	if (!text_is_utf8(name, strlen(name)))
		return walk_odd(w, "has a name that is not UTF-8");
	if (S_ISLNK(st.stx_mode))
		return walk_odd(w, "is a link");
	if (w->tree->count >= TREE_FILES_MAX || w->tree->names.truncated)
		return walk_odd(w, "comes after more files than are looked at");
	if (S_ISREG(st.stx_mode)) {
		add_file(w, &st);
		return 0;
	}
	if (!S_ISDIR(st.stx_mode))
		return walk_odd(w, "is neither a file nor a folder");
	if (depth >= TREE_DEPTH_MAX)
		return walk_odd(w, "lies too deep");
	below = openat(dir, name, READ_FLAGS | O_CLOEXEC | O_DIRECTORY);
	if (below < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (below < 0)
		return walk_error(w, errno);
	sb_addc(&w->path, '/');
	return walk_folder(w, below, depth + 1);
}

static int walk_names(struct tree_walk *w, int dir, DIR *names, unsigned depth)
{
	const struct dirent *entry;
	size_t before = w->path.len;

	while ((errno = 0, entry = readdir(names))) {
		int done;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    text_starts(entry->d_name, FS_TEMP_PREFIX))
			continue;
		sb_adds(&w->path, entry->d_name);
		done = walk_entry(w, dir, entry->d_name, depth);
		w->path.len = before;
		if (w->path.cap)
			w->path.text[before] = '\0';
		if (done < 0)
			return -1;
	}
	return errno ? walk_error(w, errno) : 0;
}

static int walk_folder(struct tree_walk *w, int dir, unsigned depth)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0); /* closedir() closes its descriptor */
	DIR *names = own < 0 ? NULL : fdopendir(own);
	int done;

	if (!names) {
		int failed = errno;

		auto_close(&own);
		return walk_error(w, failed);
	}
	done = walk_names(w, dir, names, depth);
	closedir(names);
	return done;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct checkpoint_tree_file *)a)->path,
		      ((const struct checkpoint_tree_file *)b)->path);
}

static int list_all(struct checkpoint_tree *tree, const struct statx *st, struct err **err)
{
	struct tree_walk w = { .tree = tree, .path = SB_INIT, .err = err };
	const char *at;
	int done = 0;

	if (tree->single)
		add_file(&w, st);
	else
		done = walk_folder(&w, tree->fd, 0);
	sb_release(&w.path);
	at = tree->names.text;
	for (size_t i = 0; i < tree->count; i++, at += strlen(at) + 1)
		tree->files[i].path = at;
	if (tree->count)
		qsort(tree->files, tree->count, sizeof *tree->files, by_path);
	return done;
}

int checkpoint_tree_read(const char *path, struct checkpoint_tree *ret, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	struct statx st;

	tree.path = mem_copy(path);
	tree.fd = open(path, READ_FLAGS | O_CLOEXEC);
	/* ELOOP: a link; ENXIO: a socket. */
	if (tree.fd < 0 &&
	    (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO))
		return 0;
	if (tree.fd < 0 || statx(tree.fd, "", AT_EMPTY_PATH, STATX_FIELDS, &st) < 0)
		return fs_error(err, errno, "cannot read '%s'", path);
	if (!S_ISREG(st.stx_mode) && !S_ISDIR(st.stx_mode))
		return 0;
	tree.single = S_ISREG(st.stx_mode);
	if (list_all(&tree, &st, err) < 0)
		return -1;
	*ret = tree;
	tree = TREE_INIT;
	return 1;
}

void checkpoint_tree_release(struct checkpoint_tree *tree)
{
	free(tree->path);
	free(tree->files);
	free(tree->odd);
	sb_release(&tree->names);
	auto_close(&tree->fd);
	*tree = TREE_INIT;
}

/* Returns the index of the first file not before `path`. */
static size_t lower_bound(const struct checkpoint_tree *tree, const char *path)
{
	size_t low = 0, high = tree->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(tree->files[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct checkpoint_tree_file *checkpoint_tree_find(const struct checkpoint_tree *tree,
							const char *path)
{
	size_t at = lower_bound(tree, path);

	return at < tree->count && strcmp(tree->files[at].path, path) == 0 ? &tree->files[at]
									   : NULL;
}

const struct checkpoint_tree_file *checkpoint_tree_first(const struct checkpoint_tree *tree,
							 const char *prefix)
{
	size_t at = lower_bound(tree, prefix);

	return at < tree->count && text_starts(tree->files[at].path, prefix) ? &tree->files[at]
									     : NULL;
}

static int open_once(const struct checkpoint_tree *tree, const struct checkpoint_tree_file *file)
{
	AUTO(auto_free) char *path = mem_copy(file->path);
	AUTO(auto_close) int dir = -1;
	char *part = path, *slash;
	struct stat st;
	int fd;

	if (tree->single) /* the same file even if the name was replaced */
		return fcntl(tree->fd, F_DUPFD_CLOEXEC, 0);
	for (; (slash = strchr(part, '/')); part = slash + 1) {
		int below;

		*slash = '\0';
		below = openat(dir < 0 ? tree->fd : dir, part,
			       READ_FLAGS | O_CLOEXEC | O_DIRECTORY);
		if (below < 0)
			return -1;
		auto_close(&dir);
		dir = below;
	}
	fd = openat(dir < 0 ? tree->fd : dir, part, READ_FLAGS | O_CLOEXEC);
	if (fd >= 0) {
		int failed = fstat(fd, &st) < 0 ? errno : !S_ISREG(st.st_mode) ? EINVAL : 0;

		if (failed) {
			auto_close(&fd);
			errno = failed;
			return -1;
		}
	}
	return fd;
}

int checkpoint_tree_open(const struct checkpoint_tree *tree,
			 const struct checkpoint_tree_file *file)
{
	int fd, failures = 0;

	if (file->remote) {
		errno = ENOENT;
		return tree->open_remote ? tree->open_remote(tree->arg, file->path) : -1;
	}
	do
		fd = open_once(tree, file);
	while (fd < 0 && err_try_again(&failures));
	return fd;
}

int checkpoint_read_at(int fd, uint64_t offset, void *bytes, size_t len)
{
	char *at = bytes;
	int failures = 0; /* a file that cannot be read for a moment is not damaged */

	if (offset > INT64_MAX || len > INT64_MAX - offset) {
		errno = 0;
		return -1;
	}
	while (len > 0) {
		ssize_t got = pread(fd, at, len, (off_t)offset);

		if (got < 0 && err_try_again(&failures))
			continue;
		if (got < 0)
			return -1;
		if (got == 0) {
			errno = 0;
			return -1;
		}
		at += got;
		len -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

int checkpoint_tree_text(const struct checkpoint_tree *tree,
			 const struct checkpoint_tree_file *file, size_t max, struct sb *ret)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *text = NULL;

	if (file->size > max)
		return -1;
	fd = checkpoint_tree_open(tree, file);
	if (fd < 0)
		return -1;
	text = mem_alloc((size_t)file->size + 1);
	if (checkpoint_read_at(fd, 0, text, (size_t)file->size) < 0)
		return -1;
	sb_add(ret, text, (size_t)file->size);
	return ret->truncated ? -1 : 0;
}

int checkpoint_tree_ends(const struct checkpoint_tree *tree,
			 const struct checkpoint_tree_file *file, char hex[SHA256_HEX])
{
	AUTO(auto_close) int fd = checkpoint_tree_open(tree, file);
	AUTO(auto_free) char *bytes = mem_alloc(2 * CKPT_ENDS);
	size_t len = 2 * CKPT_ENDS;

	if (fd < 0)
		return -1;
	if (file->size <= len) {
		len = (size_t)file->size;
		if (checkpoint_read_at(fd, 0, bytes, len) < 0)
			return -1;
	} else if (checkpoint_read_at(fd, 0, bytes, CKPT_ENDS) < 0 ||
		   checkpoint_read_at(fd, file->size - CKPT_ENDS, bytes + CKPT_ENDS, CKPT_ENDS) <
			   0) {
		return -1;
	}
	hash_sha256_hex(bytes, len, hex);
	return 0;
}

int64_t checkpoint_tree_saving_ms(const struct checkpoint_tree *tree)
{
	int64_t begun = INT64_MAX, ended = 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct checkpoint_tree_file *file = &tree->files[i];

		begun = file->birth_ns < begun ? file->birth_ns : begun;
		ended = file->mtime_ns > ended ? file->mtime_ns : ended;
	}
	/* A copied file may be born after its last write. */
	return ended > begun ? (ended - begun) / 1000000 : 0;
}

void checkpoint_tree_tag(const struct checkpoint_tree *tree, const char *more, char hex[SHA256_HEX])
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();

	hash_sha256_add(sha, more, strlen(more) + 1);
	if (tree->odd)
		hash_sha256_add(sha, tree->odd, strlen(tree->odd));
	for (size_t i = 0; i < tree->count; i++) {
		const struct checkpoint_tree_file *file = &tree->files[i];

		hash_sha256_add(sha, file->path, strlen(file->path) + 1);
		hash_sha256_add(sha, &file->size, sizeof file->size);
		hash_sha256_add(sha, &file->mtime_ns, sizeof file->mtime_ns);
	}
	hash_sha256_end(TAKE(sha), hex);
}
