/*
 * Location of the state: on a disk of this machine, or on a file system that other machines can
 * reach too. SQLite's locks are unreliable on the latter, and its write-ahead log needs memory that
 * all its users share.
 */
#ifndef STK_RUN_JOURNAL_STATE_DIR_H
#define STK_RUN_JOURNAL_STATE_DIR_H

#include <stdbool.h>

/* True if the nearest existing folder is on a network file system. A path that cannot be looked at
 * counts as local. */
bool state_dir_on_network(const char *path);

/* Removes the rights of group and others from the state directory on a local disk and from the
 * files kept in it that this user owns: an older version or a copy may have left them. A folder
 * that also holds foreign files keeps its own rights. */
void state_dir_tighten(const char *dir);

/* True if f_type of statfs(2) is a network file system. FUSE counts as one, because it can be. */
bool state_dir_type_is_network(unsigned long type);

#endif
