/*
 * SQLite in the world: see sqlite.h. What it calls by a table (xSetSystemCall) and through its VFS
 * leads to the wrappers; fdatasync(), which os_unix.c calls by its name, is defined here, before
 * that of the C library. SQLite's own state is one for the whole program, though each process of
 * the world would have its own: it holds open files by device and inode, so each process is told
 * devices of its own, and no lock is ever shared by accident. It takes no mutex, since a process
 * that is killed would keep it.
 *
 * Sources: sqlite.org/c3ref/vfs.html; os_unix.c of 3.40.1 for what it calls by which way.
 */
#include "tests/world/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"
#include "tests/world/tree_wraps.h"

CALL_WRAPS(fcntl);
CALL_WRAPS(geteuid);
CALL_WRAPS(fchown);
CALL_WRAPS(nanosleep);
CALL_WRAPS(clock_gettime);

/* Julian day of 1970-01-01, in ms. */
#define EPOCH_JULIAN_MS INT64_C(210866760000000)

/* The byte of "-shm" whose lock a writer holds: UNIX_SHM_BASE + WAL_WRITE_LOCK. */
#define WRITER_BYTE 120

static sqlite3_vfs vfs;
static int64_t held_until_ns; /* another program writes to all databases until then */

/* ---- calls ---- */

static int own_device(int failed, struct stat *ret)
{
	if (failed == 0)
		ret->st_dev = (dev_t)self->number << 32 | ret->st_dev;
	return failed;
}

static int call_stat(const char *path, struct stat *ret)
{
	return own_device(__wrap_stat(path, ret), ret);
}

static int call_fstat(int fd, struct stat *ret)
{
	return own_device(__wrap_fstat(fd, ret), ret);
}

/* All files are owned by the one user there is. */
int __wrap_fchown(int fd, uid_t owner, gid_t group)
{
	struct call call = call_enter(CALL_fchown, NULL, fd);

	(void)owner, (void)group;
	if (REFUSED(call))
		return call_fail(&call);
	return (int)call_return(&call, fd_file(fd) ? 0 : -EBADF);
}

static void *call_mmap(void *near, size_t len, int protection, int flags, int fd, off_t at)
{
	struct call call = call_enter(CALL_sqlite_mmap, NULL, fd);
	struct file *file = fd_file(fd);
	void *mapped = MAP_FAILED;

	(void)near, (void)protection, (void)flags;
	if (call.error) {
		(void)call_fail(&call);
		return MAP_FAILED;
	}
	(void)call_return(&call, file ? map_file(file, len, at, &mapped) : -EBADF);
	return mapped;
}

static int call_munmap(void *at, size_t len)
{
	(void)len;
	map_release(at);
	return 0;
}

/* Only for files that are read through mappings, which the product does not ask for. */
static void *call_mremap(void *at, size_t len, size_t new_len, int flags)
{
	(void)at, (void)len, (void)new_len, (void)flags;
	errno = ENOMEM;
	return MAP_FAILED;
}

static bool is_writer_lock(int fd, int cmd, const struct flock *lock)
{
	const char *path = tree_path(fd_file(fd));
	size_t len = path ? strlen(path) : 0;

	return cmd == F_SETLK && lock->l_type == F_WRLCK && lock->l_start == WRITER_BYTE &&
	       len > 4 && strcmp(path + len - 4, "-shm") == 0;
}

static int call_fcntl(int fd, int cmd, void *arg)
{
	if (now_ns < held_until_ns && is_writer_lock(fd, cmd, arg)) {
		struct call call = call_enter(CALL_fcntl, NULL, fd);

		return (int)call_return(&call, -EAGAIN);
	}
	return __wrap_fcntl(fd, cmd, arg);
}

/* The symbol that libsqlite3 finds. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return __wrap_fsync(fd);
}

/* ---- time and chance ---- */

static int draw(sqlite3_vfs *of, int len, char *ret)
{
	(void)of;
	for (int i = 0; i < len; i++)
		ret[i] = (char)chance_next();
	return len;
}

static int rest(sqlite3_vfs *of, int microseconds)
{
	const struct timespec pause = { microseconds / 1000000, microseconds % 1000000 * 1000L };

	(void)of;
	(void)__wrap_nanosleep(&pause, NULL);
	return microseconds;
}

static int tell_time_ms(sqlite3_vfs *of, sqlite3_int64 *ret)
{
	struct timespec now;

	(void)of;
	(void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
	*ret = EPOCH_JULIAN_MS + (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	return SQLITE_OK;
}

static int tell_time(sqlite3_vfs *of, double *ret)
{
	sqlite3_int64 ms;

	(void)tell_time_ms(of, &ms);
	*ret = (double)ms / 86400000.0;
	return SQLITE_OK;
}

/* ---- SQLite is led into the world ---- */

/* Not openDirectory and fallocate: the first uses open, the second is not used. */
static const struct {
	const char *name;
	sqlite3_syscall_ptr fn;
} calls[] = {
	{ "open", (sqlite3_syscall_ptr)__wrap_open },
	{ "close", (sqlite3_syscall_ptr)__wrap_close },
	{ "access", (sqlite3_syscall_ptr)__wrap_access },
	{ "getcwd", (sqlite3_syscall_ptr)__wrap_getcwd },
	{ "stat", (sqlite3_syscall_ptr)call_stat },
	{ "fstat", (sqlite3_syscall_ptr)call_fstat },
	{ "ftruncate", (sqlite3_syscall_ptr)__wrap_ftruncate },
	{ "fcntl", (sqlite3_syscall_ptr)call_fcntl },
	{ "read", (sqlite3_syscall_ptr)__wrap_read },
	{ "pread", (sqlite3_syscall_ptr)__wrap_pread },
	{ "pread64", (sqlite3_syscall_ptr)__wrap_pread },
	{ "write", (sqlite3_syscall_ptr)__wrap_write },
	{ "pwrite", (sqlite3_syscall_ptr)__wrap_pwrite },
	{ "pwrite64", (sqlite3_syscall_ptr)__wrap_pwrite },
	{ "fchmod", (sqlite3_syscall_ptr)__wrap_fchmod },
	{ "unlink", (sqlite3_syscall_ptr)__wrap_unlink },
	{ "mkdir", (sqlite3_syscall_ptr)__wrap_mkdir },
	{ "rmdir", (sqlite3_syscall_ptr)__wrap_rmdir },
	{ "fchown", (sqlite3_syscall_ptr)__wrap_fchown },
	{ "geteuid", (sqlite3_syscall_ptr)__wrap_geteuid },
	{ "mmap", (sqlite3_syscall_ptr)call_mmap },
	{ "munmap", (sqlite3_syscall_ptr)call_munmap },
	{ "mremap", (sqlite3_syscall_ptr)call_mremap },
	{ "readlink", (sqlite3_syscall_ptr)__wrap_readlink },
	{ "lstat", (sqlite3_syscall_ptr)__wrap_lstat },
	{ "ioctl", (sqlite3_syscall_ptr)__wrap_ioctl },
};

/* A call that this SQLite makes, and the list above lacks, would reach the real files. */
static void check_calls(sqlite3_vfs *of)
{
	static const char *const apart[] = { "openDirectory", "fallocate", "getpagesize" };
	const char *name = NULL;

	while ((name = of->xNextSystemCall(of, name))) {
		bool is_known = false;

		for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
			is_known |= strcmp(calls[i].name, name) == 0;
		for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
			is_known |= strcmp(apart[i], name) == 0;
		if (!is_known)
			world_broken(name);
	}
}

void sqlite_register(void)
{
	sqlite3_vfs *of;

	if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
	    sqlite3_initialize() != SQLITE_OK || !(of = sqlite3_vfs_find("unix")))
		world_broken("SQLite does not begin");
	check_calls(of);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		(void)of->xSetSystemCall(of, calls[i].name, calls[i].fn);
	vfs = *of;
	vfs.zName = "world";
	vfs.xRandomness = draw;
	vfs.xSleep = rest;
	vfs.xCurrentTime = tell_time;
	vfs.xCurrentTimeInt64 = tell_time_ms;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
		world_broken("SQLite takes no other VFS");
}

void sqlite_hold(int64_t until_ns)
{
	held_until_ns = until_ns;
}

bool sqlite_is_held(void)
{
	return now_ns < held_until_ns;
}

void sqlite_reset(void)
{
	held_until_ns = 0;
	sqlite3_randomness(0, NULL);
}
