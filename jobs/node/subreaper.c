/* Finds and signals our child processes through /proc: see subreaper.h. */
#include "jobs/node/subreaper.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/auto.h"

/* Living process, as far as it matters here. */
struct process {
	pid_t pid, parent;
};

/* Reads fields 3 and 4 of /proc/PID/stat, after the name in brackets, which may hold anything
 * itself: proc_pid_stat(5). Returns false for a process that is gone or a zombie. */
static bool read_process(const char *pid, struct process *ret)
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
	if (!at || strlen(at) < 5 || at[2] == 'Z' || at[2] == 'X')
		return false;
	ret->pid = (pid_t)strtol(pid, NULL, 10);
	ret->parent = (pid_t)strtol(at + 4, NULL, 10);
	return true;
}

#define LOOKS 3 /* a look at /proc that fails is repeated */

/* Lists all living processes. Returns their number, or SUBREAPER_UNKNOWN; the caller frees the
 * array in any case. */
static size_t look(struct process **ret)
{
	DIR *proc = opendir("/proc");
	struct process *list = NULL;
	struct dirent *entry;
	size_t count = 0, room = 0;
	bool failed = !proc;

	while (proc && (errno = 0, entry = readdir(proc))) {
		if (count == room) {
			room = room ? 2 * room : 256;
			list = mem_grow(list, room, sizeof *list);
		}
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_process(entry->d_name, &list[count]))
			count++;
	}
	failed |= errno != 0;
	if (proc)
		closedir(proc);
	*ret = list;
	return failed ? SUBREAPER_UNKNOWN : count;
}

static size_t read_processes(struct process **ret)
{
	size_t count = look(ret);

	for (int i = 1; i < LOOKS && count == SUBREAPER_UNKNOWN; i++) {
		free(*ret);
		count = look(ret);
	}
	return count;
}

static bool is_in(pid_t pid, const pid_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == pid)
			return true;
	return false;
}

size_t subreaper_signal(int signo, const pid_t *spared, size_t spared_count)
{
	AUTO(auto_free) struct process *list = NULL;
	size_t count = read_processes(&list), ours = 0;

	if (count == SUBREAPER_UNKNOWN)
		return count;
	for (size_t i = 0; i < count; i++)
		if (list[i].parent == getpid() && !is_in(list[i].pid, spared, spared_count)) {
			kill(list[i].pid, signo);
			ours++;
		}
	return ours;
}

/* True if the process has a handler for the signal. `SigCgt:` in /proc/PID/status is a mask in
 * hex. */
static bool catches(pid_t pid, int signo)
{
	AUTO(auto_free) char *path = mem_format("/proc/%ld/status", (long)pid);
	AUTO(auto_fclose) FILE *file = fopen(path, "re");
	char line[256];

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "SigCgt:", 7) == 0)
			return (strtoull(line + 7, NULL, 16) >> (signo - 1)) & 1;
	return false;
}

size_t subreaper_notify(pid_t command, int signo)
{
	AUTO(auto_free) struct process *list = NULL;
	size_t count = read_processes(&list), queued = 0, told = 0;
	AUTO(auto_free) pid_t *queue = NULL;

	if (count == SUBREAPER_UNKNOWN)
		count = 0; /* the command alone */
	queue = mem_zero(count + 1, sizeof *queue);
	queue[queued++] = command;
	for (size_t at = 0; at < queued; at++) {
		if (catches(queue[at], signo)) {
			told += kill(queue[at], signo) == 0;
			continue;
		}
		for (size_t i = 0; i < count && queued <= count; i++)
			if (list[i].parent == queue[at])
				queue[queued++] = list[i].pid;
	}
	return told;
}
