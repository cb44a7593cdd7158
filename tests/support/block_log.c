/* A file system with one file, `disk`, that remembers the order in which it was written: what
 * reaches a disk before its power is cut.
 *
 *   block_log IMAGE LOG MOUNTPOINT [FUSE OPTION…]
 *
 * Reads and writes go to IMAGE. LOG gets a record for each write, and for each flush of the block
 * layer (fsync of the file), in order: two little-endian 64-bit numbers, offset and length, then
 * the bytes; a flush has the offset -1 and the length 0. A loop device over the file sends its
 * requests through the page cache of FUSE, which without writeback_cache hands each on before the
 * request is done (Documentation/filesystems/fuse-io.rst of Linux). */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME "/disk"

static int image = -1, record_fd = -1;

static int record(int64_t offset, const char *bytes, size_t len)
{
	int64_t head[2] = { offset, (int64_t)len };
	struct iovec parts[2] = { { head, sizeof head }, { (void *)(uintptr_t)bytes, len } };
	ssize_t done = writev(record_fd, parts, len ? 2 : 1);

	return done == (ssize_t)(sizeof head + len) ? 0 : -EIO;
}

static int on_getattr(const char *path, struct stat *ret, struct fuse_file_info *info)
{
	struct stat st;

	(void)info;
	memset(ret, 0, sizeof *ret);
	if (strcmp(path, "/") == 0) {
		ret->st_mode = S_IFDIR | 0700;
		ret->st_nlink = 2;
		return 0;
	}
	if (strcmp(path, NAME) != 0 || fstat(image, &st) < 0)
		return -ENOENT;
	ret->st_mode = S_IFREG | 0600;
	ret->st_nlink = 1;
	ret->st_size = st.st_size;
	return 0;
}

static int on_open(const char *path, struct fuse_file_info *info)
{
	(void)info;
	return strcmp(path, NAME) == 0 ? 0 : -ENOENT;
}

static int on_read(const char *path, char *ret, size_t len, off_t offset,
		   struct fuse_file_info *info)
{
	ssize_t done = pread(image, ret, len, offset);

	(void)path;
	(void)info;
	return done < 0 ? -errno : (int)done;
}

static int on_write(const char *path, const char *bytes, size_t len, off_t offset,
		    struct fuse_file_info *info)
{
	ssize_t done = pwrite(image, bytes, len, offset);

	(void)path;
	(void)info;
	if (done < 0)
		return -errno;
	return record(offset, bytes, (size_t)done) < 0 ? -EIO : (int)done;
}

static int on_fsync(const char *path, int only_data, struct fuse_file_info *info)
{
	(void)path;
	(void)only_data;
	(void)info;
	return record(-1, NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
		.getattr = on_getattr,
		.open = on_open,
		.read = on_read,
		.write = on_write,
		.fsync = on_fsync,
	};

	if (argc < 4) {
		fprintf(stderr, "usage: %s IMAGE LOG MOUNTPOINT [FUSE OPTION…]\n", argv[0]);
		return 2;
	}
	image = open(argv[1], O_RDWR | O_CLOEXEC);
	record_fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (image < 0 || record_fd < 0) {
		perror(argv[image < 0 ? 1 : 2]);
		return 1;
	}
	argv[2] = argv[0];
	return fuse_main(argc - 2, argv + 2, &operations, NULL);
}
