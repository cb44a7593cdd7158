/*
 * The files of a source folder: which of them are included, and what is in
 * them. Walking finds the names, hashing reads the contents.
 */
#ifndef STK_SOURCE_TREE_H
#define STK_SOURCE_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/source/git.h"
#include "jobs/source/source.h"

/* What `include` and `link` leave. Patterns are normal: no "./", no slash at
 * the end. */
struct filter {
	char **include; /* NULL-terminated; NULL: everything */
	bool *used;     /* a flag for each pattern: something matched */
	char **link;    /* NULL-terminated, may be NULL */
	char **own;     /* the same: what of our own lies below the root */
};

/* Checks the request's patterns and paths (EXIT_SPEC, with the field). */
int filter_init(struct filter *ret, const struct source_request *request, struct err **err);
void filter_release(struct filter *filter);
bool filter_takes(const struct filter *filter, const char *path);   /* a file */
bool filter_reaches(const struct filter *filter, const char *path); /* something below a folder */
void filter_mark(struct filter *filter, const char *path);          /* it is included */
int filter_check_used(const struct filter *filter, struct err **err);

/* A repository that files belong to: the one around the root, or a submodule's. */
struct scope {
	struct repo *repo; /* owned */
	char *prefix;      /* path in the repository = prefix + (path - skip bytes) */
	size_t skip;
	char *label; /* path in the root = label + (path in the repository - its prefix) */
	struct scope *next;
};

struct tree_file {
	char *path; /* relative to the root */
	unsigned mode;
	uint64_t size;
	char sha256[SHA256_HEX];
	char *target;   /* of a link */
	struct stat st; /* when its content was read */
	const struct scope *scope;
	const struct repo_entry *entry; /* in scope->repo; NULL: untracked, or no repository */
};

struct tree {
	char *root; /* absolute, links resolved */
	int fd;
	struct scope *scopes; /* the outermost last; NULL: a plain folder */
	struct tree_file *files;
	size_t count, cap;
	struct sb moved; /* submodules at another commit than recorded, each with its NUL */
};

int tree_open(struct tree *ret, const char *root, struct err **err);
void tree_release(struct tree *tree);

/* Find the included files, sorted by path. `repo` (loaded, taken over) is the
 * one around the root, or NULL. */
int tree_walk(struct tree *tree, struct repo *repo, struct filter *filter, struct err **err);

/* Look at them all, and read what has changed since `known` was written (which is used
 * up): mode, size and digest of each, on all cores. `ret_digests` is what that file
 * should hold now, with this mark; empty if it does. Links that leave the tree, files
 * that are neither and more than ARCHIVE_BYTES_MAX are errors. */
struct digests;
int tree_hash(struct tree *tree, struct digests *known, const char *mark, struct sb *ret_digests,
	      struct err **err);

/* Room for one more file. */
struct tree_file *tree_add(struct tree *tree, const char *path);

/* "use source.include to choose, or source.link …": for a tree that is too big. */
int tree_too_big(struct err **err, const char *root, const char *what);
/* A name that is no UTF-8. */
int tree_bad_name(struct err **err, const char *path);

#endif
