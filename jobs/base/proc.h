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

/* How to start one. NULL strings and negative fds mean /dev/null for standard
 * streams and "as ours" for cwd. The child leads a new session, has default
 * signal handling and no other descriptor of ours. */
struct proc_start {
	const char *program; /* a path; nothing is searched */
	char *const *argv, *const *envp;
	const char *cwd;
	int in, out, err;
};

int proc_spawn(const struct proc_start *start, pid_t *ret_pid, struct err **err);

/* -1 without an error object if there is no such process. */
int proc_identify(pid_t pid, struct proc_id *ret);
/* Still running (a zombie is not). */
bool proc_alive(const struct proc_id *id);
/* Send to the process group it leads; false if it is gone. Never signals a
 * stranger: identity is checked right before. */
bool proc_signal_group(const struct proc_id *id, int signo);

/* Where `program` would be found: itself if it has a slash (relative to `cwd`),
 * else along `path`. NULL if nowhere executable. Yours to free. */
char *proc_find_program(const char *program, const char *cwd, const char *path);

#endif
