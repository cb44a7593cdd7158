/* Finds a .git and its owner without libgit2: starting libgit2 takes longer than pinning a small
 * plain folder. */
#ifndef STK_SOURCE_GIT_PLACE_H
#define STK_SOURCE_GIT_PLACE_H

#include <stdbool.h>

/* Returns the nearest .git in `root` (absolute) or above it; NULL if not found. The caller frees
 * it. */
char *git_nearest(const char *root);

/* True if there is a .git. */
bool git_may_be_at(const char *root);

/* True if there is a .git that belongs to another user. */
bool git_is_of_another(const char *root);

#endif
