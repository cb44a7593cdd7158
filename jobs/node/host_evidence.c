/* Asks the kernel about memory and disks: see host_evidence.h. */
#include "jobs/node/host_evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"

#define CGROUP_FILE    "/proc/self/cgroup"
#define MOUNTINFO_FILE "/proc/self/mountinfo"
#define LINE_MAX_BYTES 8192
#define RECORDS_MAX    100000 /* records of the kernel's log; its buffer holds fewer */

/* ---- mounts: proc_pid_mountinfo(5) ---- */

/* Fields of a mountinfo line, which they point into. */
struct mount {
	char *root, *point, *type, *options; /* options: of the file system */
};

/* Replaces octal escapes: blanks and the like stand as \040 in mountinfo. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; to++) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/* `36 35 98:0 ROOT POINT options… - TYPE source OPTIONS` */
static bool parse_mount(char *line, struct mount *ret)
{
	char *save = NULL, *word;

	line[strcspn(line, "\n")] = '\0';
	if (!strtok_r(line, " ", &save) || !strtok_r(NULL, " ", &save) ||
	    !strtok_r(NULL, " ", &save))
		return false;
	ret->root = strtok_r(NULL, " ", &save);
	ret->point = strtok_r(NULL, " ", &save);
	while ((word = strtok_r(NULL, " ", &save)) && strcmp(word, "-") != 0)
		;
	ret->type = strtok_r(NULL, " ", &save);
	if (!strtok_r(NULL, " ", &save))
		return false;
	ret->options = strtok_r(NULL, " ", &save);
	if (!ret->options)
		return false;
	unescape(ret->root);
	unescape(ret->point);
	return true;
}

/* True if `path` is at or beneath `folder`. */
static bool beneath(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (strcmp(folder, "/") == 0)
		return path[0] == '/';
	return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

char *host_evidence_mount_of(const char *path, const char *mountinfo_file)
{
	AUTO(auto_fclose) FILE *file = fopen(mountinfo_file, "re");
	char line[LINE_MAX_BYTES];
	char *found = NULL;

	while (file && fgets(line, sizeof line, file)) {
		struct mount mount;

		/* If mount points are equal, the last one lies on top. */
		if (!parse_mount(line, &mount) || !beneath(path, mount.point) ||
		    (found && strlen(mount.point) < strlen(found)))
			continue;
		free(found);
		found = mem_copy(mount.point);
	}
	return found;
}

/* Returns the nearest existing folder on the way to `path`, without links. The caller frees it. */
static char *nearest(const char *path)
{
	AUTO(auto_free) char *at = mem_copy(path);

	for (;;) {
		char *real = realpath(at, NULL), *parent;

		if (real || strcmp(at, "/") == 0 || at[0] != '/')
			return real;
		parent = fs_dirname(at);
		free(at);
		at = parent;
	}
}

char *host_evidence_full_mount(const char *path)
{
	AUTO(auto_free) char *real = nearest(path);
	struct statvfs fs;
	uint64_t left;

	if (!real || statvfs(real, &fs) < 0 || fs.f_blocks == 0 || (fs.f_flag & ST_RDONLY))
		return NULL;
	left = (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
	/* File systems that make inodes on demand report none at all. */
	if (left >= FULL_BYTES && (fs.f_files == 0 || fs.f_favail > 0))
		return NULL;
	return host_evidence_mount_of(real, MOUNTINFO_FILE);
}

/* ---- memory ---- */

/* Returns our own group in the hierarchy of memory: `0::/path` is v2's, `4:memory:/path` v1's
 * (cgroups(7)). NULL if there is none. The caller frees it. */
static char *own_group(const char *cgroup_file, bool v2)
{
	AUTO(auto_fclose) FILE *file = fopen(cgroup_file, "re");
	char line[LINE_MAX_BYTES];

	while (file && fgets(line, sizeof line, file)) {
		char *save = NULL, *path;
		char *controllers = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		if (v2 && strncmp(line, "0:", 2) == 0 && !*controllers)
			return mem_copy(path);
		for (char *one = strtok_r(controllers, ",", &save); !v2 && one;
		     one = strtok_r(NULL, ",", &save))
			if (strcmp(one, "memory") == 0)
				return mem_copy(path);
	}
	return NULL;
}

static bool is_memory_mount(const struct mount *mount, bool v2)
{
	const char *at;

	if (v2)
		return strcmp(mount->type, "cgroup2") == 0;
	at = strstr(mount->options, "memory");
	return strcmp(mount->type, "cgroup") == 0 && at &&
	       (at == mount->options || at[-1] == ',') && (at[6] == ',' || at[6] == '\0');
}

/* Returns the path of our group's file where its hierarchy is mounted. A container may see only a
 * part of the hierarchy, mounted with that part as its root. The caller frees it. */
static char *counter_path(const char *mountinfo_file, const char *group, bool v2)
{
	AUTO(auto_fclose) FILE *file = fopen(mountinfo_file, "re");
	char line[LINE_MAX_BYTES];

	while (file && fgets(line, sizeof line, file)) {
		struct mount mount;
		const char *inside = group;

		if (!parse_mount(line, &mount) || !is_memory_mount(&mount, v2))
			continue;
		if (strcmp(mount.root, "/") != 0 && beneath(group, mount.root))
			inside = group + strlen(mount.root);
		return mem_format("%s%s/%s", mount.point, strcmp(inside, "/") == 0 ? "" : inside,
				  v2 ? "memory.events" : "memory.oom_control");
	}
	return NULL;
}

/* Returns N of the line `oom_kill N`; -1 if there is none. */
static int64_t read_counter(const char *path)
{
	AUTO(auto_fclose) FILE *file = fopen(path, "re");
	char line[256];

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "oom_kill ", 9) == 0)
			return strtoll(line + 9, NULL, 10);
	return -1;
}

int64_t host_evidence_oom_kills_in(const char *cgroup_file, const char *mountinfo_file)
{
	int64_t count = -1;

	for (int v2 = 1; v2 >= 0 && count < 0; v2--) {
		AUTO(auto_free) char *group = own_group(cgroup_file, v2);
		AUTO(auto_free)
		char *path = group ? counter_path(mountinfo_file, group, v2) : NULL;

		if (path)
			count = read_counter(path);
	}
	return count;
}

int64_t host_evidence_oom_kills(void)
{
	return host_evidence_oom_kills_in(CGROUP_FILE, MOUNTINFO_FILE);
}

/* True if the record is an OOM kill of our user since `since_us`. A record of /dev/kmsg is
 * `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT`, time since boot without sleep
 * (ABI/testing/dev-kmsg). The text of mm/oom_kill.c since 5.0:
 * `oom-kill:constraint=…,task=NAME,pid=N,uid=N`. */
static bool is_our_oom(const char *record, int64_t since_us)
{
	const char *text = strchr(record, ';'), *time = strchr(record, ','), *uid;

	time = time ? strchr(time + 1, ',') : NULL;
	if (!text || !time || strtoll(time + 1, NULL, 10) < since_us ||
	    strncmp(text + 1, "oom-kill:", 9) != 0)
		return false;
	uid = strstr(text, ",uid=");
	return uid && strtoul(uid + 5, NULL, 10) == geteuid();
}

bool host_evidence_oom_in_kernel_log(int64_t mono_ms)
{
	AUTO(auto_close) int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int64_t since_us = mono_ms * 1000;
	struct timespec awake, all;
	char record[LINE_MAX_BYTES];

	if (fd < 0)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &awake);
	clock_gettime(CLOCK_BOOTTIME, &all);
	since_us -= (int64_t)(all.tv_sec - awake.tv_sec) * 1000000;
	for (int i = 0; i < RECORDS_MAX; i++) {
		ssize_t len = read(fd, record, sizeof record - 1);

		if (len < 0 && (errno == EPIPE || errno == EINTR))
			continue; /* records were overwritten before we read them */
		if (len <= 0)
			return false;
		record[len] = '\0';
		if (is_our_oom(record, since_us))
			return true;
	}
	return false;
}
