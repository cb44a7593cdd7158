/* Makes a tree that other programs wrote durable: see fs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

/* Some network and FUSE file systems do not support fsync, least of all on folders. */
static bool is_unsupported(int failed)
{
	return failed == EINVAL || failed == ENOTSUP;
}

static int sync_fd(int fd)
{
	return fsync(fd) == 0 || is_unsupported(errno) || errno == EROFS ? 0 : errno;
}

static int sync_at(int parent, const char *name);

/* Every entry of the folder, then the folder itself. Takes the descriptor. */
static int sync_folder(int fd)
{
	DIR *entries = fdopendir(fd);
	const struct dirent *entry;
	int failed = 0;

	if (!entries) {
		failed = errno;
		close(fd);
		return failed;
	}
	while (!failed && (errno = 0, entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			failed = sync_at(fd, entry->d_name);
	if (!failed)
		failed = errno ? errno : sync_fd(fd);
	closedir(entries);
	return failed;
}

/* Returns an errno, or 0; anything but a file or folder is skipped. */
static int sync_at(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int failed = 0;
	struct stat st;

	if (fd < 0) /* a link or a socket; an absent file is left to the caller to notice */
		return errno == ELOOP || errno == ENXIO || errno == ENOENT ? 0 : errno;
	if (fstat(fd, &st) < 0)
		failed = errno;
	else if (S_ISDIR(st.st_mode))
		return sync_folder(fd);
	else if (S_ISREG(st.st_mode))
		failed = sync_fd(fd);
	close(fd);
	return failed;
}

int fs_sync_tree(const char *path, struct err **err)
{
	AUTO(auto_free) char *parent = fs_dirname(path);
	int failed = sync_at(AT_FDCWD, path);

	if (failed)
		return fs_error(err, failed, "cannot make '%s' durable", path);
	return fs_sync_dir(parent, err);
}

bool fs_refuses_dir_sync(const char *path)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && fsync(fd) < 0 && is_unsupported(errno);
}
