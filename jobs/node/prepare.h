/*
 * What must be there before the command starts: a fresh source tree, its links,
 * the folders it writes to, the program itself.
 */
#ifndef STK_NODE_PREPARE_H
#define STK_NODE_PREPARE_H

#include "jobs/base/err.h"
#include "jobs/node/task.h"
#include "jobs/store/store.h"

/* Unpack the source anew (a leftover of an earlier start is removed), put the
 * order's links into it, and make the folders. */
int prepare_folders(const struct task *task, struct store *store, struct err **err);

/* Link the checkpoint to resume from, which is here by now (fetch.h), into the new
 * checkpoint folder, so that scripts that look for the newest one find it. */
int prepare_checkpoint(const struct task *task, struct err **err);

/* Forget what a scratch attempt wrote. */
void prepare_discard(const struct task *task);

/* Where the command's program is: as execvp would find it with this PATH from
 * the source tree. On failure `ret_exit` is 126 or 127, as a shell would say,
 * and the error suggests what was meant. */
int prepare_program(const struct task *task, const char *program, const char *path, char **ret,
		    int *ret_exit, struct err **err);

#endif
