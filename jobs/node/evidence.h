/*
 * What the machine itself says about a command's bad end: memory and disks. A
 * log may claim anything; these do not lie, but they must be asked in time.
 */
#ifndef STK_NODE_EVIDENCE_H
#define STK_NODE_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

/* How often the kernel has killed in our control group for want of memory: a
 * counter to be read before and after. memory.events of cgroup v2, or
 * memory.oom_control of v1 (admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst);
 * `oom_kill` in either counts victims that belonged to this very group. -1: it
 * cannot be told. Other jobs in the same group count too, so it is evidence only
 * where something of ours was killed. */
int64_t oom_kills(void);

/* The same from other places, for tests: /proc/self/cgroup, /proc/self/mountinfo. */
int64_t oom_kills_in(const char *cgroup_file, const char *mountinfo_file);

/* Has the kernel logged since `mono_ms` (CLOCK_BOOTTIME, as of clock.h) that it
 * killed one of our user's processes for want of memory? False where /dev/kmsg may
 * not be read. */
bool oom_in_kernel_log(int64_t mono_ms);

/* The mount point of the file system of `path` if it is full, that is, has less than
 * FULL_BYTES or no inodes left for us; yours to free. NULL: there is room, or it
 * cannot be told. The path itself need not exist. */
#define FULL_BYTES ((uint64_t)1 << 20)
char *full_mount(const char *path);

/* The mount point over `path`, an absolute path without links. Yours to free. */
char *mount_of(const char *path, const char *mountinfo_file);

#endif
