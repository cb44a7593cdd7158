/*
 * The agent directory (stoker-node with its libraries and its loader) as a
 * content-addressed part of the workspace: `agents/<digest>/`. It is never part
 * of the source or of the graph key.
 */
#ifndef STK_RUN_PLAN_AGENT_H
#define STK_RUN_PLAN_AGENT_H

#include "jobs/base/hash.h"
#include "jobs/store/store.h"

/* Uploads the agent unless the workspace has it already. The caller frees `ret_prefix`
 * ("agents/<digest>/"). The agent is looked for in $STOKER_AGENT, beside this program and where
 * `install` puts it. */
int agent_publish(struct store *workspace, char **ret_prefix, struct err **err);

/* The same as one archive, for containers that download it themselves. The caller frees the key
 * "agents/<digest>.<SHA-256 of the archive>.tar.gz". The bytes are the same on every machine. */
int agent_publish_archive(struct store *workspace, const char *prefix, char **ret_key,
			  struct err **err);

/* Looks whether the agent is whole, as publishing it needs it. The caller frees the folder. */
int agent_find(char **ret_folder, size_t *ret_files, struct err **err);

/* Returns the SHA-256 of the agent's program, which shows whether an agent delivered in another way
 * is of the same build. */
int agent_digest(char ret[SHA256_HEX], struct err **err);

#endif
