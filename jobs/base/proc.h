/*
 * Processes: start them without fork's cost, know them again without being
 * fooled by a reused pid.
 */
#ifndef STK_BASE_PROC_H
#define STK_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/err.h"

/* A process, unmistakably: the pid may be reused, the start time in one boot
 * may not. */
struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat, clock ticks since boot */
	char boot_id[37];     /* /proc/sys/kernel/random/boot_id */
};

/* How to start one. A negative fd means /dev/null, a NULL cwd ours. The child leads
 * a new session, has default signal handling, no signal blocked and no other
 * descriptor of ours. */
struct proc_start {
	const char *program; /* a path, relative to cwd; nothing is searched */
	char *const *argv, *const *envp;
	const char *cwd;
	int in, out, err;
};

/* Errors carry EXIT_REFUSED and tell a missing program from a missing interpreter
 * and a missing cwd. The child is the caller's to wait for. */
int proc_spawn(const struct proc_start *start, pid_t *ret_pid, struct err **err);

/* Works on a zombie too. -1 without an error object if there is no such process. */
int proc_identify(pid_t pid, struct proc_id *ret);
/* Still running (a zombie is not). */
bool proc_alive(const struct proc_id *id);
/* Send to the process group it leads; false if it is gone. Never signals a
 * stranger: identity is checked right before. A leader that has ended but was not
 * waited for still stands for its group, so what is left of that is reached. */
bool proc_signal_group(const struct proc_id *id, int signo);

/* Where `program` would be found: itself if it has a slash (relative to `cwd`),
 * else along `path`, whose empty elements are skipped. NULL if nowhere
 * executable. Yours to free. */
char *proc_find_program(const char *program, const char *cwd, const char *path);

#endif
