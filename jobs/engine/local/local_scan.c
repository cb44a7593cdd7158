/* Finds processes of an attempt that no record names, and signals or reaps exactly the intended
 * process: see local_internal.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/engine/local/local_internal.h"
#include "jobs/store/order.h"

/* Limit for one process's arguments or environment; the kernel's own limit for both is a quarter of
 * the stack limit, usually 2 MiB. */
#define TEXT_MAX ((size_t)4 << 20)

/* Number of reads of an empty environment. */
#define EMPTY_READS 20

/* Reads NUL-separated texts from /proc; a NUL is put in front, so that every text stands between
 * two. False if the file cannot be read, or is empty. */
static bool read_texts(const char *pid, const char *file, struct sb *ret)
{
	AUTO(auto_free) char *path = mem_format("/proc/%s/%s", pid, file);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[4096];
	ssize_t len;

	if (fd < 0)
		return false;
	sb_addc(ret, '\0');
	while ((len = read(fd, buffer, sizeof buffer)) > 0)
		sb_add(ret, buffer, (size_t)len);
	sb_addc(ret, '\0');
	return ret->len > 2;
}

/* Returns the place of `text` as a whole element; NULL if it is absent. */
static const char *find_text(const struct sb *texts, const char *text)
{
	size_t len = strlen(text) + 2;
	AUTO(auto_free) char *framed = mem_zero(1, len);
	const char *at;

	memcpy(framed + 1, text, len - 2);
	at = memmem(texts->text, texts->len, framed, len);
	return at ? at + 1 : NULL;
}

/* Returns the rank of an agent of this order, `… ORDER RANK`; -1 if the process is not one. */
static int agent_rank(const char *pid, const char *order)
{
	AUTO(sb_release) struct sb argv = SB_INIT_MAX(TEXT_MAX);
	const char *at, *rank;

	if (!read_texts(pid, "cmdline", &argv))
		return -1;
	at = find_text(&argv, order);
	rank = at ? at + strlen(at) + 1 : NULL;
	if (!rank || !isdigit((unsigned char)*rank) ||
	    !memmem(argv.text, argv.len, "stoker-node", 11))
		return -1;
	return (int)strtol(rank, NULL, 10);
}

/* True for a program, false for a kernel thread or a zombie. Another user's program may be
 * unreadable, and counts as one. */
static bool has_program(const char *pid)
{
	AUTO(auto_free) char *path = mem_format("/proc/%s/exe", pid);
	char target[8];

	return readlink(path, target, sizeof target) >= 0 || errno != ENOENT;
}

/* True if the process has the token in its environment. During execve() a process has neither
 * arguments nor an environment for a moment: then the file is read again. */
static bool carries(const char *pid, const char *token)
{
	AUTO(sb_release) struct sb env = SB_INIT_MAX(TEXT_MAX);
	AUTO(auto_free) char *variable = mem_format(ORDER_TOKEN "=%s", token);

	for (int i = 0; i < EMPTY_READS; i++) {
		if (read_texts(pid, "environ", &env))
			return find_text(&env, variable) != NULL;
		if (!has_program(pid))
			return false;
		sb_clear(&env);
		sched_yield();
	}
	return false;
}

static bool is_ours(const char *pid)
{
	AUTO(auto_free) char *path = mem_format("/proc/%s", pid);
	struct stat st;

	return isdigit((unsigned char)pid[0]) && stat(path, &st) == 0 && st.st_uid == geteuid() &&
	       strtol(pid, NULL, 10) != getpid();
}

/* True for an agent of this order (with its rank), or any process with this token. */
static bool is_meant(const char *pid, const char *token, const char *order, int *ret_rank)
{
	*ret_rank = agent_rank(pid, order);
	return *ret_rank >= 0 || (token && carries(pid, token));
}

size_t local_scan_processes(const char *token, const char *order, struct local_found *ret,
			    size_t max)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	while (proc && count < max && (entry = readdir(proc))) {
		const char *pid = entry->d_name;
		struct local_found found = { .rank = -1 };

		/* Most entries are kernel threads or unrelated. A match is checked again after its
		 * identity is read: the pid may have been reused. */
		if (!is_ours(pid) || !has_program(pid) ||
		    !is_meant(pid, token, order, &found.rank) ||
		    proc_identify((pid_t)strtol(pid, NULL, 10), &found.id) < 0)
			continue;
		if (is_meant(pid, token, order, &found.rank) && proc_alive(&found.id))
			ret[count++] = found;
	}
	if (proc)
		closedir(proc);
	return count;
}

bool local_scan_signal(const struct proc_id *id, int signo)
{
	AUTO(auto_close) int pidfd = -1;
	struct proc_id now;

	if (id->pid <= 1)
		return false;
	/* Opened before the check, so that the checked process is the one signalled. */
	pidfd = (int)syscall(SYS_pidfd_open, id->pid, 0);
	if (pidfd < 0 || proc_identify(id->pid, &now) < 0 || now.start_ticks != id->start_ticks ||
	    strcmp(now.boot_id, id->boot_id) != 0)
		return false;
	return syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0) == 0;
}

bool local_scan_reap(const struct proc_id *id, int *ret_status)
{
	struct proc_id now;

	/* A zombie keeps its pid and start time until it is reaped; another child under that pid
	 * must not be reaped here. */
	if (id->pid <= 1 || proc_identify(id->pid, &now) < 0 ||
	    now.start_ticks != id->start_ticks || strcmp(now.boot_id, id->boot_id) != 0)
		return false;
	return waitpid(id->pid, ret_status, WNOHANG) == id->pid;
}
