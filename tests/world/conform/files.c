/* Operations on files and folders: see player.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tests/world/conform/player.h"

#define BYTES_MOST 9000 /* more than two blocks */

/* ---- descriptors ---- */

/* A new descriptor takes the place of the one in a slot. */
static void keep_fd(struct player *player, int slot, int fd)
{
	if (fd < 0)
		return;
	if (player->fds[slot] >= 0)
		close(player->fds[slot]);
	player->fds[slot] = fd;
}

static int draw_flags(struct player *player)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR };
	static const int more[] = { O_CREAT, O_EXCL,     O_TRUNC,     O_APPEND,
				    O_PATH,  O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK };
	static const int often[] = { 2, 6, 6, 5, 12, 6, 8, 8 };
	int flags = modes[draw(player, 4)] | O_CLOEXEC;

	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (draw(player, (uint64_t)often[i]) == 0)
			flags |= more[i];
	return flags;
}

static void play_open(struct player *player, char *result)
{
	int dir = draw_dirfd(player, result), flags = draw_flags(player), slot = draw_slot(player);
	const char *path = draw_path(player);
	int fd = openat(dir, path, flags, 0666);

	tell(result, " %.20s %#o", path, (unsigned)flags);
	tell_result(result, fd < 0 ? fd : slot);
	keep_fd(player, slot, fd);
}

static void play_close(struct player *player, char *result)
{
	int slot = draw_slot(player);

	tell(result, " #%d", slot);
	tell_result(result, close(player->fds[slot]));
	player->fds[slot] = -1;
}

static void play_dup(struct player *player, char *result)
{
	int from = draw_fd(player, result), slot = draw_slot(player);
	int fd = fcntl(from, F_DUPFD_CLOEXEC, 3);

	tell_result(result, fd < 0 ? fd : slot);
	keep_fd(player, slot, fd);
}

static void play_dup2(struct player *player, char *result)
{
	int from = draw_fd(player, result), to = draw_fd(player, result);
	int fd = to < 0 ? -1 : dup2(from, to);

	tell_result(result, to < 0 ? 0 : fd < 0 ? fd : 0);
}

static void play_pipe(struct player *player, char *result)
{
	int fds[2], in = draw_slot(player), out = draw_slot(player);

	tell(result, " #%d #%d", in, out);
	tell_result(result, pipe2(fds, O_CLOEXEC | O_NONBLOCK));
	keep_fd(player, in, fds[0]);
	keep_fd(player, out, fds[1]);
}

static void play_getfl(struct player *player, char *result)
{
	int fd = draw_fd(player, result), flags = fcntl(fd, F_GETFL);

	/* Which of the other flags are told differs among kernels. */
	tell_result(result, flags < 0 ? flags : flags & (O_ACCMODE | O_APPEND | O_NONBLOCK));
}

static void play_setfl(struct player *player, char *result)
{
	int fd = draw_fd(player, result);
	int flags = (draw(player, 2) ? O_APPEND : 0) | O_NONBLOCK;

	tell_result(result, fcntl(fd, F_SETFL, flags));
}

/* ---- content ---- */

static void fill(struct player *player, char *bytes, size_t len)
{
	char letter = (char)('a' + draw(player, 26));

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(letter + (char)(i % 5));
}

static size_t draw_len(struct player *player)
{
	return draw(player, 3) ? draw(player, 60) : draw(player, BYTES_MOST);
}

static bool is_folder(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static void play_read(struct player *player, char *result)
{
	char bytes[BYTES_MOST];
	int fd = draw_fd(player, result);
	size_t len = draw_len(player);
	ssize_t got;

	/* What waits would wait for ever; a folder says one of two errors, by its offset. */
	if (is_folder(fd) || (fcntl(fd, F_GETFL) >= 0 && !(fcntl(fd, F_GETFL) & O_NONBLOCK) &&
			      lseek(fd, 0, SEEK_CUR) < 0 && errno == ESPIPE))
		return;
	got = read(fd, bytes, len);
	tell_result(result, got);
	if (got > 0)
		tell_bytes(result, bytes, (size_t)got);
}

static void play_write(struct player *player, char *result)
{
	char bytes[BYTES_MOST];
	int fd = draw_fd(player, result);
	size_t len = draw_len(player);

	fill(player, bytes, len);
	tell_result(result, write(fd, bytes, len));
}

static void play_pread(struct player *player, char *result)
{
	char bytes[BYTES_MOST];
	int fd = draw_fd(player, result);
	size_t len = draw_len(player);
	off_t at = (off_t)draw(player, BYTES_MOST) - 20;
	ssize_t got = pread(fd, bytes, len, at);

	tell_result(result, got);
	if (got > 0)
		tell_bytes(result, bytes, (size_t)got);
}

static void play_pwrite(struct player *player, char *result)
{
	char bytes[BYTES_MOST];
	int fd = draw_fd(player, result);
	size_t len = draw_len(player);
	off_t at = (off_t)draw(player, BYTES_MOST) - 20;

	fill(player, bytes, len);
	tell_result(result, pwrite(fd, bytes, len, at));
}

static void play_lseek(struct player *player, char *result)
{
	static const int whences[] = { SEEK_SET, SEEK_CUR, SEEK_END };
	int fd = draw_fd(player, result);
	off_t by = (off_t)draw(player, 6000) - 500;
	int whence = whences[draw(player, 3)];

	if (is_folder(fd)) /* offsets in folders mean nothing */
		return;
	tell_result(result, lseek(fd, by, whence));
}

static void play_truncate(struct player *player, char *result)
{
	int fd = draw_fd(player, result);

	tell_result(result, ftruncate(fd, (off_t)draw(player, BYTES_MOST) - 20));
}

static void play_fallocate(struct player *player, char *result)
{
	int fd = draw_fd(player, result);
	off_t at = (off_t)draw(player, 5000) - 20, len = (off_t)draw(player, 5000) - 20;
	int failed;

	if (is_folder(fd))
		return;
	failed = posix_fallocate(fd, at, len);
	tell(result, " = %s", failed ? strerrorname_np(failed) : "0");
}

static void play_sync(struct player *player, char *result)
{
	int fd = draw_fd(player, result);

	tell_result(result, draw(player, 2) ? fsync(fd) : syncfs(fd));
}

static void play_copy(struct player *player, char *result)
{
	int in = draw_fd(player, result), out = draw_fd(player, result);
	size_t len = draw_len(player);
	bool sends = draw(player, 2);
	struct stat st;

	/* A pipe on either side is nothing that the product has. */
	if ((fstat(in, &st) == 0 && S_ISFIFO(st.st_mode)) ||
	    (fstat(out, &st) == 0 && S_ISFIFO(st.st_mode)) || is_folder(in) || is_folder(out))
		return;
	tell_result(result, sends ? sendfile(out, in, NULL, len)
				  : copy_file_range(in, NULL, out, NULL, len, 0));
}

/* ---- names ---- */

static void play_mkdir(struct player *player, char *result)
{
	int dir = draw_dirfd(player, result);
	const char *path = draw_path(player);

	tell(result, " %.20s", path);
	tell_result(result, mkdirat(dir, path, 0777));
}

static void play_rmdir(struct player *player, char *result)
{
	const char *path = draw_path(player);

	tell(result, " %.20s", path);
	tell_result(result, rmdir(path));
}

static void play_unlink(struct player *player, char *result)
{
	int dir = draw_dirfd(player, result);
	const char *path = draw_path(player);

	tell(result, " %.20s", path);
	tell_result(result, unlinkat(dir, path, 0));
}

static void play_remove(struct player *player, char *result)
{
	const char *path = draw_path(player);

	tell(result, " %.20s", path);
	tell_result(result, remove(path));
}

static void play_rename(struct player *player, char *result)
{
	static const unsigned flags[] = { 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	unsigned flag = flags[draw(player, 4)];
	const char *from = draw_path(player), *to = draw_path(player);

	tell(result, " %.20s %.20s %u", from, to, flag);
	tell_result(result, renameat2(AT_FDCWD, from, AT_FDCWD, to, flag));
}

static void play_link(struct player *player, char *result)
{
	int flags = draw(player, 3) ? 0 : AT_SYMLINK_FOLLOW;
	const char *from = draw_path(player), *to = draw_path(player);

	tell(result, " %.20s %.20s", from, to);
	tell_result(result, linkat(AT_FDCWD, from, AT_FDCWD, to, flags));
}

/* A file without a name gets one. */
static void play_temporary(struct player *player, char *result)
{
	int slot = draw_slot(player), fd;
	const char *path = draw_path(player), *to = draw_path(player);
	char self[64];

	fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	tell(result, " %.20s", path);
	tell_result(result, fd < 0 ? fd : 0);
	if (fd < 0)
		return;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	tell(result, " %.20s", to);
	tell_result(result, linkat(AT_FDCWD, self, AT_FDCWD, to, AT_SYMLINK_FOLLOW));
	keep_fd(player, slot, fd);
}

static void play_symlink(struct player *player, char *result)
{
	const char *target = draw_path(player), *path = draw(player, 2) ? "l" : draw_path(player);

	tell(result, " %.20s %.20s", target, path);
	tell_result(result, symlink(target, path));
}

static void play_chmod(struct player *player, char *result)
{
	static const mode_t modes[] = { 0600, 0644, 0755, 0000, 01777 };
	const char *path = draw_path(player);
	mode_t mode = modes[draw(player, 5)];

	tell(result, " %.20s", path);
	tell_result(result, draw(player, 2) ? chmod(path, mode)
					    : fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW));
}

static void play_umask(struct player *player, char *result)
{
	tell_result(result, umask(draw(player, 2) ? 022 : 077));
}

/* ---- locks ---- */

/* Locks of pipes are nothing that the product has. */
static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static void play_flock(struct player *player, char *result)
{
	static const int kinds[] = { LOCK_SH, LOCK_EX, LOCK_EX, LOCK_UN };
	int fd = draw_fd(player, result), kind = kinds[draw(player, 4)];

	if (is_pipe(fd))
		return;
	tell(result, " %d", kind);
	tell_result(result, flock(fd, kind | LOCK_NB));
}

static struct flock draw_range(struct player *player)
{
	static const short types[] = { F_RDLCK, F_WRLCK, F_WRLCK, F_UNLCK };
	struct flock lock = { .l_type = types[draw(player, 4)], .l_whence = SEEK_SET };

	if (draw(player, 2)) {
		lock.l_start = (off_t)draw(player, 10);
		lock.l_len = (off_t)draw(player, 10);
	}
	return lock;
}

static void tell_lock(char *result, const struct flock *lock)
{
	tell(result, " %d", lock->l_type);
	if (lock->l_type != F_UNLCK)
		tell(result, " %lld %lld%s", (long long)lock->l_start, (long long)lock->l_len,
		     lock->l_pid == -1 ? " -1" : "");
}

static void play_lock(struct player *player, char *result)
{
	int fd = draw_fd(player, result);
	struct flock lock = draw_range(player);
	bool of_file = draw(player, 2);

	if (is_pipe(fd))
		return;
	tell(result, " %d %lld %lld %d", lock.l_type, (long long)lock.l_start,
	     (long long)lock.l_len, of_file);
	tell_result(result, fcntl(fd, of_file ? F_OFD_SETLK : F_SETLK, &lock));
}

static void play_getlock(struct player *player, char *result)
{
	int fd = draw_fd(player, result);
	struct flock lock = { .l_type = draw(player, 2) ? F_WRLCK : F_RDLCK };
	int failed, cmd = draw(player, 2) ? F_OFD_GETLK : F_GETLK;

	if (is_pipe(fd))
		return;
	failed = fcntl(fd, cmd, &lock);
	tell_result(result, failed);
	if (failed == 0)
		tell_lock(result, &lock);
}

const struct operation file_operations[] = {
	{ "open", 30, play_open },
	{ "close", 4, play_close },
	{ "dup", 3, play_dup },
	{ "dup2", 2, play_dup2 },
	{ "pipe", 2, play_pipe },
	{ "getfl", 2, play_getfl },
	{ "setfl", 2, play_setfl },
	{ "read", 8, play_read },
	{ "write", 10, play_write },
	{ "pread", 6, play_pread },
	{ "pwrite", 6, play_pwrite },
	{ "lseek", 4, play_lseek },
	{ "ftruncate", 4, play_truncate },
	{ "fallocate", 3, play_fallocate },
	{ "sync", 1, play_sync },
	{ "copy", 4, play_copy },
	{ "mkdir", 10, play_mkdir },
	{ "rmdir", 4, play_rmdir },
	{ "unlink", 5, play_unlink },
	{ "remove", 3, play_remove },
	{ "rename", 14, play_rename },
	{ "link", 8, play_link },
	{ "tmpfile", 3, play_temporary },
	{ "symlink", 8, play_symlink },
	{ "chmod", 4, play_chmod },
	{ "umask", 1, play_umask },
	{ "flock", 10, play_flock },
	{ "lock", 12, play_lock },
	{ "getlock", 8, play_getlock },
	{ NULL, 0, NULL },
};
