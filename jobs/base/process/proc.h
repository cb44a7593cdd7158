/*
 * Processes: start them without fork's cost, and identify them safely although pids are reused.
 */
#ifndef STK_BASE_PROCESS_PROC_H
#define STK_BASE_PROCESS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/err.h"

/* Identity of a process: the pid may be reused, the start time within one boot may not. */
struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat, clock ticks since boot */
	char boot_id[37];     /* /proc/sys/kernel/random/boot_id */
};

/* The settings of a new process. A negative fd means /dev/null, a NULL cwd the current one. The
 * child leads a new session, has default signal handling, no signal blocked and inherits no other
 * descriptor. */
struct proc_start {
	const char *program; /* a path, relative to cwd; nothing is searched */
	char *const *argv, *const *envp;
	const char *cwd;
	int in, out, err;
};

/* Errors carry EXIT_REFUSED and distinguish a missing program from a missing interpreter and a
 * missing cwd. The caller must wait for the child. */
int proc_spawn(const struct proc_start *start, pid_t *ret_pid, struct err **err);

/* Works on a zombie too. -1 without an error object if there is no such process. */
int proc_identify(pid_t pid, struct proc_id *ret);
/* True if the process still runs (a zombie does not), or if that cannot be told now, for want of
 * descriptors or memory: unknown is not dead. */
bool proc_alive(const struct proc_id *id);
/* Signal the process group that the process leads; false if it is gone. Never signals another
 * process: the identity is checked right before. A leader that has ended but was not waited for
 * still stands for its group, so the rest of the group is reached. */
bool proc_signal_group(const struct proc_id *id, int signo);

/* Path of `program`: the name itself if it has a slash (relative to `cwd`), else the first match
 * along `path`, whose empty elements are skipped. NULL if no executable file is found; errno
 * is ENOENT then, or that of a look that failed. The caller frees it. */
char *proc_find_program(const char *program, const char *cwd, const char *path);

#endif
