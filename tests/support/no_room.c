/* Preloaded into a process, this gives it disks on which NO_ROOM bytes are free. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

int statvfs(const char *restrict path, struct statvfs *restrict ret)
{
	int (*next)(const char *, struct statvfs *);
	const char *bytes = getenv("NO_ROOM");
	void *found = dlsym(RTLD_NEXT, "statvfs");
	int result;

	memcpy(&next, &found, sizeof next);
	result = next(path, ret);
	if (result == 0 && bytes)
		ret->f_bavail = strtoull(bytes, NULL, 10) / ret->f_frsize;
	return result;
}
