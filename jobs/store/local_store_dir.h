/*
 * The local folder that goes with a store. It holds what is too big for objects, what needs
 * locks and what programs want as paths. For a directory store it is the directory itself, so
 * that a key names object and file alike. For any other store it is a folder of this project,
 * found again from the store's URL:
 *
 *   <root>/<digest of the URL>/<key>
 *
 * The root is $STOKER_WORK, else $XDG_STATE_HOME/stoker/work, else ~/.local/state/stoker/work,
 * else, if HOME is not a folder, $TMPDIR/stoker-<uid> (/tmp). The folder belongs to this user
 * alone: it is made with mode 0700, and refused if it has another owner.
 */
#ifndef STK_STORE_LOCAL_STORE_DIR_H
#define STK_STORE_LOCAL_STORE_DIR_H

#include "jobs/store/store.h"

/* Variable that names the root; the engines set it for the agents they start. */
#define WORK_VARIABLE "STOKER_WORK"

/* Returns the absolute path of the root without making it. The caller frees it. */
char *local_store_root(void);

/* Returns the absolute path of a store's folder without making it. The caller frees it. */
char *local_store_dir(const struct store *store);

/* Makes that folder. Fails with EXIT_REFUSED if it cannot be made or others may write to it. */
int local_store_dir_make(const struct store *store, char **ret, struct err **err);

#endif
