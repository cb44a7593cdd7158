/* Start and identification of processes: see proc.h. */
#include "jobs/base/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"

/* The flag is from linux/pidfd.h, since Linux 6.9: the signal goes to the group the process
 * leads. */
#define SIGNAL_PROCESS_GROUP (1u << 2)

/* Duplicates `fd` above the standard streams, so that setting one up cannot overwrite the source of
 * another. A negative fd gives -1. */
static int move_high(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* Adds the child's actions before exec; returns an errno or 0. */
static int add_actions(posix_spawn_file_actions_t *actions, const struct proc_start *start,
		       const int sources[3])
{
	int failed = 0;

	if (start->cwd)
		failed = posix_spawn_file_actions_addchdir_np(actions, start->cwd);
	for (int target = 0; target < 3 && !failed; target++) {
		if (sources[target] >= 0)
			failed = posix_spawn_file_actions_adddup2(actions, sources[target], target);
		else
			failed = posix_spawn_file_actions_addopen(actions, target, "/dev/null",
								  O_RDWR, 0);
	}
	return failed ? failed : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}

static int spawn_with(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
		      const struct proc_start *start, const int sources[3], pid_t *ret_pid)
{
	sigset_t all, none;
	int failed = add_actions(actions, start, sources);

	sigfillset(&all);
	sigemptyset(&none);
	if (!failed)
		failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID |
								      POSIX_SPAWN_SETSIGDEF |
								      POSIX_SPAWN_SETSIGMASK);
	if (!failed)
		failed = posix_spawnattr_setsigdefault(attributes, &all);
	if (!failed)
		failed = posix_spawnattr_setsigmask(attributes, &none);
	if (!failed)
		failed = posix_spawn(ret_pid, start->program, actions, attributes, start->argv,
				     start->envp);
	return failed;
}

static int spawn(const struct proc_start *start, const int sources[3], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int failed = posix_spawn_file_actions_init(&actions);

	if (failed)
		return failed;
	failed = posix_spawnattr_init(&attributes);
	if (!failed) {
		failed = spawn_with(&actions, &attributes, start, sources, ret_pid);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

/* posix_spawn gives one number for many causes: find out which it was. */
static int spawn_failed(const struct proc_start *start, int failed, struct err **err)
{
	AUTO(auto_free) char *seen = fs_join(start->cwd ? start->cwd : "", start->program);

	if (start->cwd && !fs_is_dir(start->cwd)) {
		err_system(err, EXIT_REFUSED, failed, "cannot start '%s' in '%s'", start->program,
			   start->cwd);
		return err_hint(err, "check that this folder exists and may be entered");
	}
	err_system(err, EXIT_REFUSED, failed, "cannot start '%s'", start->program);
	switch (failed) {
	case ENOENT:
		if (fs_exists(seen))
			return err_hint(err, "check the path after #! in the first line: the "
					     "interpreter is missing");
		return err_hint(err, "install the program or correct its path");
	case EACCES:
		return err_hint(err, "make the file executable (chmod +x)");
	case ENOEXEC:
		return err_hint(err,
				"use a script that begins with #!, or a program for this machine");
	case E2BIG:
		return err_hint(err, "pass fewer or shorter arguments and environment variables");
	case EAGAIN:
		return err_hint(err, "raise the limit on processes (ulimit -u) or end some");
	default:
		return -1;
	}
}

int proc_spawn(const struct proc_start *start, pid_t *ret_pid, struct err **err)
{
	const int given[3] = { start->in, start->out, start->err };
	int sources[3] = { -1, -1, -1 };
	int failed = 0;

	for (int i = 0; i < 3 && !failed; i++) {
		sources[i] = move_high(given[i]);
		if (given[i] >= 0 && sources[i] < 0)
			failed = errno;
	}
	if (!failed)
		failed = spawn(start, sources, ret_pid);
	for (int i = 0; i < 3; i++)
		auto_close(&sources[i]);
	return failed ? spawn_failed(start, failed, err) : 0;
}

/* The fields of /proc/PID/stat in use; see proc_pid_stat(5). */
struct stat_line {
	char state;
	unsigned long threads;
	uint64_t start_ticks;
};

static ssize_t read_once(const char *path, char *text, size_t size)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : read(fd, text, size);
}

/* The whole of a small file in /proc; false with errno if it cannot be read. */
static bool read_small(const char *path, char *text, size_t size)
{
	int failures = 0;
	ssize_t len;

	while ((len = read_once(path, text, size - 1)) < 0 && err_try_again(&failures))
		;
	if (len == 0)
		errno = ESRCH;
	if (len <= 0)
		return false;
	text[len] = '\0';
	return true;
}

/* False with errno: ENOENT or ESRCH if there is no such process. */
static bool read_stat(pid_t pid, struct stat_line *ret)
{
	enum { STATE_FIELD = 3, THREADS_FIELD = 20, START_FIELD = 22 };
	char path[64], text[2048], *at, *save = NULL;
	int field = STATE_FIELD;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	errno = ESRCH;
	if (pid <= 0 || !read_small(path, text, sizeof text))
		return false;
	errno = ESRCH;
	/* The second field is the program's name in brackets, which may hold brackets
	 * and blanks itself. */
	at = strrchr(text, ')');
	if (!at)
		return false;
	for (at = strtok_r(at + 1, " ", &save); at; at = strtok_r(NULL, " ", &save), field++) {
		if (field == STATE_FIELD)
			ret->state = at[0];
		else if (field == THREADS_FIELD)
			ret->threads = strtoul(at, NULL, 10);
		else if (field == START_FIELD)
			ret->start_ticks = strtoull(at, NULL, 10);
		if (field == START_FIELD)
			return true;
	}
	return false;
}

static bool read_boot_id(char boot_id[37])
{
	char text[64];

	if (!read_small("/proc/sys/kernel/random/boot_id", text, sizeof text) || strlen(text) < 36)
		return false;
	memcpy(boot_id, text, 36);
	boot_id[36] = '\0';
	return true;
}

int proc_identify(pid_t pid, struct proc_id *ret)
{
	struct proc_id id = { .pid = pid };
	struct stat_line line;

	if (!read_stat(pid, &line) || !read_boot_id(id.boot_id))
		return -1;
	id.start_ticks = line.start_ticks;
	*ret = id;
	return 0;
}

/* True if the pid still belongs to this process, ended or not. */
static bool still_it(const struct proc_id *id, struct stat_line *ret_line)
{
	char boot_id[37];

	return read_stat(id->pid, ret_line) && ret_line->start_ticks == id->start_ticks &&
	       read_boot_id(boot_id) && strcmp(boot_id, id->boot_id) == 0;
}

/* True if it cannot be told now whether the process lives: too many files are open, there is no
 * memory. Another user's process is none of ours. */
static bool is_unknown(int error)
{
	return error != ENOENT && error != ESRCH && error != EACCES && error != EPERM;
}

bool proc_alive(const struct proc_id *id)
{
	struct stat_line line;
	char boot_id[37];

	if (!read_stat(id->pid, &line))
		return is_unknown(errno);
	if (line.start_ticks != id->start_ticks)
		return false;
	if (read_boot_id(boot_id) && strcmp(boot_id, id->boot_id) != 0)
		return false;
	/* A main thread that ended before the others looks like a zombie. */
	if (line.state == 'Z')
		return line.threads > 1;
	return line.state != 'X' && line.state != 'x';
}

bool proc_signal_group(const struct proc_id *id, int signo)
{
	AUTO(auto_close) int pidfd = -1;
	struct stat_line line;

	/* kill(-1) would signal every process that it may. */
	if (id->pid <= 1)
		return false;
	/* Opened before the check, so that the process checked is the process signalled. */
	pidfd = (int)syscall(SYS_pidfd_open, id->pid, 0);
	if (!still_it(id, &line))
		return false;
	if (pidfd >= 0 &&
	    syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, SIGNAL_PROCESS_GROUP) == 0)
		return true;
	/* Before Linux 6.9 the pid may be reused within a window of a few instructions here. */
	return kill(-id->pid, signo) == 0;
}

/* `*why` becomes the errno of a look that failed: then it is not known. */
static bool is_program(const char *path, int *why)
{
	struct stat st;
	int failures = 0;

	do {
		if (stat(path, &st) == 0 &&
		    (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0))
			return S_ISREG(st.st_mode);
	} while (err_try_again(&failures));
	if (err_errno_passes(errno) && errno != EACCES)
		*why = errno;
	return false;
}

char *proc_find_program(const char *program, const char *cwd, const char *path)
{
	int why = ENOENT;

	if (strchr(program, '/')) {
		AUTO(auto_free) char *found = fs_join(cwd ? cwd : "", program);

		if (is_program(found, &why))
			return TAKE(found);
		errno = why;
		return NULL;
	}
	while (path && *program) {
		const char *end = strchrnul(path, ':');
		AUTO(auto_free) char *dir = mem_copy_n(path, (size_t)(end - path));
		AUTO(auto_free) char *there = fs_join(dir, program);
		AUTO(auto_free) char *found = fs_join(cwd ? cwd : "", there);

		if (*dir && is_program(found, &why))
			return TAKE(found);
		path = *end ? end + 1 : NULL;
	}
	errno = why;
	return NULL;
}
