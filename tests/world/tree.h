/*
 * Files of the simulated world: see kernel.h. A tree is what a machine sees at "/": its own disk,
 * and what is mounted there: /proc (made up from the processes of the machine), /tmp (in memory,
 * gone with a halt), and a folder that several machines share.
 *
 * A disk holds inodes: folders, files, links. Each has what is in memory and what has reached the
 * disk; names likewise belong to their folder. fsync() of a file makes its bytes and its size last,
 * fsync() of a folder its names (rename, unlink, link, create). What was not synced is there or not
 * after a loss of power, by chance, each name and each block of 4 KiB for itself, as the orders of
 * a real disk allow: a rename is all or nothing, a name never leads to an inode that is not there.
 *
 * A share is what several machines have at one path, as over NFS: writes reach the server when they
 * are synced or the file is closed, locks hold across machines, the server's clock dates files,
 * fsync() of a folder may be refused. What NFS shows late (attributes, names, ESTALE, silly
 * renames) is not modelled: a share shows the truth at once.
 */
#ifndef STK_TESTS_WORLD_TREE_H
#define STK_TESTS_WORLD_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tests/world/kernel.h"

struct disk; /* inodes that live and die together: a local disk, a tmpfs, a share */

enum disk_kind { DISK_LOCAL, DISK_MEMORY, DISK_SHARE };

struct disk *disk_new(enum disk_kind kind, const char *name);
/* Bytes and files that still fit; a quota of it gives EDQUOT instead of ENOSPC. */
void disk_limit(struct disk *disk, int64_t bytes_free, int64_t files_free, bool quota);
/* Refuses fsync() of folders with EINVAL, as some network file systems do. */
void disk_refuse_folder_sync(struct disk *disk, bool refuse);
/* What was not synced is lost, by chance. */
void disk_lose_power(struct disk *disk);

/* "/" of a machine: an own local disk with /tmp in memory and /proc. */
struct tree *tree_new(struct machine *machine);
/* Mounts a disk at an absolute path, which is made. */
void tree_mount(struct tree *tree, const char *path, struct disk *disk);

/* ---- the world's own hand: no call, no time, no fault ---- */

/* Makes a file with its folders. */
void tree_put(struct machine *machine, const char *path, const void *bytes, size_t len,
	      mode_t mode);
void tree_mkdirs(struct machine *machine, const char *path);
/* Content of a file, NUL-terminated, NULL if it is not there; the caller frees it. `ret_len` may be
 * NULL. */
char *tree_get(struct machine *machine, const char *path, size_t *ret_len);
bool tree_exists(struct machine *machine, const char *path);
/* Removes a file, as somebody at that machine would; false if it is not there. */
bool tree_remove(struct machine *machine, const char *path);
/* The path, as the kernel would show it, of an open file; for traces. Borrowed until the next
 * call. */
const char *tree_path(const struct file *file);

/* ---- for the kernel ---- */

/* Opens a path as that process would; `dirfd` as for openat(). O_CLOEXEC is left to the caller. 0
 * and a new description with one reference, or a negative errno. Spends no time. */
int tree_open_path(struct process *process, int dirfd, const char *path, int flags, mode_t mode,
		   struct file **ret);
/* Checks that the path, beneath `cwd` if it is relative, may be executed, and copies the first line
 * of the file, without the newline. 0, or a negative errno: -ENOENT, -EACCES, … */
int tree_executable(struct machine *machine, const char *cwd, const char *path, char *line,
		    size_t size);
/* 0, or a negative errno if the path, beneath `cwd` if it is relative, is not a folder. */
int tree_is_folder(struct machine *machine, const char *cwd, const char *path);
/* fcntl() with F_SETLK, F_SETLKW, F_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_OFD_GETLK, of the running
 * process. Waits where the command does. 0, or a negative errno. */
struct flock;
int tree_fcntl_lock(struct file *file, int cmd, struct flock *lock);
/* A descriptor of the process is closed: the locks of F_SETLK go with it, whatever other descriptor
 * of that inode the process has (kernel.c calls it, before the reference goes). */
void tree_descriptor_closes(struct process *process, struct file *file);
/* Locks and mappings of a process that ends are released (kernel.c calls it). */
void tree_process_ends(struct process *process);
/* All disks of the machine as it halts: memory is empty, with `power_lost` what was not synced is
 * gone by chance; writes to a share that had not left the machine are gone too. */
void tree_halt(struct machine *machine, bool power_lost);

#endif
