/*
 * Evidence from the machine itself about a command's bad end: memory and disks. A log may claim
 * anything; these sources do not lie, but they must be asked in time.
 */
#ifndef STK_NODE_HOST_EVIDENCE_H
#define STK_NODE_HOST_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns how often the kernel has killed in our control group for want of memory: a counter to be
 * read before and after. Source: memory.events of cgroup v2, or memory.oom_control of v1
 * (admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst); `oom_kill` in either counts victims that
 * belonged to this very group. -1 if it is not known. Other jobs in the same group count too, so it
 * is evidence only where something of ours was killed. */
int64_t host_evidence_oom_kills(void);

/* Does the same from other files, for tests: /proc/self/cgroup, /proc/self/mountinfo. */
int64_t host_evidence_oom_kills_in(const char *cgroup_file, const char *mountinfo_file);

/* True if the kernel has logged since `mono_ms` (CLOCK_BOOTTIME, as of clock.h) that it killed one
 * of our user's processes for want of memory. False if /dev/kmsg may not be read. */
bool host_evidence_oom_in_kernel_log(int64_t mono_ms);

/* Returns the mount point of the file system of `path` if it is full, that is, has less than
 * FULL_BYTES or no inodes left for us. NULL if there is room, or if that is not known. The path
 * itself need not exist. The caller frees it. */
#define FULL_BYTES ((uint64_t)1 << 20)
char *host_evidence_full_mount(const char *path);

/* Returns the mount point over `path`, an absolute path without links. The caller frees it. */
char *host_evidence_mount_of(const char *path, const char *mountinfo_file);

#endif
