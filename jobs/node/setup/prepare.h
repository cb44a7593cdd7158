/*
 * Preparation before the command starts: a fresh source tree, its links, the folders it writes to,
 * the program itself.
 *
 * node/setup: what the command finds when it starts: its order read, source unpacked, environment
 * built, network and compiler asked. After the start nothing here runs.
 */
#ifndef STK_NODE_SETUP_PREPARE_H
#define STK_NODE_SETUP_PREPARE_H

#include "jobs/base/err.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"

/* Unpacks the source (removing leftovers of an earlier start), puts the order's links into it, and
 * makes the folders. */
int prepare_folders(const struct agent_config *config, struct store *store, struct err **err);

/* Links the checkpoint to resume from, which is here by now (fetch.h), into the new checkpoint
 * folder, so that scripts that look for the newest one find it. */
int prepare_checkpoint(const struct agent_config *config, struct err **err);

/* Removes what a scratch attempt wrote. */
void prepare_discard(const struct agent_config *config);

/* Finds the command's program, as execvp would with this PATH from the source tree. On failure
 * `ret_exit` is 126 or 127, as a shell would say, and the error suggests what was meant; 0: it is
 * not known whether the program is there. */
int prepare_program(const struct agent_config *config, const char *program, const char *path,
		    char **ret, int *ret_exit, struct err **err);

#endif
