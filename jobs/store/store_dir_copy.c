/* Copies whole files in and out of a directory store; the bytes do not pass through memory if
 * the file system can share or copy them itself. See store_dir.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "jobs/store/store_dir.h"

#define COPY_BYTES   ((size_t)1 << 20)
#define KERNEL_BYTES ((size_t)1 << 30) /* copied by one call of the kernel */

/* Copies through a buffer, which works everywhere, from the current offsets. Returns 0 or an
 * errno. */
static int copy_by_hand(int from, int to)
{
	AUTO(auto_free) char *buffer = mem_alloc(COPY_BYTES);
	ssize_t got;

	while ((got = read(from, buffer, COPY_BYTES)) != 0) {
		int failed = got < 0 ? errno : fs_write_full(to, buffer, (size_t)got);

		if (failed && failed != EINTR)
			return failed;
	}
	return 0;
}

int store_dir_copy_file(int from, int to)
{
	ssize_t put;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while ((put = copy_file_range(from, NULL, to, NULL, KERNEL_BYTES, 0)) > 0)
		;
	if (put < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
		return errno;
	/* The kernel cannot copy between these file systems, or not at all. Both offsets are
	 * where it stopped; at the end of the file copy_by_hand() reads nothing. */
	return copy_by_hand(from, to);
}

int store_dir_upload(struct store *base, const struct store_upload *upload, const char *key,
		     struct err **err)
{
	struct store_dir *store = (struct store_dir *)base;
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(store_dir_temp_drop) struct dir_temp temp = { .fd = -1 };
	int failed;

	if (store_dir_place_open(store, key, true, &place, err) < 0)
		return -1;
	if (faccessat(place.fd, place.name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (store_dir_temp_new(store, &place, &temp, err) < 0)
		return -1;
	failed = store_dir_copy_file(upload->fd, temp.fd);
	if (failed)
		return fs_error(err, failed, "cannot copy '%s' to '%s' in the store '%s'",
				upload->path, key, store->root);
	if (fs_has_changed(upload->fd, &upload->st))
		return err_set(err, EXIT_REFUSED, "'%s' changed while it was copied", upload->path);
	if (store_dir_temp_sync(store, &temp, err) < 0)
		return -1;
	return store_dir_temp_link(store, &temp, err);
}

int store_dir_download(struct store *base, const char *key, const char *path, struct err **err)
{
	struct store_dir *store = (struct store_dir *)base;
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1, .key = path };
	AUTO(store_dir_temp_drop) struct dir_temp temp = { .fd = -1 };
	AUTO(auto_free) char *dir = fs_dirname(path);
	AUTO(auto_close) int from = -1;
	struct stat st;
	int found = store_dir_object_open(store, key, &from, &st, err);
	int failed;

	if (found <= 0)
		return found;
	place.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place.fd < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	place.name = fs_basename(path);
	if (store_dir_temp_new(store, &place, &temp, err) < 0)
		return -1;
	failed = store_dir_copy_file(from, temp.fd);
	if (!failed && fsync(temp.fd) < 0)
		failed = errno;
	if (!failed && renameat(place.fd, temp.name, place.fd, place.name) < 0)
		failed = errno;
	if (failed)
		return fs_error(err, failed, "cannot write '%s'", path);
	temp.name[0] = '\0';
	return store_dir_place_sync(store, &place, err) < 0 ? -1 : 1;
}
