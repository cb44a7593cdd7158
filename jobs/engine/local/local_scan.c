/* Finds processes of an attempt that no record names, and signals or reaps exactly the intended
 * process: see local_internal.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/variable.h"
#include "jobs/engine/local/local_internal.h"
#include "jobs/store/order.h"

/* Limit for one process's arguments or environment; the kernel's own limit for both is a quarter of
 * the stack limit, usually 2 MiB. */
#define TEXT_MAX ((size_t)4 << 20)

/* Number of reads of an empty environment. */
#define EMPTY_READS 20

/* True if errno says that the process is gone, or that it is another user's business. Any other
 * error leaves open what the process is. */
static bool is_not_ours(void)
{
	return errno == ENOENT || errno == ESRCH || errno == EACCES || errno == EPERM;
}

/* Reads NUL-separated texts from /proc; a NUL is put in front, so that every text stands between
 * two. Returns 1; 0 if the file is empty, or not for us to read; -1 if that is not known. */
static int read_texts(const char *pid, const char *file, struct sb *ret)
{
	AUTO(auto_free) char *path = mem_format("/proc/%s/%s", pid, file);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[4096];
	ssize_t len;

	if (fd < 0)
		return is_not_ours() ? 0 : -1;
	sb_addc(ret, '\0');
	while ((len = read(fd, buffer, sizeof buffer)) > 0)
		sb_add(ret, buffer, (size_t)len);
	if (len < 0 && !is_not_ours())
		return -1;
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

/* The rank of an agent of this order, `… ORDER RANK`. Returns 1, 0 if the process is not one, -1 if
 * that is not known. */
static int read_rank(const char *pid, const char *order, int *ret)
{
	AUTO(sb_release) struct sb argv = SB_INIT_MAX(TEXT_MAX);
	const char *at, *rank;
	int got = read_texts(pid, "cmdline", &argv);

	if (got <= 0)
		return got;
	at = find_text(&argv, order);
	rank = at ? at + strlen(at) + 1 : NULL;
	if (!rank || !isdigit((unsigned char)*rank) ||
	    !memmem(argv.text, argv.len, "stoker-node", 11))
		return 0;
	*ret = (int)strtol(rank, NULL, 10);
	return 1;
}

/* True for a program, false for a kernel thread or a zombie. Another user's program may be
 * unreadable, and counts as one. */
static bool has_program(const char *pid)
{
	AUTO(auto_free) char *path = mem_format("/proc/%s/exe", pid);
	char target[8];

	return readlink(path, target, sizeof target) >= 0 || errno != ENOENT;
}

/* Has the process the token in its environment? 1, 0, or -1 if that is not known. During execve() a
 * process has neither arguments nor an environment for a moment: then the file is read again. */
static int carries(const char *pid, const char *token)
{
	AUTO(sb_release) struct sb env = SB_INIT_MAX(TEXT_MAX);
	AUTO(auto_free) char *variable = mem_format(ORDER_TOKEN "=%s", token);
	int got = 0;

	for (int i = 0; i < EMPTY_READS; i++) {
		got = read_texts(pid, "environ", &env);
		if (got > 0)
			return find_text(&env, variable) != NULL;
		if (!has_program(pid))
			return 0;
		sb_clear(&env);
		sched_yield();
	}
	return got;
}

/* Is it another process of this user? 1, 0, or -1 if that is not known. */
static int is_ours(const char *pid)
{
	AUTO(auto_free) char *path = mem_format("/proc/%s", pid);
	struct stat st;

	if (!isdigit((unsigned char)pid[0]))
		return 0;
	if (stat(path, &st) < 0)
		return is_not_ours() ? 0 : -1;
	return st.st_uid == geteuid() && strtol(pid, NULL, 10) != getpid();
}

/* Is it an agent of this order (with its rank), or any process with this token? 1, 0, or -1 if that
 * is not known. */
static int is_meant(const char *pid, const char *token, const char *order, int *ret_rank)
{
	int agent = read_rank(pid, order, ret_rank), carrier = 0;

	if (agent <= 0 && token)
		carrier = carries(pid, token);
	return agent > 0 || carrier > 0 ? 1 : agent < 0 ? -1 : carrier;
}

/* Looks at one process of /proc. Most are kernel threads or unrelated. A match is checked again
 * after its identity is read: the pid may have been reused. 1 found, 0 not meant, -1 not known. */
static int look_at_process(const char *pid, const char *token, const char *order,
			   struct local_found *ret)
{
	int meant = is_ours(pid);

	if (meant <= 0)
		return meant;
	meant = has_program(pid) ? is_meant(pid, token, order, &ret->rank) : 0;
	if (meant <= 0)
		return meant;
	if (proc_identify((pid_t)strtol(pid, NULL, 10), &ret->id) < 0)
		return is_ours(pid) == 0 ? 0 : -1;
	meant = is_meant(pid, token, order, &ret->rank);
	if (meant <= 0 || proc_alive(&ret->id))
		return meant;
	return has_program(pid) ? -1 : 0;
}

int local_scan_processes(const char *token, const char *order, struct local_found *ret, size_t max,
			 struct err **err)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;
	int found = 0;

	if (!proc)
		return fs_error(err, errno, "cannot list the processes");
	while (count < max && found >= 0 && (errno = 0, entry = readdir(proc))) {
		ret[count] = (struct local_found){ .rank = -1 };
		found = look_at_process(entry->d_name, token, order, &ret[count]);
		count += found > 0;
	}
	if (found < 0 || (count < max && errno != 0))
		fs_error(err, errno ? errno : EIO, "cannot look at the processes");
	closedir(proc);
	return *err ? -1 : (int)count;
}

/* True if the process is a child of the agent and has what an agent gives to a command alone: its
 * own helpers lack it. */
static bool is_command(const char *pid, pid_t agent, const char *rank)
{
	AUTO(sb_release) struct sb env = SB_INIT_MAX(TEXT_MAX), stat = SB_INIT_MAX(TEXT_MAX);
	const char *behind_name;
	int parent;

	if (is_ours(pid) <= 0 || read_texts(pid, "stat", &stat) <= 0)
		return false;
	behind_name = memrchr(stat.text, ')', stat.len);
	return behind_name && sscanf(behind_name, ") %*c %d", &parent) == 1 && parent == agent &&
	       read_texts(pid, "environ", &env) > 0 && find_text(&env, rank);
}

int local_scan_command(pid_t agent, int node, pid_t *ret, struct err **err)
{
	AUTO(auto_free)
	char *rank = mem_format("%s=%d", variable_rows[VAR_NODE_RANK].name, node);
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	if (!proc)
		return fs_error(err, errno, "cannot list the processes");
	while (!found && (entry = readdir(proc)))
		if (is_command(entry->d_name, agent, rank)) {
			*ret = (pid_t)strtol(entry->d_name, NULL, 10);
			found = 1;
		}
	closedir(proc);
	return found;
}

bool local_scan_signal(const struct proc_id *id, int signo)
{
	AUTO(auto_close) int pidfd = -1;
	struct proc_id now;

	if (id->pid <= 1)
		return false;
	/* Opened before the check, so that the checked process is the one signalled. */
	pidfd = (int)syscall(SYS_pidfd_open, id->pid, 0);
	if (proc_identify(id->pid, &now) < 0 || now.start_ticks != id->start_ticks ||
	    strcmp(now.boot_id, id->boot_id) != 0)
		return false;
	if (pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0) == 0;
	/* Without a descriptor the pid may be reused within a window of a few instructions here. */
	return kill(id->pid, signo) == 0;
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
