/*
 * The files of a source folder: which are included, and their contents. Walking finds the names,
 * hashing reads the contents.
 */
#ifndef STK_SOURCE_TREE_H
#define STK_SOURCE_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/source/git.h"
#include "jobs/source/pin_aside.h"
#include "jobs/source/source.h"

/* Filter by `include` and `link`. Patterns are normalised: no "./", no slash at the end. */
struct filter {
	char **include; /* NULL-terminated; NULL: everything */
	bool *used;     /* a flag for each pattern: something matched */
	char **link;    /* NULL-terminated, may be NULL */
	char **own;     /* the same: stoker's own paths below the root */
};

/* Checks the request's patterns and paths (EXIT_SPEC, with the field). */
int filter_init(struct filter *ret, const struct source_request *request, struct err **err);
void filter_release(struct filter *filter);
bool filter_takes(const struct filter *filter, const char *path);   /* a file */
bool filter_reaches(const struct filter *filter, const char *path); /* something below a folder */
void filter_mark(struct filter *filter, const char *path);          /* notes a file as included */
int filter_check_used(const struct filter *filter, struct err **err);

/* A repository that files belong to: the one around the root, or a submodule's. */
struct scope {
	struct repo *repo; /* owned */
	char *prefix;      /* path in the repository = prefix + (path - skip bytes) */
	size_t skip;
	char *label; /* path in the root = label + (path in the repository - its prefix) */
	struct scope *next;
};

struct source_tree_file {
	char *path; /* relative to the root */
	unsigned mode;
	uint64_t size;
	char sha256[SHA256_HEX], reduced[SHA256_HEX]; /* as in struct source_file */
	char *target;                                 /* target of a link */
	struct stat st;                               /* when its content was read */
	const struct scope *scope;
	const struct repo_entry *entry; /* in scope->repo; NULL: untracked, or no repository */
};

struct source_tree {
	char *root; /* absolute, links resolved */
	int fd;
	struct scope *scopes; /* the outermost last; NULL: a plain folder */
	struct source_tree_file *files;
	size_t count, cap;
	const struct pin_ticker *ticker; /* told of progress; NULL: not told */
	struct sb moved; /* submodules at another commit than recorded, each with its NUL */
};

int tree_open(struct source_tree *ret, const char *root, struct err **err);
void tree_release(struct source_tree *tree);

/* Finds the included files, sorted by path. `repo` (loaded, taken over) is the repository around
 * the root, or NULL. */
int tree_walk(struct source_tree *tree, struct repo *repo, struct filter *filter, struct err **err);

/* Sets mode, size and digest of each file, on all cores; reads only files that have changed since
 * `known` was written (which is used up). `ret_digests` is the new content of that file, with this
 * mark; empty if unchanged. Links that leave the tree, entries that are neither file nor link and
 * more than ARCHIVE_BYTES_MAX are errors. */
struct digest_cache;
int tree_hash(struct source_tree *tree, struct digest_cache *known, const char *mark,
	      struct sb *ret_digests, struct err **err);

/* Adds a file; only its path is set. */
struct source_tree_file *tree_add(struct source_tree *tree, const char *path);
void tree_sort(struct source_tree *tree); /* by path */

/* Fails for a tree that is too big, with the hint to use source.include or source.link. */
int tree_too_big(struct err **err, const char *root, const char *what);
/* Fails for a name that is not UTF-8. */
int tree_bad_name(struct err **err, const char *path);

#endif
