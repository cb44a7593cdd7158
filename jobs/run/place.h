/*
 * Where the state lies: on a disk of this machine, or on a file system that
 * others can reach too. SQLite's locks are unreliable on the latter, and its
 * write-ahead log needs memory that all its users share.
 */
#ifndef STK_RUN_PLACE_H
#define STK_RUN_PLACE_H

#include <stdbool.h>

/* By the type of the file system of the nearest folder that exists. What cannot be
 * looked at counts as local. */
bool place_on_network(const char *path);

/* Take the rights of others off the state directory on a local disk and off what
 * is kept in it, where that is ours: an older version or a copy may have left them.
 * A folder in which other things lie too keeps its own. */
void place_tighten(const char *dir);

/* Of the field f_type of statfs(2). FUSE counts as a network, because it can be. */
bool fs_type_is_network(unsigned long type);

#endif
