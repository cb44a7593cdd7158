/* Reads the contents of a source folder, on all cores. See tree.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/parallel_for.h"
#include "jobs/source/archive.h"
#include "jobs/source/digest_cache.h"
#include "jobs/source/python_text.h"
#include "jobs/source/tree.h"

#define READ_BYTES ((size_t)256 << 10)

/* Errors of a file beside errno. */
enum { WRONG_TYPE = -1, LEAVES_TREE = -2 };

struct hashing {
	struct source_tree *tree;
	atomic_uint_fast64_t bytes;      /* bytes of all files seen so far */
	atomic_bool stop;                /* a file failed, or the total is too large */
	int *wrong;                      /* per file: errno, WRONG_* or 0 */
	const struct digest_row **known; /* per file: its remembered row, or NULL */
	atomic_size_t read;              /* number of files that had to be read */
};

static int read_link(struct hashing *h, struct source_tree_file *file)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(h->tree->fd, file->path, target, sizeof target - 1);

	if (len < 0)
		return errno == EINVAL ? WRONG_TYPE : errno;
	target[len] = '\0';
	if (fstatat(h->tree->fd, file->path, &file->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	if (!archive_link_inside(file->path, target))
		return LEAVES_TREE;
	file->mode = S_IFLNK;
	file->size = (uint64_t)len;
	file->target = mem_copy(target);
	hash_sha256_hex(target, (size_t)len, file->sha256);
	return 0;
}

/* True if the file's digest is known and the file has not been touched since. */
static bool is_known(struct hashing *h, const struct digest_row *row, struct source_tree_file *file)
{
	if (!row || fstatat(h->tree->fd, file->path, &file->st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(file->st.st_mode) || !digest_holds(row, &file->st))
		return false;
	file->mode = file->st.st_mode & 0100 ? 0100755 : 0100644;
	file->size = row->stamp.size;
	memcpy(file->sha256, row->sha256, sizeof file->sha256);
	snprintf(file->reduced, sizeof file->reduced, "%s", digest_reduced(row));
	atomic_fetch_add(&h->bytes, row->stamp.size);
	return true;
}

static int read_file(struct hashing *h, struct source_tree_file *file, char *buffer)
{
	AUTO(auto_close)
	int fd = openat(h->tree->fd, file->path,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	AUTO(hash_sha256_freep) struct sha256 *sha = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(PYTHON_TEXT_MAX);
	bool is_python;
	ssize_t got;

	if (fd < 0)
		return errno == ELOOP ? WRONG_TYPE : errno;
	if (fstat(fd, &file->st) < 0)
		return errno;
	if (!S_ISREG(file->st.st_mode))
		return WRONG_TYPE;
	file->mode = file->st.st_mode & 0100 ? 0100755 : 0100644;
	if ((uint64_t)file->st.st_size > ARCHIVE_BYTES_MAX) {
		atomic_fetch_add(&h->bytes, (uint64_t)file->st.st_size);
		return 0; /* the total is reported as too large */
	}
	atomic_fetch_add(&h->read, 1);
	sha = hash_sha256_new();
	is_python = python_text_is(file->path);
	while ((got = read(fd, buffer, READ_BYTES)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		hash_sha256_add(sha, buffer, (size_t)got);
		if (is_python)
			sb_add(&text, buffer, (size_t)got);
		file->size += (uint64_t)got;
		if (atomic_fetch_add(&h->bytes, (uint64_t)got) > ARCHIVE_BYTES_MAX)
			return 0;
	}
	hash_sha256_end(TAKE(sha), file->sha256);
	if (is_python && !text.truncated)
		python_text_digest(text.text, text.len, file->reduced);
	return 0;
}

static void hash_some(struct parallel_for *loop, void *arg)
{
	struct hashing *h = arg;
	AUTO(auto_free) char *buffer = mem_alloc(READ_BYTES);
	size_t i, end;

	while (!atomic_load(&h->stop) && parallel_for_take(loop, &i, &end))
		for (; i < end; i++) {
			struct source_tree_file *file = &h->tree->files[i];

			if (S_ISLNK(file->mode))
				h->wrong[i] = read_link(h, file);
			else if (!is_known(h, h->known[i], file))
				h->wrong[i] = read_file(h, file, buffer);
			if (h->wrong[i] || atomic_load(&h->bytes) > ARCHIVE_BYTES_MAX)
				atomic_store(&h->stop, true);
		}
}

static int report_wrong(const struct hashing *h, struct err **err)
{
	const struct source_tree *tree = h->tree;

	if (atomic_load(&h->bytes) > ARCHIVE_BYTES_MAX)
		return tree_too_big(err, tree->root, "1 GiB");
	for (size_t i = 0; i < tree->count; i++) {
		const char *path = tree->files[i].path;

		switch (h->wrong[i]) {
		case 0:
			continue;
		case LEAVES_TREE:
			err_set(err, EXIT_REFUSED,
				"the link '%s' leads out of the source folder '%s'", path,
				tree->root);
			return err_hint(err, "link to a file inside the folder by a relative path, "
					     "or name the target in source.link");
		case WRONG_TYPE:
			return err_set(err, EXIT_REFUSED, "'%s' changed while it was read", path);
		default:
			return fs_error(err, h->wrong[i],
					"cannot read '%s' in the source folder '%s'", path,
					tree->root);
		}
	}
	return 0;
}

int tree_hash(struct source_tree *tree, struct digest_cache *digests, const char *mark,
	      struct sb *ret_digests, struct err **err)
{
	AUTO(auto_free) int *wrong = mem_zero(tree->count + 1, sizeof *wrong);
	AUTO(auto_free)
	const struct digest_row **known = mem_zero(tree->count + 1, sizeof *known);
	struct hashing h = { .tree = tree, .wrong = wrong, .known = known };
	struct utc begun = clock_utc_now();

	for (size_t i = 0; i < tree->count; i++)
		known[i] = digest_cache_next(digests, tree->files[i].path);
	parallel_for(tree->count, PARALLEL_FOR_SMALL, hash_some, &h);
	if (report_wrong(&h, err) < 0)
		return -1;
	if (atomic_load(&h.read) == 0 && strcmp(mark, digests->mark) == 0)
		return 0;
	digest_cache_begin(ret_digests, mark);
	for (size_t i = 0; i < tree->count; i++) {
		const struct source_tree_file *file = &tree->files[i];

		if (S_ISREG(file->mode))
			digest_cache_add(ret_digests, file->path, &file->st, file->sha256,
					 file->reduced, begun);
	}
	digest_cache_end(ret_digests);
	return 0;
}
