/*
 * Files: limited reads, writes that a crash cannot tear, trees.
 *
 * Files that stoker makes are 0600 and folders 0700. All descriptors are
 * O_CLOEXEC. Errors carry EXIT_REFUSED (the environment said no) and name the
 * path; a full disk and a read-only file system get their own hint.
 */
#ifndef STK_BASE_FS_H
#define STK_BASE_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/base/err.h"
#include "jobs/base/sb.h"

/* Names of temporary files begin with this. A process that was killed may leave
 * one behind: whoever lists a folder of ours skips them. */
#define FS_TEMP_PREFIX ".stk-tmp-"

/* "a/b"; `b` alone if it is absolute or `a` is empty. Yours to free. */
char *fs_join(const char *a, const char *b);
/* Everything before the last slash ("." if there is none, "/" for a name in the
 * root). Yours to free. */
char *fs_dirname(const char *path);
const char *fs_basename(const char *path); /* borrowed from path */

/* Append the whole file to `text`; a failure appends nothing. A file larger than
 * `max` (or than `text` may grow) and what is no regular file (a folder, a pipe,
 * a device) are errors. */
int fs_read(const char *path, size_t max, struct sb *text, struct err **err);

/* Read `len` bytes, fewer only at the end: from `at` on, or, with -1, from where the
 * descriptor stands. How many; -1 with errno. Reads that a signal cut short go on. */
ssize_t fs_read_full(int fd, void *bytes, size_t len, int64_t at);

/* Why what lies between two slashes can be no name of a file, wherever it came from: it is
 * empty, ".", "..", or longer than FS_NAME_MAX bytes. Words for "… has …"; NULL: it can. */
#define FS_NAME_MAX 255
const char *fs_name_unfit(const char *name, size_t len);

/* Replace `path` as a whole: write beside it, fsync, rename, fsync the folder.
 * Readers see the old content or the new one, also after a power cut. The file
 * has exactly `mode`, whatever the umask; a link is replaced, not followed. */
int fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, struct err **err);

/* Create `path` with this content only if nothing has that name: 1 created,
 * 0 taken, -1 error (then it may exist, if only the last fsync failed). As
 * atomic and durable as fs_write_atomic, except on a file system without links
 * and without an exclusive rename: there a crash may leave a part of it. */
int fs_create_atomic(const char *path, const void *bytes, size_t len, mode_t mode,
		     struct err **err);

/* A new file without a name in $TMPDIR (/tmp), for reading and writing, so that none is
 * left behind when we are killed. The descriptor, or -1. */
int fs_scratch(struct err **err);

/* Make a folder and its parents (0700), durably; one that is there is fine. */
int fs_mkdirs(const char *path, struct err **err);

/* Remove a file or a whole tree; absent is fine. Links are removed, never
 * followed; folders without rights are given them; another file system mounted
 * inside is an error and stays whole. Any depth, in bounded memory. */
int fs_remove_tree(const char *path, struct err **err);

bool fs_exists(const char *path); /* follows links */
bool fs_is_dir(const char *path);
int fs_sync_dir(const char *path, struct err **err);
/* Against the working directory; ".", ".." and double slashes are resolved in the
 * text alone, links are not looked at. Yours to free. */
char *fs_absolute(const char *path);

/* Turn errno into an error on `what` ("cannot write '…'"), with the hint for a
 * full disk or quota, a read-only file system or missing rights. */
int fs_error(struct err **err, int os_errno, const char *fmt, ...) STK_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as in err.h */
#define fs_error(...) (fs_error(__VA_ARGS__), -1)
#endif

#endif
