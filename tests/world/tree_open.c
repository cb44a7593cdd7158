/* open(), and what descriptors of files and folders do: see tree_internal.h. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/tree_internal.h"

#define KEPT_FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK | O_PATH | O_DIRECTORY)

struct opened *opened_of(const struct file *file)
{
	return file && file->ops == &inode_ops ? file->data : NULL;
}

int opened_at(int fd, struct file **file, struct opened **ret)
{
	struct file *found = fd_file(fd);

	if (!found)
		return -EBADF;
	if (file)
		*file = found;
	*ret = opened_of(found);
	return 0;
}

int opened_usable(int fd, struct file **file, struct opened **ret)
{
	int failed = opened_at(fd, file, ret);

	return failed == 0 && ((*file)->flags & O_PATH) ? -EBADF : failed;
}

struct file *opened_file(struct inode *inode, struct machine *machine, const char *path, int flags)
{
	static uint64_t count;
	struct opened *opened = calloc(1, sizeof *opened);
	int mode = flags & O_ACCMODE;

	if (!opened || !(opened->path = strdup(path)))
		abort();
	opened->inode = inode;
	opened->machine = machine;
	opened->may_read = !(flags & O_PATH) && mode != O_WRONLY;
	opened->may_write = !(flags & O_PATH) && mode != O_RDONLY;
	opened->number = ++count;
	inode_open(inode);
	return file_new(&inode_ops, flags & KEPT_FLAGS, opened);
}

/* ---- operations of a descriptor ---- */

static int fill_text(struct opened *opened)
{
	free(opened->text);
	opened->text = opened->inode->made->text(opened->inode, self, &opened->text_len);
	opened->has_text = true;
	return opened->text ? 0 : -ESRCH;
}

static ssize_t read_made(struct file *file, struct opened *opened, void *buffer, size_t len)
{
	const struct made_ops *made = opened->inode->made;
	int failed = 0;

	if (made->read)
		return made->read(opened->inode, buffer, len);
	if (!made->text)
		return -EINVAL;
	/* Made when it is first read, and again from the start. */
	if (!opened->has_text || file->offset == 0)
		failed = fill_text(opened);
	if (failed < 0)
		return failed;
	if ((size_t)file->offset >= opened->text_len)
		return 0;
	if (len > opened->text_len - (size_t)file->offset)
		len = opened->text_len - (size_t)file->offset;
	memcpy(buffer, opened->text + file->offset, len);
	file->offset += (int64_t)len;
	return (ssize_t)len;
}

static ssize_t file_read(struct file *file, void *buffer, size_t len)
{
	struct opened *opened = file->data;
	ssize_t got;

	if (!opened->may_read)
		return -EBADF;
	if (S_ISDIR(opened->inode->mode))
		return -EISDIR;
	if (opened->inode->made)
		return read_made(file, opened, buffer, len);
	got = inode_read(opened->inode, file->offset, buffer, len);
	if (got > 0)
		file->offset += got;
	return got;
}

static ssize_t file_write(struct file *file, const void *bytes, size_t len)
{
	struct opened *opened = file->data;
	struct inode *inode = opened->inode;
	ssize_t put;

	if (!opened->may_write)
		return -EBADF;
	if (inode->made)
		return inode->made->write ? inode->made->write(inode, len) : -EIO;
	if (file->flags & O_APPEND)
		file->offset = inode->now.size;
	put = inode_write(inode, opened->machine, file->offset, bytes, len);
	if (put > 0) {
		file->offset += put;
		opened->wrote++;
		world_stir();
	}
	return put;
}

static unsigned file_ready(struct file *file)
{
	(void)file;
	return POLLIN | POLLOUT;
}

static void file_release(struct file *file)
{
	struct opened *opened = file->data;
	struct inode *inode = opened->inode;

	lock_release_file(file);
	/* NFS sends what was written to the server when a file is closed. */
	if (inode->disk->kind == DISK_SHARE && opened->wrote)
		sync_inode(inode);
	free(opened->path);
	free(opened->text);
	free(opened);
	inode->opens--;
	inode_settle(inode);
}

static int file_reopen(struct file *file, int flags, struct file **ret)
{
	struct opened *opened = file->data;

	*ret = opened_file(opened->inode, opened->machine, opened->path, flags);
	return 0;
}

const struct file_ops inode_ops = {
	.kind = "inode",
	.read = file_read,
	.write = file_write,
	.ready = file_ready,
	.release = file_release,
	.reopen = file_reopen,
};

/* ---- open ---- */

static int check_kind(const struct inode *inode, int flags, bool slash)
{
	bool is_folder = S_ISDIR(inode->mode);
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if ((flags & O_DIRECTORY) && !is_folder)
		return -ENOTDIR;
	if (slash && !is_folder)
		return -ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if (S_ISLNK(inode->mode))
		return -ELOOP;
	return is_folder && writes ? -EISDIR : 0;
}

int open_inode(struct walk *walk, struct inode *inode, int flags, bool created, struct file **ret)
{
	struct machine *machine = walk->tree->machine;
	int failed;

	if ((flags & O_CREAT) && !created) {
		if (flags & O_EXCL)
			return -EEXIST;
		if (S_ISDIR(inode->mode))
			return -EISDIR;
	}
	failed = check_kind(inode, flags, walk->slash);
	if (failed < 0)
		return failed;
	if ((flags & O_TRUNC) && !(flags & O_PATH) && S_ISREG(inode->mode) && !inode->made &&
	    !created)
		inode_resize(inode, machine, 0);
	*ret = opened_file(inode, machine, walk->text, flags);
	return 0;
}

/* O_TMPFILE: a file without a name. */
static int open_temporary(struct walk *walk, int flags, mode_t mode, struct file **ret)
{
	struct inode *folder = walk->inode, *made;
	mode_t umask = walk->process ? walk->process->umask : 0;

	if (!S_ISDIR(folder->mode))
		return -ENOTDIR;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EINVAL;
	/* NFS has none: open(2). */
	if (folder->made || folder->disk->kind == DISK_SHARE)
		return -EOPNOTSUPP;
	if (folder->disk->files_free != NEVER_LIMITED && folder->disk->files_free <= 0)
		return disk_full_error(folder->disk);
	made = inode_new(folder->disk, S_IFREG | (mode & 07777 & ~umask), walk->tree->machine);
	made->is_temporary = !(flags & O_EXCL);
	*ret = opened_file(made, walk->tree->machine, walk->text, flags & ~O_DIRECTORY);
	return 0;
}

static int open_new(struct walk *walk, int flags, mode_t mode, struct file **ret)
{
	struct inode *made;
	int failed;

	if (flags & O_DIRECTORY)
		return -EINVAL;
	failed = change_create(walk, S_IFREG | (mode & 07777), &made);
	return failed < 0 ? failed : open_inode(walk, made, flags, true, ret);
}

static int reopen_magic(const struct walk *walk, int flags, struct file **ret)
{
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	return walk->magic->ops->reopen ? walk->magic->ops->reopen(walk->magic, flags, ret)
					: -ENXIO;
}

int tree_open_path(struct process *process, int dirfd, const char *path, int flags, mode_t mode,
		   struct file **ret)
{
	struct walk walk;
	bool creates = (flags & O_CREAT) && !(flags & O_PATH);
	bool temporary = (flags & O_TMPFILE) == O_TMPFILE && !(flags & O_PATH);
	unsigned how = 0;
	int failed;

	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	if ((flags & O_NOFOLLOW) || (creates && (flags & O_EXCL)))
		how |= WALK_NOFOLLOW;
	if (creates) {
		if (flags & O_DIRECTORY && !temporary)
			return -EINVAL;
		failed = walk_at(&walk, process, NULL, NULL, dirfd, path, how | WALK_CREATE);
	} else {
		failed = walk_found(&walk, process, dirfd, path, how);
	}
	if (failed < 0)
		return failed;
	if (walk.magic && !walk.inode)
		return reopen_magic(&walk, flags, ret);
	if (!walk.inode)
		return open_new(&walk, flags, mode, ret);
	if (temporary)
		return open_temporary(&walk, flags, mode, ret);
	return open_inode(&walk, walk.inode, flags, false, ret);
}

/* ---- for posix_spawn() ---- */

int tree_is_folder(struct machine *machine, const char *cwd, const char *path)
{
	struct walk walk;
	int failed = walk_at(&walk, NULL, machine, cwd, AT_FDCWD, path, 0);

	if (failed < 0)
		return failed;
	if (!walk.inode)
		return -ENOENT;
	return S_ISDIR(walk.inode->mode) ? 0 : -ENOTDIR;
}

int tree_executable(struct machine *machine, const char *cwd, const char *path, char *line,
		    size_t size)
{
	struct walk walk;
	int failed = walk_at(&walk, NULL, machine, cwd, AT_FDCWD, path, 0);
	ssize_t len;

	if (failed < 0)
		return failed;
	if (!walk.inode)
		return -ENOENT;
	if (!S_ISREG(walk.inode->mode) || !(walk.inode->mode & 0111))
		return -EACCES;
	len = inode_read(walk.inode, 0, line, size - 1);
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}
