/*
 * The agent directory, identified by its content: its name in a workspace is a digest of all its
 * files, so that the processes that upload it, fetch it and run it refer to the same one.
 */
#ifndef STK_ENGINE_DELIVERY_AGENT_FILES_H
#define STK_ENGINE_DELIVERY_AGENT_FILES_H

#include "jobs/base/text/js.h"
#include "jobs/store/store.h"

#define AGENT_PROGRAM "stoker-node"
#define AGENT_START   "start" /* jobs/node/start.sh: starts it wherever it lies */
#define AGENT_LOADER  "lib/loader"

/* Lists every file of the folder and of its direct subfolders: {name relative to it: SHA-256}, a
 * new reference, and the key prefix derived from it, "agents/<digest>/"; the caller frees the
 * prefix. Hidden files are left out. */
int agent_files(const char *folder, json_t **ret_files, char **ret_prefix, struct err **err);

/* Ensures that the agent of this key prefix is in `folder`, ready to be executed: if absent, it is
 * fetched from the store and compared with its name. A process killed in the middle leaves nothing
 * that is taken for complete. */
int agent_fetch(struct store *store, const char *agent_key, const char *folder, struct err **err);

#endif
