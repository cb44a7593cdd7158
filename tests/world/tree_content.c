/* Wrappers of calls about the content of files: see call.h and calls.def. What waits (read, write)
 * is in file.c. */
#include <errno.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <string.h>

#include "tests/world/tree_wraps.h"

#define SYNC_BYTES_COST 8 /* bytes that reach a disk take so many times as long as in memory */
#define SHARE_COST      8
#define CHUNK           65536
#define COPY_MOST       0x7ffff000 /* MAX_RW_COUNT */

/* Spends the time that the bytes of this inode take. */
void call_spend_bytes(const struct inode *inode, size_t len)
{
	call_move(inode && inode->disk->kind == DISK_SHARE ? len * SHARE_COST : len);
}

/* An inode with bytes, open for what is asked; or a negative errno. */
static int opened_for(int fd, bool write, int of_pipe, struct file **file, struct opened **ret)
{
	int failed = opened_at(fd, file, ret);

	if (failed < 0)
		return failed;
	if (!*ret)
		return of_pipe;
	if (write ? !(*ret)->may_write : !(*ret)->may_read)
		return -EBADF;
	return 0;
}

static ssize_t read_at(int fd, void *buffer, size_t len, off_t at)
{
	struct file *file;
	struct opened *opened;
	int failed = opened_for(fd, false, -ESPIPE, &file, &opened);

	if (at < 0)
		return -EINVAL;
	if (failed < 0)
		return failed;
	if (S_ISDIR(opened->inode->mode))
		return -EISDIR;
	if (opened->inode->made) {
		int64_t before = file->offset;
		ssize_t got;

		file->offset = at;
		got = file->ops->read(file, buffer, len);
		file->offset = before;
		return got;
	}
	return inode_read(opened->inode, at, buffer, len);
}

ssize_t __wrap_pread(int fd, void *buffer, size_t len, off_t at)
{
	struct call call = call_enter(CALL_pread, NULL, fd);
	struct opened *opened;

	if (REFUSED(call))
		return call_fail(&call);
	if (call.share && call.share < len)
		len = call.share;
	if (opened_at(fd, NULL, &opened) == 0 && opened) {
		int64_t left = opened->inode->now.size - at;

		call_spend_bytes(opened->inode, left < 0              ? 0
						: left < (int64_t)len ? (size_t)left
								      : len);
	}
	return call_return(&call, read_at(fd, buffer, len, at));
}

static ssize_t write_at(int fd, const void *bytes, size_t len, off_t at)
{
	struct file *file;
	struct opened *opened;
	ssize_t put;
	int failed = opened_for(fd, true, -ESPIPE, &file, &opened);

	if (at < 0)
		return -EINVAL;
	if (failed < 0)
		return failed;
	if (opened->inode->made)
		return file->ops->write(file, bytes, len);
	if (file->flags & O_APPEND) /* pwrite(2), BUGS */
		at = opened->inode->now.size;
	put = inode_write(opened->inode, self->machine, at, bytes, len);
	opened->wrote++;
	world_stir();
	return put;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	struct call call = call_enter(CALL_pwrite, NULL, fd);
	struct opened *opened;

	if (REFUSED(call))
		return call_fail(&call);
	if (call.share && call.share < len)
		len = call.share;
	if (opened_at(fd, NULL, &opened) == 0 && opened)
		call_spend_bytes(opened->inode, len);
	return call_return(&call, write_at(fd, bytes, len, at));
}

static off_t seek(int fd, off_t by, int whence)
{
	struct file *file;
	struct opened *opened;
	int failed = opened_at(fd, &file, &opened);
	int64_t to = by;

	if (failed < 0)
		return failed;
	if (!opened)
		return -ESPIPE;
	if (file->flags & O_PATH)
		return -EBADF;
	if (whence == SEEK_CUR)
		to += file->offset;
	else if (whence == SEEK_END)
		to += opened->inode->now.size;
	else if (whence != SEEK_SET)
		return -EINVAL;
	if (to < 0)
		return -EINVAL;
	file->offset = to;
	return to;
}

off_t __wrap_lseek(int fd, off_t by, int whence)
{
	struct call call = call_enter(CALL_lseek, NULL, fd);

	return call_return(&call, seek(fd, by, whence));
}

static int cut_at(int fd, off_t size)
{
	struct file *file;
	struct opened *opened;
	int failed = opened_at(fd, &file, &opened);

	if (size < 0)
		return -EINVAL;
	if (failed == 0 && opened && (file->flags & O_PATH))
		failed = -EBADF;
	if (failed < 0)
		return failed;
	if (!opened || !opened->may_write || !S_ISREG(opened->inode->mode))
		return -EINVAL;
	failed = inode_resize(opened->inode, self->machine, size);
	opened->wrote++;
	world_stir();
	return failed;
}

int __wrap_ftruncate(int fd, off_t size)
{
	struct call call = call_enter(CALL_ftruncate, NULL, fd);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, cut_at(fd, size));
}

static int allocate(int fd, off_t at, off_t len)
{
	struct file *file;
	struct opened *opened;
	int failed = opened_usable(fd, &file, &opened);

	if (failed < 0)
		return failed;
	if (at < 0 || len <= 0)
		return -EINVAL;
	if (opened ? !opened->may_write : (file->flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (!opened)
		return -ESPIPE;
	opened->wrote++;
	return inode_allocate(opened->inode, self->machine, at, len);
}

/* Returns the error, and leaves errno alone: posix_fallocate(3). */
int __wrap_posix_fallocate(int fd, off_t at, off_t len)
{
	struct call call = call_enter(CALL_posix_fallocate, NULL, fd);
	int failed;

	if (REFUSED(call))
		return call.error;
	failed = allocate(fd, at, len);
	return call.error ? call.error : -failed;
}

/* ---- to the disk ---- */

/* Bytes take their time before they are there. */
static void spend_sync(const struct inode *inode, int64_t bytes)
{
	call_spend_bytes(inode, (size_t)bytes * SYNC_BYTES_COST);
}

static int sync_fd(int fd)
{
	struct file *file;
	struct opened *opened;
	int failed = opened_usable(fd, &file, &opened);

	if (failed < 0)
		return failed;
	if (!opened || opened->inode->made)
		return -EINVAL;
	if (S_ISDIR(opened->inode->mode) && opened->inode->disk->refuses_folder_sync)
		return -EINVAL;
	spend_sync(opened->inode, sync_dirty(opened->inode));
	(void)sync_inode(opened->inode);
	opened->wrote = 0;
	return 0;
}

int __wrap_fsync(int fd)
{
	struct call call = call_enter(CALL_fsync, NULL, fd);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, sync_fd(fd));
}

int __wrap_syncfs(int fd)
{
	struct call call = call_enter(CALL_syncfs, NULL, fd);
	struct file *file;
	struct opened *opened;
	int failed;

	if (REFUSED(call))
		return call_fail(&call);
	failed = opened_usable(fd, &file, &opened);
	if (failed == 0 && opened)
		spend_sync(opened->inode, sync_disk(opened->inode->disk));
	return (int)call_return(&call, failed);
}

/* Says nothing of what is on the disk afterwards: sync_file_range(2), WARNINGS. */
int __wrap_sync_file_range(int fd, off_t at, off_t len, unsigned flags)
{
	struct call call = call_enter(CALL_sync_file_range, NULL, fd);
	struct file *file;
	struct opened *opened;
	int failed;

	if (REFUSED(call))
		return call_fail(&call);
	failed = opened_at(fd, &file, &opened);
	if (failed == 0 && (flags & ~7U || at < 0 || len < 0))
		failed = -EINVAL;
	if (failed == 0 && !opened)
		failed = -ESPIPE;
	return (int)call_return(&call, failed);
}

/* ---- copies ---- */

/* Copies through memory, at most as much as one call would. */
static ssize_t copy(struct opened *from, int64_t at, struct inode *to, int64_t to_at, size_t len)
{
	uint8_t bytes[CHUNK];
	size_t done = 0;

	while (done < len) {
		size_t part = len - done < CHUNK ? len - done : CHUNK;
		ssize_t got = inode_read(from->inode, at + (int64_t)done, bytes, part), put;

		if (got <= 0)
			return done > 0 ? (ssize_t)done : got;
		put = inode_write(to, self->machine, to_at + (int64_t)done, bytes, (size_t)got);
		if (put < 0)
			return done > 0 ? (ssize_t)done : put;
		done += (size_t)put;
		if (put < got)
			break;
	}
	return (ssize_t)done;
}

static size_t bytes_left(const struct opened *from, int64_t at, size_t len)
{
	int64_t left = from->inode->now.size - at;

	return left <= 0 ? 0 : left < (int64_t)len ? (size_t)left : len;
}

static int check_copy(const struct file *out_file, const struct opened *from,
		      const struct opened *to)
{
	if (S_ISDIR(from->inode->mode) || S_ISDIR(to->inode->mode))
		return -EISDIR;
	if (!S_ISREG(from->inode->mode) || !S_ISREG(to->inode->mode))
		return -EINVAL;
	if (!from->may_read || !to->may_write)
		return -EBADF;
	return out_file->flags & O_APPEND ? -EBADF : 0;
}

static ssize_t copy_range(int in, off_t *in_at, int out, off_t *out_at, size_t len)
{
	struct file *in_file, *out_file;
	struct opened *from, *to;
	int failed = opened_at(in, &in_file, &from);
	int64_t at, to_at;
	ssize_t done;

	if (failed == 0)
		failed = opened_at(out, &out_file, &to);
	if (failed == 0 && (!from || !to))
		failed = -EINVAL;
	if (failed == 0)
		failed = check_copy(out_file, from, to);
	if (failed < 0)
		return failed;
	if (from->inode->disk != to->inode->disk)
		return -EXDEV;
	at = in_at ? *in_at : in_file->offset;
	to_at = out_at ? *out_at : out_file->offset;
	len = bytes_left(from, at, len < COPY_MOST ? len : COPY_MOST);
	if (from->inode == to->inode && at < to_at + (int64_t)len && to_at < at + (int64_t)len)
		return -EINVAL;
	call_spend_bytes(from->inode, len);
	done = copy(from, at, to->inode, to_at, len);
	if (done > 0) {
		*(in_at ? in_at : &in_file->offset) = at + done;
		*(out_at ? out_at : &out_file->offset) = to_at + done;
		to->wrote++;
		world_stir();
	}
	return done;
}

ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len,
			       unsigned flags)
{
	struct call call = call_enter(CALL_copy_file_range, NULL, out);

	if (REFUSED(call))
		return call_fail(&call);
	if (call.share && call.share < len)
		len = call.share;
	return call_return(&call, flags ? -EINVAL : copy_range(in, in_at, out, out_at, len));
}

static ssize_t send_file(int out, int in, off_t *in_at, size_t len)
{
	struct file *in_file, *out_file = fd_file(out);
	struct opened *from, *to = opened_of(out_file);
	int failed = opened_at(in, &in_file, &from);
	int64_t at;
	ssize_t done;

	if (failed < 0 || !out_file)
		return -EBADF;
	if (!from)
		return in_at ? -ESPIPE : -EINVAL;
	if (!from->may_read || (to && !to->may_write))
		return -EBADF;
	if (!to || (out_file->flags & O_APPEND))
		return -EINVAL; /* nothing here sends to a pipe */
	at = in_at ? *in_at : in_file->offset;
	len = bytes_left(from, at, len < COPY_MOST ? len : COPY_MOST);
	call_spend_bytes(from->inode, len);
	done = copy(from, at, to->inode, out_file->offset, len);
	if (done > 0) {
		*(in_at ? in_at : &in_file->offset) = at + done;
		out_file->offset += done;
		to->wrote++;
		world_stir();
	}
	return done;
}

ssize_t __wrap_sendfile(int out, int in, off_t *in_at, size_t len)
{
	struct call call = call_enter(CALL_sendfile, NULL, out);

	if (REFUSED(call))
		return call_fail(&call);
	if (call.share && call.share < len)
		len = call.share;
	return call_return(&call, send_file(out, in, in_at, len));
}

static int clone_file(int out, int in)
{
	struct file *in_file, *out_file;
	struct opened *from, *to;
	int failed = opened_at(in, &in_file, &from);

	if (failed == 0)
		failed = opened_at(out, &out_file, &to);
	if (failed == 0 && (!from || !to))
		failed = -EINVAL;
	if (failed < 0)
		return failed;
	if (from->inode->disk != to->inode->disk)
		return -EXDEV;
	if (!from->inode->disk->clones)
		return -EOPNOTSUPP;
	if (!from->may_read || !to->may_write)
		return -EBADF;
	inode_touch(to->inode, self->machine, true);
	content_copy(&to->inode->now, &from->inode->now);
	world_stir();
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct call call = call_enter(CALL_ioctl, NULL, fd);
	int in = -1;
	va_list args;

	if (REFUSED(call))
		return call_fail(&call);
	va_start(args, request);
	if (request == FICLONE)
		in = va_arg(args, int);
	va_end(args);
	if (!fd_file(fd))
		return (int)call_return(&call, -EBADF);
	return (int)call_return(&call, request == FICLONE ? clone_file(fd, in) : -ENOTTY);
}

int __wrap_flock(int fd, int operation)
{
	struct call call = call_enter(CALL_flock, NULL, fd);
	struct file *file = fd_file(fd);

	if (REFUSED(call))
		return call_fail(&call);
	if (file && (file->flags & O_PATH))
		file = NULL;
	return (int)call_return(&call, file ? lock_flock(file, operation) : -EBADF);
}
