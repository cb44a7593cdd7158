/*
 * The agent directory (stoker-node with its libraries and its loader) as a
 * content-addressed part of the workspace: `agents/<digest>/`. It is never part
 * of the source or of the graph key.
 */
#ifndef STK_RUN_AGENT_H
#define STK_RUN_AGENT_H

#include "jobs/store/store.h"

/* Bring it there unless it is there already. `ret_prefix` ("agents/<digest>/")
 * is yours to free. The agent is looked for in $STOKER_AGENT, beside this
 * program and where `install` puts it. */
int agent_publish(struct store *workspace, char **ret_prefix, struct err **err);

/* A part of stoker by its name, looked for beside this program and where `install` puts
 * it. NULL: it is not there. Yours to free. */
char *program_beside(const char *name);

#endif
