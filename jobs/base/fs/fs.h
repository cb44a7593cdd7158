/*
 * Files: limited reads, writes that a crash cannot tear, trees.
 *
 * Files that stoker makes are 0600 and folders 0700. All descriptors are
 * O_CLOEXEC. Errors carry EXIT_REFUSED (the environment does not allow it) and name the path; a
 * full disk and a read-only file system get their own hint.
 *
 * base/fs: files and folders: reads with a bound, writes that are whole or absent, sync, removal of
 * trees without following links. No policy about where files lie.
 */
#ifndef STK_BASE_FS_FS_H
#define STK_BASE_FS_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"

/* Names of temporary files begin with this. A process that was killed may leave
 * one behind: code that lists stoker's folders must skip them. */
#define FS_TEMP_PREFIX ".stk-tmp-"

/* "a/b"; `b` alone if it is absolute or `a` is empty. The caller frees it. */
char *fs_join(const char *a, const char *b);
/* The part before the last slash ("." without a slash, "/" for a name in the root). The caller
 * frees it. */
char *fs_dirname(const char *path);
const char *fs_basename(const char *path); /* borrowed from path */

/* Opens a file for reading; anything but a regular file (a folder, a pipe, a device) is an error.
 * Returns the descriptor, or -1. */
int fs_open_regular(const char *path, struct err **err);
/* Append the whole file to `text`; a failure appends nothing. A file larger than
 * `max` (or than the maximum of `text`), or not a regular one, is an error. */
int fs_read(const char *path, size_t max, struct sb *text, struct err **err);

/* Reads `len` bytes from offset `at` or, if `at` is -1, from the descriptor's position; fewer only
 * at the end of the file. Returns the number of bytes, or -1 with errno. Reads that a signal cut
 * short are continued. */
ssize_t fs_read_full(int fd, void *bytes, size_t len, int64_t at);

/* Writes all bytes at the descriptor's position. Returns 0, or an errno. */
int fs_write_full(int fd, const void *bytes, size_t len);

/* Returns why a path component cannot be a file name (it is empty, ".", "..", or longer than
 * FS_NAME_MAX bytes), worded to follow "…"; NULL if it can. */
#define FS_NAME_MAX 255
const char *fs_name_unsafe(const char *name, size_t len);

/* Replace `path` as a whole: write beside it, fsync, rename, fsync the folder.
 * Readers see the old content or the new one, also after a power cut. The file
 * has exactly `mode`, whatever the umask; a link is replaced, not followed. */
int fs_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, struct err **err);

/* The same for a file that is soon replaced again: nothing is synced, so a power cut may leave an
 * older content, or no file. */
int fs_write_passing(const char *path, const void *bytes, size_t len, mode_t mode,
		     struct err **err);

/* Opens a new unnamed file in $TMPDIR (/tmp) for reading and writing, so that no file is left
 * behind if the process is killed. Returns the descriptor, or -1 with an error. */
int fs_scratch(struct err **err);

/* Make a folder and its parents (0700), durably; an existing folder is fine. */
int fs_mkdirs(const char *path, struct err **err);
/* The same for folders that others may use: the umask alone takes rights away from `mode`. */
int fs_mkdirs_open(const char *path, mode_t mode, struct err **err);

/* Remove a file or a whole tree; absent is fine. Links are removed, never
 * followed; folders without rights are given them; another file system mounted
 * inside is an error and stays whole. Any depth, in bounded memory. */
int fs_remove_tree(const char *path, struct err **err);

/* Number of files in a tree, links included, and their bytes; a path that is a file counts as one.
 * An absent path counts as empty. No link is followed, and no other file system entered. */
int fs_measure(const char *path, uint64_t *ret_files, uint64_t *ret_bytes, struct err **err);

/* Tells a file from an earlier state of it: a program cannot set the ctime. As bytes, all of it is
 * defined. */
struct fs_stamp {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};
struct fs_stamp fs_stamp_of(const struct stat *st);
/* True if the file had been unchanged for long enough at `at` that any later write shows in its
 * times. */
bool fs_is_settled(const struct stat *st, struct utc at);

/* True if the open file was written to since `before`, by size and time. */
bool fs_has_changed(int fd, const struct stat *before);

bool fs_exists(const char *path); /* follows links */
/* Returns the number of entries of a directory that are named PREFIX and a number, as devices are;
 * -1 if it cannot be read. */
int fs_count_numbered(const char *path, const char *prefix);
/* The same where "absent" must be known: 1, 0, or -1 with an error for a look that may succeed
 * later. */
int fs_look(const char *path, struct err **err);
bool fs_is_dir(const char *path);
int fs_sync_dir(const char *path, struct err **err);
/* Make files that other programs have written durable: a file, or all files and folders of a tree,
 * and its name in the parent folder. Links are not followed. Uses one descriptor per level. A file
 * system without fsync is not an error. */
int fs_sync_tree(const char *path, struct err **err);
/* True if the file system of this folder cannot sync folders, which the functions above accept.
 * False too if that cannot be told. */
bool fs_refuses_dir_sync(const char *path);
/* An absolute path, relative to the working directory; ".", ".." and double slashes are resolved in
 * the text alone, links are not read. The caller frees it. */
char *fs_absolute(const char *path);
/* The same for a path typed by a user where no shell has expanded it: "~/x" is in HOME. */
char *fs_of_user(const char *path);

/* Turn errno into an error on `what` ("cannot write '…'"), with the hint for a
 * full disk or quota, a read-only file system or missing rights. */
int fs_error(struct err **err, int os_errno, const char *fmt, ...) STK_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as in err.h */
#define fs_error(...) (fs_error(__VA_ARGS__), -1)
#endif

#endif
