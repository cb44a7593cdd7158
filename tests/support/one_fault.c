/* Preloaded into a driver, this makes one call to the outside fail, once: a disk or a
 * server of files that stumbles. A place is a function, the state, workspace or cache that
 * it was called on, and the newest frames of the program that led there.
 *
 *   FAULT_ROOTS   folders, joined by ':'; calls on what lies elsewhere are let alone
 *   FAULT_LOG     a file: "place function root" is appended for each place that is met
 *   FAULT_PLACE   the place that fails, as FAULT_LOG has it
 *   FAULT_ERRNO   with what
 *   FAULT_TIMES   how often; 1 without it
 *
 * Only the program itself is meant, not what it starts. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAMES     40
#define OWN_FRAMES 5
#define PLACES     4096
#define ROOTS      8

static pid_t process;
static uintptr_t from, to; /* of the program's own code */
static uint64_t met[PLACES], wanted;
static size_t met_count, root_count;
static const char *roots[ROOTS];
static int times = 1, fault, log_fd = -1;
static __thread int busy;

static int find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (!from)
			from = begin;
		if (begin + info->dlpi_phdr[i].p_memsz > to)
			to = begin + info->dlpi_phdr[i].p_memsz;
	}
	return 1; /* the program comes first */
}

__attribute__((constructor)) static void begin(void)
{
	const char *list = getenv("FAULT_ROOTS"), *log = getenv("FAULT_LOG");
	const char *place = getenv("FAULT_PLACE"), *number = getenv("FAULT_ERRNO");
	void *warm[4];
	char *copy;

	if (!list || (!log && !place))
		return;
	copy = strdup(list);
	for (char *root = strtok(copy, ":"); root && root_count < ROOTS; root = strtok(NULL, ":"))
		roots[root_count++] = root;
	if (log)
		log_fd = (int)syscall(SYS_openat, AT_FDCWD, log,
				      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	wanted = place ? strtoull(place, NULL, 16) : 0;
	fault = number ? atoi(number) : EIO;
	if (getenv("FAULT_TIMES"))
		times = atoi(getenv("FAULT_TIMES"));
	dl_iterate_phdr(find_program, NULL);
	backtrace(warm, 4); /* it loads a library the first time */
	process = getpid();
}

static void path_of(int dir, const char *name, char ret[PATH_MAX])
{
	char link[64], base[PATH_MAX / 2] = "";
	ssize_t len = -1;

	snprintf(link, sizeof link, dir == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", dir);
	if (!name || name[0] != '/')
		len = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
	base[len > 0 ? len : 0] = '\0';
	if (name && name[0] == '/')
		snprintf(ret, PATH_MAX, "%.2000s", name);
	else if (name && name[0])
		snprintf(ret, PATH_MAX, "%.2000s/%.2000s", base, name);
	else
		snprintf(ret, PATH_MAX, "%.2000s", base);
}

static const char *root_of(const char *path)
{
	for (size_t i = 0; i < root_count; i++) {
		size_t len = strlen(roots[i]);

		if (strncmp(path, roots[i], len) == 0 && (path[len] == '/' || path[len] == '\0'))
			return roots[i];
	}
	return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * UINT64_C(0x100000001b3);
}

static void note(uint64_t place, const char *function, const char *root)
{
	char line[PATH_MAX + 100];
	int len;

	for (size_t i = 0; i < met_count; i++)
		if (met[i] == place)
			return;
	if (met_count < PLACES)
		met[met_count++] = place;
	len = snprintf(line, sizeof line, "%016llx %s %s\n", (unsigned long long)place, function,
		       root);
	if (log_fd >= 0)
		syscall(SYS_write, log_fd, line, (size_t)len);
}

/* Is it this call that fails? errno is set then. */
static int fails(const char *function, int dir, const char *name)
{
	char path[PATH_MAX];
	uint64_t place = UINT64_C(0xcbf29ce484222325);
	void *frames[FRAMES];
	const char *root;
	int kept = errno, count, own = 0, result = 0;

	if (!process || busy || getpid() != process)
		return 0;
	busy = 1;
	path_of(dir, name, path);
	root = root_of(path);
	if (root) {
		for (const char *c = function; *c; c++)
			place = mix(place, (uint64_t)(unsigned char)*c);
		for (const char *c = strrchr(root, '/'); *c; c++)
			place = mix(place, (uint64_t)(unsigned char)*c);
		count = backtrace(frames, FRAMES);
		for (int i = 0; i < count && own < OWN_FRAMES; i++) {
			uintptr_t at = (uintptr_t)frames[i];

			if (at < from || at >= to)
				continue;
			place = mix(place, at - from);
			own++;
		}
		note(place, function, root);
		if (place == wanted && times > 0) {
			times--;
			result = 1;
		}
	}
	busy = 0;
	errno = result ? fault : kept;
	return result;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FD(type, name, args, call, fd)                                                             \
	type name args                                                                             \
	{                                                                                          \
		static __typeof__(&name) real;                                                     \
		if (!real)                                                                         \
			real = REAL(name);                                                         \
		return fails(#name, fd, NULL) ? (type)-1 : real call;                              \
	}
#define AT(type, name, args, call, dir, path)                                                      \
	type name args                                                                             \
	{                                                                                          \
		static __typeof__(&name) real;                                                     \
		if (!real)                                                                         \
			real = REAL(name);                                                         \
		return fails(#name, dir, path) ? (type)-1 : real call;                             \
	}
#define OPEN(name, first, dir, ...)                                                                \
	int name(first const char *path, int flags, ...)                                           \
	{                                                                                          \
		static __typeof__(&name) real;                                                     \
		mode_t mode = 0;                                                                   \
		if (flags & (O_CREAT | __O_TMPFILE)) {                                             \
			va_list more;                                                              \
			va_start(more, flags);                                                     \
			mode = (mode_t)va_arg(more, int);                                          \
			va_end(more);                                                              \
		}                                                                                  \
		if (!real)                                                                         \
			real = REAL(name);                                                         \
		return fails(#name, dir, path) ? -1 : real(__VA_ARGS__ path, flags, mode);         \
	}
#define COMMA ,

OPEN(open, , AT_FDCWD, )
OPEN(open64, , AT_FDCWD, )
OPEN(openat, int dir COMMA, dir, dir COMMA)
OPEN(openat64, int dir COMMA, dir, dir COMMA)
FD(ssize_t, read, (int fd, void *to_, size_t len), (fd, to_, len), fd)
FD(ssize_t, pread, (int fd, void *to_, size_t len, off_t at), (fd, to_, len, at), fd)
FD(ssize_t, pread64, (int fd, void *to_, size_t len, off64_t at), (fd, to_, len, at), fd)
FD(ssize_t, write, (int fd, const void *of, size_t len), (fd, of, len), fd)
FD(ssize_t, pwrite, (int fd, const void *of, size_t len, off_t at), (fd, of, len, at), fd)
FD(ssize_t, pwrite64, (int fd, const void *of, size_t len, off64_t at), (fd, of, len, at), fd)
FD(int, fsync, (int fd), (fd), fd)
FD(int, fdatasync, (int fd), (fd), fd)
FD(int, ftruncate, (int fd, off_t len), (fd, len), fd)
FD(int, ftruncate64, (int fd, off64_t len), (fd, len), fd)
FD(int, fstat, (int fd, struct stat *ret), (fd, ret), fd)
FD(int, fstat64, (int fd, struct stat64 *ret), (fd, ret), fd)
FD(int, futimens, (int fd, const struct timespec when[2]), (fd, when), fd)
AT(int, stat, (const char *path, struct stat *ret), (path, ret), AT_FDCWD, path)
AT(int, stat64, (const char *path, struct stat64 *ret), (path, ret), AT_FDCWD, path)
AT(int, lstat, (const char *path, struct stat *ret), (path, ret), AT_FDCWD, path)
AT(int, lstat64, (const char *path, struct stat64 *ret), (path, ret), AT_FDCWD, path)
AT(int, fstatat, (int dir, const char *path, struct stat *ret, int flags), (dir, path, ret, flags),
   dir, path)
AT(int, fstatat64, (int dir, const char *path, struct stat64 *ret, int flags),
   (dir, path, ret, flags), dir, path)
AT(int, access, (const char *path, int mode), (path, mode), AT_FDCWD, path)
AT(int, faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags), dir,
   path)
AT(int, chmod, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
AT(int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
AT(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), dir, path)
AT(int, unlink, (const char *path), (path), AT_FDCWD, path)
AT(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), dir, path)
AT(int, rename, (const char *old, const char *path), (old, path), AT_FDCWD, path)
AT(int, renameat, (int old_dir, const char *old, int dir, const char *path),
   (old_dir, old, dir, path), dir, path)
AT(int, renameat2, (int old_dir, const char *old, int dir, const char *path, unsigned flags),
   (old_dir, old, dir, path, flags), dir, path)
AT(int, link, (const char *old, const char *path), (old, path), AT_FDCWD, path)
AT(int, linkat, (int old_dir, const char *old, int dir, const char *path, int flags),
   (old_dir, old, dir, path, flags), dir, path)

DIR *opendir(const char *path)
{
	return fails("opendir", AT_FDCWD, path) ? NULL : REAL(opendir)(path);
}

DIR *fdopendir(int fd)
{
	return fails("fdopendir", fd, NULL) ? NULL : REAL(fdopendir)(fd);
}
