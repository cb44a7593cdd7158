/* Objects as files beneath a directory: the first kind of store. See store_dir.h. */
#include "jobs/store/store_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/process/cancel.h"
#include "jobs/base/text/text.h"
#include "jobs/store/transfer_backend.h"

#define READ_BYTES ((size_t)64 << 10)

/* The lock is held for two system calls at a time. If it is taken for this long, its holder is
 * stopped or dead on another machine, or the file system does not lock. */
#define LOCK_WAIT_MS       10000
#define LOCK_PAUSE_MOST_MS 10
#define LOCK_FILE          STORE_RESERVED "lock"

static struct store_dir *as_dir(struct store *store)
{
	return (struct store_dir *)store;
}

/* Reads at most `len` bytes from `offset` on. */
static int dir_read_range(struct store *base, const char *key, uint64_t offset, size_t len,
			  struct sb *ret, char ret_tag[STORE_TAG], struct err **err)
{
	struct store_dir *store = as_dir(base);
	AUTO(auto_free) char *buffer = NULL;
	AUTO(auto_close) int fd = -1;
	struct stat st;
	int found = store_dir_object_open(store, key, &fd, &st, err);
	ssize_t got = 1;

	if (found <= 0)
		return found;
	buffer = mem_alloc(READ_BYTES);
	while (len > 0 && offset <= INT64_MAX && got > 0) {
		got = fs_read_full(fd, buffer, len < READ_BYTES ? len : READ_BYTES,
				   (int64_t)offset);
		if (got < 0)
			return fs_error(err, errno, "cannot read '%s' in the store '%s'", key,
					store->root);
		sb_add(ret, buffer, (size_t)got);
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	if (ret_tag)
		store_dir_tag(&st, ret_tag);
	return 1;
}

static int dir_get(struct store *base, const char *key, size_t max, struct sb *ret,
		   char ret_tag[STORE_TAG], struct err **err)
{
	size_t before = ret->len, room = ret->max - before;
	int found = dir_read_range(base, key, 0, (max < room ? max : room) + 1, ret, ret_tag, err);

	if (found > 0 && (ret->truncated || ret->len - before > max))
		return err_set(err, EXIT_REFUSED, "'%s' in the store '%s' is larger than %zu bytes",
			       key, as_dir(base)->root, max);
	return found;
}

static int dir_stat(struct store *base, const char *key, struct store_object *ret, struct err **err)
{
	struct store_dir *store = as_dir(base);
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	struct stat st;
	int found = store_dir_place_open(store, key, false, &place, err);

	if (found <= 0)
		return found;
	if (fstatat(place.fd, place.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
		return fs_error(err, errno, "cannot look at '%s' in the store '%s'", key,
				store->root);
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	store_dir_object(&st, key, ret);
	return 1;
}

static int fill_temp(struct store_dir *store, struct dir_temp *temp, const void *bytes, size_t len,
		     struct err **err)
{
	int failed = fs_write_full(temp->fd, bytes, len);

	return failed ? store_dir_write_error(store, temp->place->key, failed, err)
		      : store_dir_temp_sync(store, temp, err);
}

/* Locks a folder for replace_if_same and against writes that would interfere with it. The lock
 * is an open file description lock: it belongs to `fd`, ends with it, and works between threads,
 * processes and, if the file system locks over the network (NFS 4, Lustre mounted with -o
 * flock), machines. The lock file stays: removing it would let two processes hold the lock at
 * once. If the file is absent and `make` is false, no replace_if_same has run here and no lock
 * is needed. Returns 0 with *ret_fd (maybe -1), -1 with an error. */
static int lock_folder(struct store_dir *store, const struct dir_place *place, bool make,
		       int *ret_fd, struct err **err)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (make ? O_CREAT : 0);
	AUTO(auto_close) int fd = openat(place->fd, LOCK_FILE, flags, 0600);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct mono start = clock_mono_now();
	int64_t pause_ms = 1;

	if (fd < 0)
		return errno == ENOENT && !make
			       ? 0
			       : store_dir_write_error(store, place->key, errno, err);
	while (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
			fs_error(err, errno, "cannot lock a folder of the store '%s'", store->root);
			return err_hint(err, "use a file system with working locks");
		}
		if (clock_mono_now().ms - start.ms > LOCK_WAIT_MS) {
			err_set(err, EXIT_REFUSED,
				"cannot lock the folder of '%s' in the store '%s'", place->key,
				store->root);
			return err_hint(err, "look for a stopped process that holds its lock");
		}
		if (!cancel_pause(pause_ms))
			return err_set(
				err, EXIT_UNREACHABLE,
				"gave up waiting for the lock of the folder of '%s', because "
				"the process is about to end",
				place->key);
		if (pause_ms < LOCK_PAUSE_MOST_MS)
			pause_ms *= 2;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int put_named(struct store_dir *store, struct dir_temp *temp, struct err **err)
{
	const struct dir_place *place = temp->place;

	if (renameat(place->fd, temp->name, place->fd, place->name) < 0)
		return store_dir_write_error(store, place->key, errno, err);
	temp->name[0] = '\0';
	return 0;
}

static int dir_put(struct store *base, const char *key, const void *bytes, size_t len,
		   struct err **err)
{
	struct store_dir *store = as_dir(base);
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(store_dir_temp_drop) struct dir_temp temp = { .fd = -1 };

	if (store_dir_place_open(store, key, true, &place, err) < 0 ||
	    store_dir_temp_new(store, &place, &temp, err) < 0 ||
	    fill_temp(store, &temp, bytes, len, err) < 0)
		return -1;
	{
		AUTO(auto_close) int lock = -1;

		if (lock_folder(store, &place, false, &lock, err) < 0 ||
		    put_named(store, &temp, err) < 0)
			return -1;
	}
	return store_dir_place_sync(store, &place, err);
}

static int dir_put_if_absent(struct store *base, const char *key, const void *bytes, size_t len,
			     struct err **err)
{
	struct store_dir *store = as_dir(base);
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(store_dir_temp_drop) struct dir_temp temp = { .fd = -1 };

	if (store_dir_place_open(store, key, true, &place, err) < 0)
		return -1;
	/* Spares a write; store_dir_temp_link() decides. */
	if (faccessat(place.fd, place.name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (store_dir_temp_new(store, &place, &temp, err) < 0 ||
	    fill_temp(store, &temp, bytes, len, err) < 0)
		return -1;
	return store_dir_temp_link(store, &temp, err);
}

/* Returns 1 if the object in this place has this tag, 0 if not, -1 with an error. */
static int has_tag(struct store_dir *store, const struct dir_place *place, const char *tag,
		   struct err **err)
{
	char now[STORE_TAG];
	struct stat st;

	if (fstatat(place->fd, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : store_dir_write_error(store, place->key, errno, err);
	if (!S_ISREG(st.st_mode))
		return 0;
	store_dir_tag(&st, now);
	return strcmp(now, tag) == 0;
}

static int dir_replace_if_same(struct store *base, const char *key, const char *tag,
			       const void *bytes, size_t len, struct err **err)
{
	struct store_dir *store = as_dir(base);
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(store_dir_temp_drop) struct dir_temp temp = { .fd = -1 };
	int same = store_dir_place_open(store, key, false, &place, err);

	if (same > 0)
		same = has_tag(store, &place, tag, err);
	if (same <= 0)
		return same;
	if (store_dir_temp_new(store, &place, &temp, err) < 0 ||
	    fill_temp(store, &temp, bytes, len, err) < 0)
		return -1;
	{
		AUTO(auto_close) int lock = -1;

		if (lock_folder(store, &place, true, &lock, err) < 0)
			return -1;
		same = has_tag(store, &place, tag, err);
		if (same <= 0)
			return same;
		if (put_named(store, &temp, err) < 0)
			return -1;
	}
	return store_dir_place_sync(store, &place, err) < 0 ? -1 : 1;
}

static int dir_delete(struct store *base, const char *key, struct err **err)
{
	struct store_dir *store = as_dir(base);
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(auto_close) int lock = -1;
	int found = store_dir_place_open(store, key, false, &place, err);

	if (found <= 0)
		return found;
	if (faccessat(place.fd, place.name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	if (lock_folder(store, &place, false, &lock, err) < 0)
		return -1;
	if (unlinkat(place.fd, place.name, 0) < 0) {
		if (errno == ENOENT || errno == EISDIR)
			return 0; /* a folder is not an object */
		return fs_error(err, errno, "cannot delete '%s' in the store '%s'", key,
				store->root);
	}
	return store_dir_place_sync(store, &place, err);
}

static void dir_free(struct store *base)
{
	struct store_dir *store = as_dir(base);

	free(store->root);
	free(store);
}

static const struct store_backend backend = {
	.free = dir_free,
	.list = store_dir_list,
	.folders = store_dir_folders,
	.get = dir_get,
	.read_range = dir_read_range,
	.stat = dir_stat,
	.put = dir_put,
	.put_if_absent = dir_put_if_absent,
	.replace_if_same = dir_replace_if_same,
	.remove = dir_delete,
	.upload = store_dir_upload,
	.download = store_dir_download,
	.backend = transfer_backend_dir_open,
};

int store_dir_open(const char *where, struct store **ret, struct err **err)
{
	const char *path = text_starts(where, "dir:") ? where + strlen("dir:") : where;
	struct store_dir *store;

	if (path[0] == '\0') {
		err_set(err, EXIT_REFUSED, "no store can be opened at '%s'", where);
		return err_hint(err, "name a directory");
	}
	store = mem_zero(1, sizeof *store);
	store->root = fs_of_user(path);
	store->base.backend = &backend;
	store->base.url = store->root;
	store->base.directory = store->root;
	*ret = &store->base;
	return 0;
}
