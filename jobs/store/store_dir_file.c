/* Folders, files and temporary files of a directory store, for all who read or write one: see
 * store_dir.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/hash.h"
#include "jobs/store/store_dir.h"

int store_dir_root_open(struct store_dir *store, bool make, int *ret_fd, struct err **err)
{
	int fd = open(store->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && !make)
		return 0;
	if (fd < 0 && errno == ENOENT) {
		if (fs_mkdirs(store->root, err) < 0)
			return -1;
		fd = open(store->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return fs_error(err, errno, "cannot open the store '%s'", store->root);
	*ret_fd = fd;
	return 1;
}

/* Mode of a folder whose name may not be durable: the process that makes it may be killed before it
 * has synced the folder above. Whoever finds it so syncs that before anything is put into it. */
#define FRESH (S_ISVTX | 0700)

/* Makes the name of a folder durable, if need be. Returns false with errno. */
static bool settle(int dir, int fd, bool made)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	/* A file system without modes shows another one. */
	if (!made && (st.st_mode & 07777) != FRESH)
		return true;
	if (fsync(dir) < 0 && errno != EINVAL && errno != ENOTSUP)
		return false;
	(void)!fchmod(fd, 0700); /* if it stays so, the next one syncs once more */
	return true;
}

/* Opens the folder `part`, never through a link. Returns 1, 0 if absent, -1 with errno. */
static int step_down(int dir, const char *part, bool make, int *ret_fd)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, part, flags);
	bool made = fd < 0 && errno == ENOENT && make;

	if (made) {
		if (mkdirat(dir, part, FRESH) < 0 && errno != EEXIST)
			return -1;
		fd = openat(dir, part, flags);
	}
	if (fd >= 0 && make && !settle(dir, fd, made)) {
		int failed = errno;

		close(fd);
		errno = failed;
		return -1;
	}
	if (fd < 0) {
		/* A file or a link is in the way: no object of this store lies behind it. */
		bool nothing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;

		return nothing && !make ? 0 : -1;
	}
	*ret_fd = fd;
	return 1;
}

int store_dir_place_open(struct store_dir *store, const char *key, bool make, struct dir_place *ret,
			 struct err **err)
{
	AUTO(auto_close) int fd = -1;
	const char *part = key, *slash;
	int found = store_dir_root_open(store, make, &fd, err);

	if (found <= 0)
		return found;
	while ((slash = strchr(part, '/'))) {
		char name[NAME_MAX + 1];
		int next = -1;

		snprintf(name, sizeof name, "%.*s", (int)(slash - part), part);
		found = step_down(fd, name, make, &next);
		if (found < 0)
			return fs_error(err, errno == ELOOP ? ENOTDIR : errno,
					"cannot open the folder '%.*s' of the store '%s'",
					(int)(slash - key), key, store->root);
		if (found == 0)
			return 0;
		close(fd);
		fd = next;
		part = slash + 1;
	}
	*ret = (struct dir_place){ fd, part, key };
	fd = -1;
	return 1;
}

void store_dir_place_close(struct dir_place *place)
{
	auto_close(&place->fd);
	place->fd = -1;
}

int store_dir_place_sync(struct store_dir *store, const struct dir_place *place, struct err **err)
{
	/* Some network and FUSE file systems do not support fsync on folders. */
	if (fsync(place->fd) == 0 || errno == EINVAL || errno == ENOTSUP)
		return 0;
	return fs_error(err, errno, "cannot make '%s' durable in '%s'", place->key, store->root);
}

int store_dir_write_error(struct store_dir *store, const char *key, int os_errno, struct err **err)
{
	return fs_error(err, os_errno, "cannot write '%s' in the store '%s'", key, store->root);
}

int store_dir_temp_new(struct store_dir *store, const struct dir_place *place, struct dir_temp *ret,
		       struct err **err)
{
	char chance[HASH_NAME_HEX];

	hash_random_hex(8, chance);
	ret->place = place;
	snprintf(ret->name, sizeof ret->name, STORE_RESERVED "%s", chance);
	ret->fd = openat(place->fd, ret->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	return ret->fd < 0 ? store_dir_write_error(store, place->key, errno, err) : 0;
}

void store_dir_temp_drop(struct dir_temp *temp)
{
	if (temp->fd < 0)
		return;
	close(temp->fd);
	temp->fd = -1;
	if (temp->name[0])
		unlinkat(temp->place->fd, temp->name, 0);
}

int store_dir_temp_sync(struct store_dir *store, struct dir_temp *temp, struct err **err)
{
	struct timespec times[2];

	/* The kernel stamps by its tick of some ms, and inode numbers are reused at once: two
	 * objects written in one tick could get the same tag. The exact time keeps them apart. */
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[1] = times[0];
	if (futimens(temp->fd, times) < 0 || fsync(temp->fd) < 0)
		return store_dir_write_error(store, temp->place->key, errno, err);
	return 0;
}

int store_dir_temp_link(struct store_dir *store, struct dir_temp *temp, struct err **err)
{
	const struct dir_place *place = temp->place;
	struct stat st;
	int failed = 0;

	if (linkat(place->fd, temp->name, place->fd, place->name, 0) < 0) {
		failed = errno;
		/* Over NFS, if the reply to a link is lost, the repeated call fails although the
		 * link was made: then the file has two names. */
		if (fstat(temp->fd, &st) == 0 && st.st_nlink == 2)
			failed = 0;
	}
	/* Most file systems without links support the exclusive rename. */
	if ((failed == EPERM || failed == EOPNOTSUPP || failed == ENOSYS || failed == EMLINK)) {
		failed = 0;
		if (renameat2(place->fd, temp->name, place->fd, place->name, RENAME_NOREPLACE) < 0)
			failed = errno;
		else
			temp->name[0] = '\0';
	}
	if (failed == EEXIST)
		return 0;
	if (failed)
		return store_dir_write_error(store, place->key, failed, err);
	store_dir_temp_drop(temp);
	return store_dir_place_sync(store, place, err) < 0 ? -1 : 1;
}

/* The ctime is left out: renaming the file and unlinking the temporary name change it, though
 * not the content. */
void store_dir_tag(const struct stat *st, char tag[STORE_TAG])
{
	int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	snprintf(tag, STORE_TAG, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)st->st_size,
		 (uint64_t)st->st_ino, (uint64_t)ns);
}

void store_dir_object(const struct stat *st, const char *key, struct store_object *ret)
{
	ret->key = key;
	ret->size = (uint64_t)st->st_size;
	ret->modified.ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
	store_dir_tag(st, ret->tag);
}

int store_dir_object_open(struct store_dir *store, const char *key, int *ret_fd,
			  struct stat *ret_st, struct err **err)
{
	AUTO(store_dir_place_close) struct dir_place place = { .fd = -1 };
	AUTO(auto_close) int fd = -1;
	int found = store_dir_place_open(store, key, false, &place, err);

	if (found <= 0)
		return found;
	/* O_NONBLOCK: opening a pipe would wait for its other end. */
	fd = openat(place.fd, place.name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO || errno == ENODEV))
		return 0;
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return fs_error(err, errno, "cannot read '%s' in the store '%s'", key, store->root);
	if (!S_ISREG(ret_st->st_mode))
		return 0;
	*ret_fd = fd;
	fd = -1;
	return 1;
}
