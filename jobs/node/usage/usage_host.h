/*
 * The work of the host while the command runs, from /proc: proc_stat(5), proc_pid_stat(5),
 * proc_meminfo(5), proc_vmstat(5) and the kernel's Documentation/scheduler/sched-stats.rst. Each
 * reading tells what has changed since the one before; the first tells states alone.
 *
 * The command's processes are the descendants of this process, without those that are spared (its
 * helpers and tools). A process that began and ended between two readings is not seen.
 */
#ifndef STK_NODE_USAGE_USAGE_HOST_H
#define STK_NODE_USAGE_USAGE_HOST_H

#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/clock.h"
#include "jobs/base/usage.h"

#define USAGE_CORES_MAX 1024

/* Figures as they are read. */
struct usage_readings {
	size_t count;
	struct usage_reading {
		size_t figure;
		double value;
	} list[USAGE_END];
};
void usage_readings_add(struct usage_readings *readings, size_t figure, double value);

struct usage_core {
	uint64_t idle, wait, all; /* ticks */
};

struct usage_process;

struct usage_host {
	const char *proc;             /* "/proc", or what a test has in its place; borrowed */
	struct mono at;               /* of the last reading; ms 0: none yet */
	struct usage_process *before; /* of the last reading, by pid; owned */
	size_t before_count;
	struct usage_core *cores;         /* USAGE_CORES_MAX; owned */
	uint64_t swapped_in, swapped_out; /* pages since boot */
	double usable;                    /* cores that the command may use */
	char *text;                       /* room for a file; owned */
};

void usage_host_init(struct usage_host *host, const char *proc);
void usage_host_release(struct usage_host *host); /* { 0 } is fine */

/* Adds what can be read now; what cannot is left out. */
void usage_host_read(struct usage_host *host, pid_t root, const pid_t *spared, size_t spared_count,
		     struct usage_readings *ret);

#endif
