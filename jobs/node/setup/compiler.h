/*
 * Check of the compiler that the command will run with here, before it begins: the graphs in the
 * cache are those of the compiler that the compile manifest names, and with another one a training
 * would compile them all again, with every machine waiting.
 */
#ifndef STK_NODE_SETUP_COMPILER_H
#define STK_NODE_SETUP_COMPILER_H

#include "jobs/base/text/js.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/store/node_report.h"

/* Puts "compiler" into the report: what was found, and how that compares with the order's.
 * Returns -1 if it is another one, with an error that names both: the command must not begin. If
 * the environment cannot tell, the report says so, and the result is 0. */
int compiler_inspect(const struct agent_config *config, const struct command_env *env,
		     struct node_report *said, struct err **err);

#endif
