/* Wrappers of calls about names and attributes: see call.h and calls.def. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "tests/world/tree_wraps.h"

#define PIPE_DEVICE makedev(0, 14)

/* ---- attributes ---- */

static int stat_file(struct file *file, struct stat *ret)
{
	struct opened *opened = opened_of(file);

	if (opened) {
		inode_stat(opened->inode, ret);
		return 0;
	}
	memset(ret, 0, sizeof *ret);
	ret->st_dev = PIPE_DEVICE;
	ret->st_ino = file->number;
	ret->st_mode = (strcmp(file->ops->kind, "pipe") == 0 ? S_IFIFO : 0) | 0600;
	ret->st_nlink = 1;
	ret->st_blksize = 4096;
	return 0;
}

static int stat_at(int dirfd, const char *path, int flags, struct stat *ret)
{
	struct walk walk;
	unsigned how = (flags & AT_SYMLINK_NOFOLLOW ? (unsigned)WALK_NOFOLLOW : 0U) |
		       (flags & AT_EMPTY_PATH ? (unsigned)WALK_EMPTY : 0U);
	int failed;

	if ((flags & AT_EMPTY_PATH) && !*path && dirfd != AT_FDCWD) {
		struct file *file = fd_file(dirfd);

		return file ? stat_file(file, ret) : -EBADF;
	}
	failed = walk_found(&walk, self, dirfd, path, how);
	if (failed < 0)
		return failed;
	if (!walk.inode)
		return stat_file(walk.magic, ret);
	inode_stat(walk.inode, ret);
	return 0;
}

int __wrap_stat(const char *restrict path, struct stat *restrict ret)
{
	struct call call = call_enter(CALL_stat, call_path(AT_FDCWD, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, stat_at(AT_FDCWD, path, 0, ret));
}

int __wrap_lstat(const char *restrict path, struct stat *restrict ret)
{
	struct call call = call_enter(CALL_lstat, call_path(AT_FDCWD, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, stat_at(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, ret));
}

int __wrap_fstat(int fd, struct stat *ret)
{
	struct call call = call_enter(CALL_fstat, NULL, fd);
	struct file *file = fd_file(fd);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, file ? stat_file(file, ret) : -EBADF);
}

int __wrap_fstatat(int dirfd, const char *restrict path, struct stat *restrict ret, int flags)
{
	struct call call = call_enter(CALL_fstatat, call_path(dirfd, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT))
		return (int)call_return(&call, -EINVAL);
	return (int)call_return(&call, stat_at(dirfd, path, flags, ret));
}

static struct statx_timestamp stamp(struct timespec at)
{
	return (struct statx_timestamp){ .tv_sec = at.tv_sec, .tv_nsec = (uint32_t)at.tv_nsec };
}

static int statx_at(int dirfd, const char *path, int flags, struct statx *ret)
{
	struct stat st;
	struct walk walk;
	struct inode *inode = NULL;
	int failed = stat_at(dirfd, path, flags, &st);

	if (failed < 0)
		return failed;
	if (walk_found(&walk, self, dirfd, path,
		       WALK_EMPTY | (flags & AT_SYMLINK_NOFOLLOW ? (unsigned)WALK_NOFOLLOW : 0U)) ==
	    0)
		inode = walk.inode;
	memset(ret, 0, sizeof *ret);
	ret->stx_mask = STATX_BASIC_STATS;
	ret->stx_blksize = (uint32_t)st.st_blksize;
	ret->stx_nlink = (uint32_t)st.st_nlink;
	ret->stx_mode = (uint16_t)st.st_mode;
	ret->stx_ino = st.st_ino;
	ret->stx_size = (uint64_t)st.st_size;
	ret->stx_blocks = (uint64_t)st.st_blocks;
	ret->stx_dev_major = major(st.st_dev);
	ret->stx_dev_minor = minor(st.st_dev);
	ret->stx_atime = stamp(st.st_atim);
	ret->stx_mtime = stamp(st.st_mtim);
	ret->stx_ctime = stamp(st.st_ctim);
	if (inode && inode->disk->kind != DISK_SHARE) { /* NFS tells no time of birth */
		int64_t birth = inode->times.birth;

		ret->stx_mask |= STATX_BTIME;
		ret->stx_btime = stamp((struct timespec){ birth / WORLD_S, birth % WORLD_S });
	}
	return 0;
}

int __wrap_statx(int dirfd, const char *restrict path, int flags, unsigned mask,
		 struct statx *restrict ret)
{
	struct call call = call_enter(CALL_statx, call_path(dirfd, path), -1);

	(void)mask;
	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, statx_at(dirfd, path, flags, ret));
}

static int statfs_of(const char *path, struct statfs *ret)
{
	static const int64_t whole = INT64_C(1) << 40;
	struct walk walk;
	const struct disk *disk;
	int failed = walk_found(&walk, self, AT_FDCWD, path, 0);
	int64_t left;

	if (failed < 0)
		return failed;
	memset(ret, 0, sizeof *ret);
	disk = walk.inode ? walk.inode->disk : NULL;
	if (!disk)
		return -ENOSYS;
	left = disk->bytes_free == NEVER_LIMITED || disk->quota ? whole / 2 : disk->bytes_free;
	ret->f_type = disk->tree                  ? 0x9fa0
		      : disk->kind == DISK_SHARE  ? 0x6969
		      : disk->kind == DISK_MEMORY ? 0x01021994
						  : 0xEF53;
	ret->f_bsize = ret->f_frsize = BLOCK_BYTES;
	ret->f_blocks = disk->tree ? 0 : (fsblkcnt_t)(whole / BLOCK_BYTES);
	ret->f_bfree = ret->f_bavail = disk->tree ? 0 : (fsblkcnt_t)(left / BLOCK_BYTES);
	ret->f_files = (fsfilcnt_t)1 << 26;
	ret->f_ffree = disk->files_free == NEVER_LIMITED || disk->quota
			       ? (fsfilcnt_t)1 << 25
			       : (fsfilcnt_t)disk->files_free;
	ret->f_namelen = NAME_MAX;
	return 0;
}

int __wrap_statfs(const char *path, struct statfs *ret)
{
	struct call call = call_enter(CALL_statfs, call_path(AT_FDCWD, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, statfs_of(path, ret));
}

int __wrap_statvfs(const char *restrict path, struct statvfs *restrict ret)
{
	struct call call = call_enter(CALL_statvfs, call_path(AT_FDCWD, path), -1);
	struct statfs fs;
	int failed;

	if (REFUSED(call))
		return call_fail(&call);
	failed = statfs_of(path, &fs);
	if (failed == 0)
		*ret = (struct statvfs){ .f_bsize = (unsigned long)fs.f_bsize,
					 .f_frsize = (unsigned long)fs.f_frsize,
					 .f_blocks = fs.f_blocks,
					 .f_bfree = fs.f_bfree,
					 .f_bavail = fs.f_bavail,
					 .f_files = fs.f_files,
					 .f_ffree = fs.f_ffree,
					 .f_favail = fs.f_ffree,
					 .f_namemax = NAME_MAX };
	return (int)call_return(&call, failed);
}

/* Root may read and write all, and run what anybody may run. */
static int access_at(int dirfd, const char *path, int mode, int flags)
{
	struct walk walk;
	int failed;

	if ((mode & ~(R_OK | W_OK | X_OK)) ||
	    (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
		return -EINVAL;
	failed = walk_found(&walk, self, dirfd, path,
			    flags & AT_SYMLINK_NOFOLLOW ? (unsigned)WALK_NOFOLLOW : 0U);
	if (failed < 0)
		return failed;
	if ((mode & X_OK) && walk.inode && S_ISREG(walk.inode->mode) && !(walk.inode->mode & 0111))
		return -EACCES;
	return 0;
}

int __wrap_access(const char *path, int mode)
{
	struct call call = call_enter(CALL_access, call_path(AT_FDCWD, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, access_at(AT_FDCWD, path, mode, 0));
}

int __wrap_faccessat(int dirfd, const char *path, int mode, int flags)
{
	struct call call = call_enter(CALL_faccessat, call_path(dirfd, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, access_at(dirfd, path, mode, flags));
}

static int set_mode(struct inode *inode, mode_t mode)
{
	if (inode->made)
		return -EPERM;
	inode_touch(inode, self->machine, false);
	inode->mode = (inode->mode & S_IFMT) | (mode & 07777);
	return 0;
}

static int chmod_at(int dirfd, const char *path, mode_t mode, int flags)
{
	struct walk walk;
	int failed;

	if (flags & ~AT_SYMLINK_NOFOLLOW)
		return -EINVAL;
	failed = walk_found(&walk, self, dirfd, path,
			    flags & AT_SYMLINK_NOFOLLOW ? (unsigned)WALK_NOFOLLOW : 0U);
	if (failed < 0)
		return failed;
	if (walk.inode && S_ISLNK(walk.inode->mode))
		return -EOPNOTSUPP;
	return walk.inode ? set_mode(walk.inode, mode) : 0;
}

int __wrap_chmod(const char *path, mode_t mode)
{
	struct call call = call_enter(CALL_chmod, call_path(AT_FDCWD, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, chmod_at(AT_FDCWD, path, mode, 0));
}

int __wrap_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
	struct call call = call_enter(CALL_fchmodat, call_path(dirfd, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, chmod_at(dirfd, path, mode, flags));
}

int __wrap_fchmod(int fd, mode_t mode)
{
	struct call call = call_enter(CALL_fchmod, NULL, fd);
	struct file *file;
	struct opened *opened;
	int failed;

	if (REFUSED(call))
		return call_fail(&call);
	failed = opened_usable(fd, &file, &opened);
	if (failed == 0 && opened)
		failed = set_mode(opened->inode, mode);
	return (int)call_return(&call, failed);
}

static void set_time(int64_t *time, const struct timespec *to, int64_t now)
{
	if (!to || to->tv_nsec == UTIME_NOW)
		*time = now;
	else if (to->tv_nsec != UTIME_OMIT)
		*time = to->tv_sec * WORLD_S + to->tv_nsec;
}

static int set_times(int fd, const struct timespec times[2])
{
	struct file *file;
	struct opened *opened;
	int failed = opened_at(fd, &file, &opened);
	int64_t now;

	if (failed < 0 || !opened)
		return failed;
	if (file->flags & O_PATH)
		return -EBADF;
	inode_touch(opened->inode, self->machine, false);
	now = opened->inode->times.change;
	set_time(&opened->inode->times.access, times ? &times[0] : NULL, now);
	set_time(&opened->inode->times.modify, times ? &times[1] : NULL, now);
	return 0;
}

int __wrap_futimens(int fd, const struct timespec times[2])
{
	struct call call = call_enter(CALL_futimens, NULL, fd);

	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, set_times(fd, times));
}

/* ---- what a path leads to ---- */

static ssize_t read_link(int dirfd, const char *path, char *text, size_t size)
{
	struct walk walk;
	int failed;

	if (size == 0)
		return -EINVAL;
	failed = walk_found(&walk, self, dirfd, path, WALK_NOFOLLOW | WALK_EMPTY);
	if (failed < 0)
		return failed;
	if (!walk.inode || !S_ISLNK(walk.inode->mode))
		return *path ? -EINVAL : -ENOENT;
	if (walk.inode->made)
		return walk.inode->made->target(walk.inode, self, text, size);
	if (strlen(walk.inode->target) < size)
		size = strlen(walk.inode->target);
	memcpy(text, walk.inode->target, size);
	return (ssize_t)size;
}

ssize_t __wrap_readlink(const char *restrict path, char *restrict text, size_t size)
{
	struct call call = call_enter(CALL_readlink, call_path(AT_FDCWD, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return call_return(&call, *path ? read_link(AT_FDCWD, path, text, size) : -ENOENT);
}

ssize_t __wrap_readlinkat(int dirfd, const char *restrict path, char *restrict text, size_t size)
{
	struct call call = call_enter(CALL_readlinkat, call_path(dirfd, path), -1);

	if (REFUSED(call))
		return call_fail(&call);
	return call_return(&call, read_link(dirfd, path, text, size));
}

static char *give_text(const struct call *call, int failed, const char *text, char *to, size_t size)
{
	if (failed == 0 && to && strlen(text) >= size)
		failed = -ERANGE;
	if (call_return(call, failed) < 0)
		return NULL;
	if (!to)
		return strdup(text);
	return strcpy(to, text); /* it fits */
}

char *__wrap_realpath(const char *restrict path, char *restrict to)
{
	struct call call = call_enter(CALL_realpath, call_path(AT_FDCWD, path), -1);
	struct walk walk;
	int failed;

	if (REFUSED(call)) {
		(void)call_fail(&call);
		return NULL;
	}
	failed = path ? walk_found(&walk, self, AT_FDCWD, path, 0) : -EINVAL;
	return give_text(&call, failed, walk.text, to, PATH_MAX);
}

char *__wrap_getcwd(char *to, size_t size)
{
	struct call call = call_enter(CALL_getcwd, NULL, -1);
	struct walk walk;
	int failed;

	if (REFUSED(call)) {
		(void)call_fail(&call);
		return NULL;
	}
	failed = walk_found(&walk, self, AT_FDCWD, ".", 0);
	return give_text(&call, failed, self->cwd, to, size);
}

/* ---- changes of names ---- */

#define WRAPS_CHANGE(name, path, change, ...)                                                      \
	int __wrap_##name(__VA_ARGS__)                                                             \
	{                                                                                          \
		struct call call = call_enter(CALL_##name, path, -1);                              \
                                                                                                   \
		if (REFUSED(call))                                                                 \
			return call_fail(&call);                                                   \
		return (int)call_return(&call, change);                                            \
	}

WRAPS_CHANGE(mkdir, call_path(AT_FDCWD, path), change_mkdir(self, AT_FDCWD, path, mode),
	     const char *path, mode_t mode)
WRAPS_CHANGE(mkdirat, call_path(fd, path), change_mkdir(self, fd, path, mode), int fd,
	     const char *path, mode_t mode)
WRAPS_CHANGE(rmdir, call_path(AT_FDCWD, path), change_rmdir(self, AT_FDCWD, path), const char *path)
WRAPS_CHANGE(unlink, call_path(AT_FDCWD, path), change_unlink(self, AT_FDCWD, path),
	     const char *path)
WRAPS_CHANGE(symlink, call_path(AT_FDCWD, path), change_symlink(self, target, AT_FDCWD, path),
	     const char *target, const char *path)
WRAPS_CHANGE(symlinkat, call_path(fd, path), change_symlink(self, target, fd, path),
	     const char *target, int fd, const char *path)
WRAPS_CHANGE(linkat, call_path(to_fd, to), change_link(self, from_fd, from, to_fd, to, flags),
	     int from_fd, const char *from, int to_fd, const char *to, int flags)
WRAPS_CHANGE(rename, call_path(AT_FDCWD, to), change_rename(self, AT_FDCWD, from, AT_FDCWD, to, 0),
	     const char *from, const char *to)
WRAPS_CHANGE(renameat, call_path(to_fd, to), change_rename(self, from_fd, from, to_fd, to, 0),
	     int from_fd, const char *from, int to_fd, const char *to)
WRAPS_CHANGE(renameat2, call_path(to_fd, to), change_rename(self, from_fd, from, to_fd, to, flags),
	     int from_fd, const char *from, int to_fd, const char *to, unsigned flags)

static int unlink_at(int fd, const char *path, int flags)
{
	if (flags & ~AT_REMOVEDIR)
		return -EINVAL;
	return flags ? change_rmdir(self, fd, path) : change_unlink(self, fd, path);
}

WRAPS_CHANGE(unlinkat, call_path(fd, path), unlink_at(fd, path, flags), int fd, const char *path,
	     int flags)

static int remove_any(const char *path)
{
	int failed = change_unlink(self, AT_FDCWD, path);

	return failed == -EISDIR ? change_rmdir(self, AT_FDCWD, path) : failed;
}

WRAPS_CHANGE(remove, call_path(AT_FDCWD, path), remove_any(path), const char *path)

/* ---- open ---- */

/* A description as a new descriptor; the call may say that there is none. */
int wrap_opened(const struct call *call, int failed, struct file *file, int flags)
{
	int fd = failed < 0 ? failed : fd_install(file, 0, flags & O_CLOEXEC);

	if (fd >= 0 && call->error)
		(void)fd_close(self, fd); /* the answer is lost, and so is the descriptor */
	return (int)call_return(call, fd);
}

static int open_at(enum call_id id, int dirfd, const char *path, int flags, mode_t mode)
{
	struct call call = call_enter(id, call_path(dirfd, path), -1);
	struct file *file = NULL;
	int failed;

	if (REFUSED(call))
		return call_fail(&call);
	failed = tree_open_path(self, dirfd, path, flags, mode, &file);
	return wrap_opened(&call, failed, file, flags);
}

static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (has_mode(flags))
		mode = va_arg(args, mode_t);
	va_end(args);
	return open_at(CALL_open, AT_FDCWD, path, flags, mode);
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (has_mode(flags))
		mode = va_arg(args, mode_t);
	va_end(args);
	return open_at(CALL_openat, dirfd, path, flags, mode);
}

/* Draws names until one is free; the last six characters of the template are X. */
static int draw_names(char *template, int (*make)(const char *path, void *arg), void *arg)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = strlen(template);
	int failed = -EEXIST;

	if (len < 6 || strcmp(template + len - 6, "XXXXXX") != 0)
		return -EINVAL;
	for (int tries = 0; tries < 100 && failed == -EEXIST; tries++) {
		for (size_t i = len - 6; i < len; i++)
			template[i] = letters[chance_below(62)];
		failed = make(template, arg);
	}
	return failed;
}

struct temporary {
	int flags;
	struct file *file;
};

static int make_file(const char *path, void *arg)
{
	struct temporary *temporary = arg;

	return tree_open_path(self, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | temporary->flags,
			      0600, &temporary->file);
}

static int make_folder(const char *path, void *arg)
{
	(void)arg;
	return change_mkdir(self, AT_FDCWD, path, 0700);
}

int __wrap_mkostemp(char *template, int flags)
{
	struct call call = call_enter(CALL_mkostemp, call_path(AT_FDCWD, template), -1);
	struct temporary temporary = { .flags = flags };
	int failed;

	if (REFUSED(call))
		return call_fail(&call);
	failed = draw_names(template, make_file, &temporary);
	return wrap_opened(&call, failed, temporary.file, flags);
}

char *__wrap_mkdtemp(char *template)
{
	struct call call = call_enter(CALL_mkdtemp, call_path(AT_FDCWD, template), -1);

	if (REFUSED(call)) {
		(void)call_fail(&call);
		return NULL;
	}
	return call_return(&call, draw_names(template, make_folder, NULL)) < 0 ? NULL : template;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	static struct disk *memory;
	struct call call = call_enter(CALL_memfd_create, NULL, -1);
	char path[NAME_MAX + 16];
	struct inode *inode;
	struct file *file;

	if (REFUSED(call))
		return call_fail(&call);
	if (!memory)
		memory = disk_new(DISK_MEMORY, "memfd");
	inode = inode_new(memory, S_IFREG | 0777, self->machine);
	snprintf(path, sizeof path, "/memfd:%s", name);
	file = opened_file(inode, self->machine, path, O_RDWR);
	return wrap_opened(&call, 0, file, flags & 1U ? O_CLOEXEC : 0); /* MFD_CLOEXEC */
}
