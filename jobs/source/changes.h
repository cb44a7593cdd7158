/* Differences between a work tree and its commit, among the included files. */
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

/* Finds the changes of `tree`, which must be walked and hashed. */
int changes_find(struct source_tree *tree, const struct filter *filter, struct changes *ret,
		 struct err **err);
void changes_release(struct changes *changes);

/* Returns "train.py (changed), new.py (new) and 3 more". The caller frees it. */
char *changes_summary(const struct changes *changes);

/* Makes the difference as text, cut at `max` bytes. The caller frees it. */
int changes_patch(const struct source_tree *tree, const struct changes *changes, size_t max,
		  char **ret, struct err **err);

#endif
