/*
 * How a work tree differs from its commit, in what is included.
 */
#ifndef STK_SOURCE_CHANGES_H
#define STK_SOURCE_CHANGES_H

#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/source/tree.h"

struct change {
	char *path;      /* relative to the root */
	const char *how; /* "changed", "new", "deleted", "at another commit" */
	const struct scope *scope;
	char *repo_path; /* NULL for a submodule */
};

struct changes {
	struct change *list; /* by path */
	size_t count;
};

/* `tree` has been walked and hashed. */
int changes_find(struct tree *tree, const struct filter *filter, struct changes *ret,
		 struct err **err);
void changes_release(struct changes *changes);

/* "train.py (changed), new.py (new) and 3 more". Yours to free. */
char *changes_summary(const struct changes *changes);

/* The difference as text, cut at `max` bytes. Yours to free. */
int changes_patch(const struct tree *tree, const struct changes *changes, size_t max, char **ret,
		  struct err **err);

#endif
