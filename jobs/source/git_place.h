/* Finds a .git and its owner without libgit2: starting libgit2 takes longer than pinning a small
 * plain folder. */
#ifndef STK_SOURCE_GIT_PLACE_H
#define STK_SOURCE_GIT_PLACE_H

#include <stdbool.h>

#include "jobs/base/err.h"

/* Finds the nearest .git in `root` (absolute) or above it. Returns 1 with its path, which the
 * caller frees (`ret` may be NULL), 0 if there is none, -1 if that cannot be told now. */
int git_nearest(const char *root, char **ret, struct err **err);

/* True if there is a .git that belongs to another user. */
bool git_is_of_another(const char *root);

#endif
