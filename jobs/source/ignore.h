/*
 * Exclusion of files by .gitignore, by the rules of gitignore(5).
 *
 * Implemented here, because the ignore functions of libgit2 1.5 (and later: its issue 7284) drop a
 * "!pattern" that takes back a rule of another file, and so lose files that git itself keeps (seen
 * with 1.5.1: "*.json" at the top and "!keep.json" in sub/ leave sub/keep.json out); and because a
 * plain folder has no repository. tests/cli/test_own_folders.py compares it with git.
 *
 * Rules form a chain from the nearest file outwards: each folder's .gitignore, then info/exclude,
 * then core.excludesFile. The nearest file with a rule for a path decides; within a file the last
 * rule that matches does. A caller walks from the top and does not enter excluded folders, so
 * nothing below one can be taken back, as in git.
 */
#ifndef STK_SOURCE_IGNORE_H
#define STK_SOURCE_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

struct ignore_rule;

struct ignore {
	const struct ignore *outer; /* borrowed; NULL at the end of the chain */
	size_t base;                /* bytes that ignore_check() drops from the front of a path */
	struct ignore_rule *rules;
	size_t count;
	char *text; /* storage of the patterns */
};

/* Loads the rules of the file `name` in the folder `dir` (AT_FDCWD and a path will do). No rules if
 * the file is absent or a link, which git does not follow either. `what` names the file in
 * errors. */
int ignore_load(struct ignore *ret, const struct ignore *outer, size_t base, int dir,
		const char *name, const char *what, struct err **err);
void ignore_parse(struct ignore *ret, const struct ignore *outer, size_t base, const char *text,
		  size_t len);
void ignore_release(struct ignore *ignore); /* releases this link of the chain only */

/* True if the chain excludes `path` (no slash at the end); `chain` may be NULL. */
bool ignore_check(const struct ignore *chain, const char *path, bool is_folder);

#endif
