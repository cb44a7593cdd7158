/*
 * A git work tree, read only: the entries of its index and its commit, whether a file still is what
 * was committed, and the files of another commit. Only this code uses libgit2 (with git_library.c,
 * which loads it); the first repository that is opened starts it, and the last ends it.
 *
 * Nothing of a repository is executed: libgit2 runs no hooks and no filter programs. A repository
 * is read only if it belongs to the user, or if the user has allowed it by git's own
 * safe.directory: a foreign .git decides what is packed.
 *
 * Paths are relative to the top of the work tree. Errors carry EXIT_REFUSED and libgit2's own
 * words.
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

struct repo_entry { /* a path that the index or the commit has */
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

/* Opens the work tree around `root` (absolute, links resolved); with `exact` only if `root` is its
 * top. Returns 1 if opened, 0 if not found, -1 with an error. */
int source_repo_open(const char *root, bool exact, struct repo **ret, struct err **err);
void source_repo_freep(struct repo **repo);

/* Known of every open repository. */
struct repo_facts {
	char *prefix;       /* path of root: "" or "sub/folder/" */
	const char *top;    /* absolute, with a slash */
	char *info_dir;     /* folder of info/exclude, or NULL */
	char commit[65];    /* full id; "" before the first commit */
	bool ignores_modes; /* core.fileMode is false */
};
const struct repo_facts *source_repo_facts(const struct repo *repo);
char *source_repo_excludes(const struct repo *repo); /* core.excludesFile (owned) or NULL */

/* Loads index and commit; must come before any function below. `known` is an earlier
 * source_repo_mark(), or NULL: with that same index and commit nothing needs to be compared
 * again. */
int source_repo_load(struct repo *repo, const char *known, struct err **err);
/* Returns the checksum of the index and the id of the commit's tree if both hold the same files,
 * else "". Borrowed. */
#define REPO_MARK (4 * REPO_ID + 1)
const char *source_repo_mark(const struct repo *repo);
struct repo_entry *source_repo_entries(struct repo *repo, size_t *ret_count); /* by path */
struct repo_entry *source_repo_find(struct repo *repo, const char *path);
/* True if the index has a file below this folder. */
bool source_repo_tracks_below(struct repo *repo, const char *folder);

/* Returns 1 if the file (with this stat and git mode) is what the commit has, 0 if not, -1 with an
 * error. `target` is a link's target, else NULL. */
int source_repo_is_committed(struct repo *repo, const struct repo_entry *entry,
			     const struct stat *st, unsigned mode, const char *target,
			     struct err **err);

/* Appends the difference of these paths (sorted, NULL-terminated) to the commit, as text, with
 * `label` before each path; stops when `out` is full. */
int source_repo_patch(struct repo *repo, char *const *paths, const char *label, struct sb *out,
		      struct err **err);

/* --- files of a commit --- */

struct repo_blob {
	const char *path; /* relative to the prefix */
	unsigned mode;
	const void *bytes;
	size_t len;
};
/* Returns 0 to go on, -1 to fail. */
typedef int (*repo_blob_fn)(void *arg, const struct repo_blob *blob, struct err **err);

/* Resolves a revision to a full commit id (EXIT_SPEC if not found). */
int source_repo_resolve(struct repo *repo, const char *rev, char ret_commit[65], struct err **err);
/* True if this path is wanted. Submodules are asked for too; a wanted one is refused. */
typedef bool (*repo_want_fn)(void *arg, const char *path);
/* Passes every wanted file of the commit below the prefix to `fn`. */
int source_repo_commit_files(struct repo *repo, const char *commit, repo_want_fn want,
			     repo_blob_fn fn, void *arg, struct err **err);
/* Passes a single file of the commit to `fn`. */
int source_repo_commit_file(struct repo *repo, const char *commit, const char *path,
			    repo_blob_fn fn, void *arg, struct err **err);

#endif
