/*
 * A git work tree, read only: what its index and its commit know, whether a
 * file still is what was committed, and the files of another commit. The one home
 * of libgit2 (with git_library.c, which loads it), started by the first repository
 * that is opened and ended with the last.
 *
 * Nothing of a repository is executed: libgit2 runs no hooks and no filter
 * programs. That is also why its check that the repository belongs to the user
 * is switched off, which would refuse most containers and CI machines.
 *
 * Paths are relative to the top of the work tree. Errors carry EXIT_REFUSED
 * and libgit2's own words.
 */
#ifndef STK_SOURCE_GIT_H
#define STK_SOURCE_GIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/base/err.h"
#include "jobs/base/sb.h"

struct repo;

#define REPO_ID 20 /* bytes of an object id (SHA-1) */

struct repo_entry { /* one path that the index or the commit knows */
	char *path;
	bool in_index, in_commit;
	bool seen;         /* for the caller: found in the work tree */
	bool absent_is_ok; /* left out by a sparse checkout */
	bool submodule;
	unsigned mode, commit_mode; /* 0100644, 0100755, 0120000, 0160000 */
	unsigned char id[REPO_ID], commit_id[REPO_ID];
	int64_t mtime_s, ctime_s; /* as the index remembers the file */
	uint32_t mtime_ns, ctime_ns, ino, size;
};

/* The work tree that `root` (absolute, links resolved) lies in; with `exact`
 * only if it is its top. 1 opened, 0 there is none, -1 error. */
int repo_open(const char *root, bool exact, struct repo **ret, struct err **err);
void repo_freep(struct repo **repo);

const char *repo_prefix(const struct repo *repo);   /* of root: "" or "sub/folder/" */
const char *repo_top(const struct repo *repo);      /* absolute, with a slash */
const char *repo_commit(const struct repo *repo);   /* full id; "" before the first commit */
const char *repo_info_dir(const struct repo *repo); /* where info/exclude lies, or NULL */
char *repo_excludes(const struct repo *repo);       /* core.excludesFile; yours, or NULL */
bool repo_ignores_modes(const struct repo *repo);   /* core.fileMode is false */

/* Load index and commit; before this nothing below may be called. `known` is what
 * repo_mark said at another time, or NULL: with that index and that commit nothing needs
 * to be compared again. */
int repo_load(struct repo *repo, const char *known, struct err **err);
/* The checksum of the index and the id of the commit's tree if both hold the same files,
 * else "". Borrowed. */
#define REPO_MARK (4 * REPO_ID + 1)
const char *repo_mark(const struct repo *repo);
struct repo_entry *repo_entries(struct repo *repo, size_t *ret_count); /* by path */
struct repo_entry *repo_find(struct repo *repo, const char *path);
/* Whether the index has a file below this folder. */
bool repo_tracks_below(struct repo *repo, const char *folder);

/* Is the file (with this stat and git mode) what the commit has? For a link,
 * `target` is what it says. 1, 0, -1. */
int repo_is_committed(struct repo *repo, const struct repo_entry *entry, const struct stat *st,
		      unsigned mode, const char *target, struct err **err);

/* Append the difference of these paths (sorted, NULL-terminated) to the commit,
 * as text, with `label` before each path; stops where `out` is full. */
int repo_patch(struct repo *repo, char *const *paths, const char *label, struct sb *out,
	       struct err **err);

/* --- files of a commit --- */

struct repo_blob {
	const char *path; /* relative to repo_prefix() */
	unsigned mode;
	const void *bytes;
	size_t len;
};
/* 0 go on, -1 fail. */
typedef int (*repo_blob_fn)(void *arg, const struct repo_blob *blob, struct err **err);

/* Resolve a revision to a full commit id (EXIT_SPEC if it is none). */
int repo_resolve(struct repo *repo, const char *rev, char ret_commit[65], struct err **err);
/* Whether this path is wanted; submodules are asked for too and refused. */
typedef bool (*repo_want_fn)(void *arg, const char *path);
/* Every wanted file of the commit below the prefix. */
int repo_commit_files(struct repo *repo, const char *commit, repo_want_fn want, repo_blob_fn fn,
		      void *arg, struct err **err);
/* One file of the commit. */
int repo_commit_file(struct repo *repo, const char *commit, const char *path, repo_blob_fn fn,
		     void *arg, struct err **err);

#endif
