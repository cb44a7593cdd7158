/*
 * Where on this machine the files lie that go with a store: what is too big for
 * objects, what needs locks, what programs want as paths. Of a directory that is
 * the directory itself, so that a key names object and file alike; of any other
 * store a folder of our own, found again by whoever knows the store's URL:
 *
 *   <root>/<digest of the URL>/<key>
 *
 * The root is $STOKER_WORK, else $XDG_STATE_HOME/stoker/work, else
 * ~/.local/state/stoker/work, else, where HOME is no folder, $TMPDIR/stoker-<uid>
 * (/tmp). What lies there is nobody else's: made 0700, refused if it is not ours.
 */
#ifndef STK_STORE_WORK_H
#define STK_STORE_WORK_H

#include "jobs/store/store.h"

/* The variable that names the root: engines set it for the agents they start. */
#define WORK_VARIABLE "STOKER_WORK"

/* The root, absolute; not made. Yours to free. */
char *work_root(void);

/* The folder of a store, absolute; not made. Yours to free. */
char *work_folder(const struct store *store);

/* Make that folder. EXIT_REFUSED if it cannot be made, or others may write to it. */
int work_folder_make(const struct store *store, char **ret, struct err **err);

#endif
