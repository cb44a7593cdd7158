/*
 * The agent directory (stoker-node with its libraries and its loader) as a
 * content-addressed part of the workspace: `agents/<digest>/`. It is never part
 * of the source or of the graph key.
 */
#ifndef STK_RUN_AGENT_H
#define STK_RUN_AGENT_H

#include "jobs/base/hash.h"
#include "jobs/store/store.h"

/* Bring it there unless it is there already. `ret_prefix` ("agents/<digest>/")
 * is yours to free. The agent is looked for in $STOKER_AGENT, beside this
 * program and where `install` puts it. */
int agent_publish(struct store *workspace, char **ret_prefix, struct err **err);

/* The same as one archive, for containers that fetch it themselves: its key
 * "agents/<digest>.<SHA-256 of the archive>.tar.gz" is yours to free. The same bytes on
 * every machine. */
int agent_publish_archive(struct store *workspace, const char *prefix, char **ret_key,
			  struct err **err);

/* SHA-256 of its program, by which an agent that came otherwise is known to be of the same
 * build. */
int agent_digest(char ret[SHA256_HEX], struct err **err);

/* A part of stoker by its name, looked for beside this program and where `install` puts
 * it. NULL: it is not there. Yours to free. */
char *program_beside(const char *name);

#endif
