/* Preloaded into a program, this gives it a file system that takes names which differ by
 * case only for one, and keeps them as they were first written: beneath CASE_BLIND, in calls
 * that name a file in an open folder. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
	unsigned long ino, off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static int is_blind(int dir)
{
	const char *where = getenv("CASE_BLIND");
	char link[64], real[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	len = readlink(link, real, sizeof real - 1);
	return where && len > 0 && strncmp(real, where, strlen(where)) == 0;
}

/* The name as it stands in the folder; as it was given if there is none. */
static const char *known(int dir, const char *name, char found[256])
{
	char bytes[8192];
	long got;
	int fd, exact = 0, other = 0;

	if (dir < 0 || strchr(name, '/') || strlen(name) > 255 || !is_blind(dir))
		return name;
	fd = (int)syscall(SYS_openat, dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return name;
	while ((got = syscall(SYS_getdents64, fd, bytes, sizeof bytes)) > 0)
		for (long at = 0; at < got;) {
			struct entry *entry = (struct entry *)(bytes + at);

			exact |= strcmp(entry->name, name) == 0;
			if (!exact && strcasecmp(entry->name, name) == 0) {
				snprintf(found, 256, "%s", entry->name);
				other = 1;
			}
			at += entry->len;
		}
	close(fd);
	return !exact && other ? found : name;
}

int openat(int dir, const char *name, int flags, ...)
{
	char found[256];
	va_list rest;
	int mode = 0;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, int);
	va_end(rest);
	return (int)syscall(SYS_openat, dir, known(dir, name, found), flags, mode);
}

int __openat_2(int dir, const char *name, int flags);
int __openat_2(int dir, const char *name, int flags)
{
	return openat(dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
	char found[256];

	return (int)syscall(SYS_mkdirat, dir, known(dir, name, found), mode);
}

int fstatat(int dir, const char *name, struct stat *ret, int flags)
{
	char found[256];

	return (int)syscall(SYS_newfstatat, dir, known(dir, name, found), ret, flags);
}

int renameat2(int from, const char *name, int to, const char *as, unsigned flags)
{
	char found[256], other[256];

	return (int)syscall(SYS_renameat2, from, known(from, name, found), to, known(to, as, other),
			    flags);
}

int renameat(int from, const char *name, int to, const char *as)
{
	return renameat2(from, name, to, as, 0);
}
