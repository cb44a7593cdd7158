/* Finds and signals our children through /proc: see children.h. */
#include "jobs/node/children.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/auto.h"

/* Is `pid` a living child of ours? Fields 3 and 4 of /proc/PID/stat, after the
 * name in brackets, which may hold anything itself: proc_pid_stat(5). */
static bool is_child(const char *pid)
{
	char path[64], text[512], *at;
	AUTO(auto_close) int fd = -1;
	ssize_t len;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	at = strrchr(text, ')');
	if (!at || strlen(at) < 5)
		return false;
	return strtol(at + 4, NULL, 10) == getpid() && at[2] != 'Z' && at[2] != 'X';
}

size_t children_signal(int signo)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && is_child(entry->d_name)) {
			kill((pid_t)strtol(entry->d_name, NULL, 10), signo);
			count++;
		}
	if (proc)
		closedir(proc);
	return count;
}
