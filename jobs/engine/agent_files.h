/*
 * The agent directory as what it is made of: its name in a workspace is a digest of
 * all its files, so who brings it there, who fetches it and who runs it mean the same.
 */
#ifndef STK_ENGINE_AGENT_FILES_H
#define STK_ENGINE_AGENT_FILES_H

#include "jobs/base/json.h"
#include "jobs/store/store.h"

#define AGENT_PROGRAM "stoker-node"
#define AGENT_START   "start" /* jobs/node/start.sh: starts it wherever it lies */
#define AGENT_LOADER  "lib/loader"

/* Every file of the folder and of the folders in it: {name relative to it: SHA-256}, a
 * new reference, and the key prefix that follows from it, "agents/<digest>/", yours to
 * free. Hidden ones are left out. */
int agent_files(const char *folder, json_t **ret_files, char **ret_prefix, struct err **err);

/* See that the agent of this key prefix lies in `folder`, ready to be executed: fetched
 * from the store and compared with its name, if it is not there yet. Whoever is killed in
 * the middle leaves nothing that is taken for whole. */
int agent_fetch(struct store *store, const char *agent_key, const char *folder, struct err **err);

#endif
