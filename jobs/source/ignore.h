/*
 * What .gitignore files exclude, by the rules of gitignore(5).
 *
 * Our own, because the ignore functions of libgit2 1.5 (and later: its issue
 * 7284) drop a "!pattern" that takes back a rule of another file, and so lose
 * files that git itself keeps; and because a plain folder has no repository.
 *
 * Rules form a chain from the nearest file outwards: each folder's .gitignore,
 * then info/exclude, then core.excludesFile. The nearest that says something
 * about a path decides; in one file the last rule that matches does. A caller
 * walks from the top and does not enter excluded folders, so nothing below one
 * can be taken back, as in git.
 */
#ifndef STK_SOURCE_IGNORE_H
#define STK_SOURCE_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

struct ignore_rule;

struct ignore {
	const struct ignore *outer; /* borrowed; NULL at the end of the chain */
	size_t base;                /* paths given to ignore_check lose so many bytes first */
	struct ignore_rule *rules;
	size_t count;
	char *text; /* the patterns lie in here */
};

/* Rules of the file `name` in the folder `dir` (AT_FDCWD and a path will do).
 * None if it is not there, or a link, which git does not follow either. `what`
 * names the file in errors. */
int ignore_load(struct ignore *ret, const struct ignore *outer, size_t base, int dir,
		const char *name, const char *what, struct err **err);
void ignore_parse(struct ignore *ret, const struct ignore *outer, size_t base, const char *text,
		  size_t len);
void ignore_release(struct ignore *ignore); /* this link of the chain only */

/* Whether the chain excludes `path` (no slash at the end); `chain` may be NULL. */
bool ignore_check(const struct ignore *chain, const char *path, bool is_folder);

#endif
