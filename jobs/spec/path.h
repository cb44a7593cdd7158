/*
 * The place of a walk over the tree, kept on the stack and turned into text only when there is
 * something to say about it.
 */
#ifndef STK_SPEC_PATH_H
#define STK_SPEC_PATH_H

#include <stddef.h>

struct path {
	const struct path *up; /* NULL: this is a top-level name */
	const char *name;      /* NULL: item `index` of the list above */
	size_t index;
};

/* Returns "metrics[1].regex"; NULL for a NULL path. The caller frees it. */
char *path_text(const struct path *path);

#endif
