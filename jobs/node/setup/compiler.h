/*
 * Check of the compiler that the command will run with here, before it begins: the graphs in the
 * cache are those of the compiler that the compile manifest names, and with another one a training
 * would compile them all again, with every machine waiting.
 */
#ifndef STK_NODE_SETUP_COMPILER_H
#define STK_NODE_SETUP_COMPILER_H

#include "jobs/base/text/js.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/store/node_report.h"

/* Puts "compiler" into the report: what was found, and how that compares with the order's.
 * Returns -1 if it is another one, with an error that names both: the command must not begin. If
 * the environment cannot tell, the report says so, and the result is 0. */
int compiler_inspect(const struct agent_config *config, const struct command_env *env,
		     struct node_report *said, struct err **err);

/* Fills in where the command's own program is looked for: not the front-end that is put before it.
 * The caller frees `*ret_program`, to which `ret` refers; all else is borrowed. Without a program
 * the other members are set all the same. */
int compiler_place(const struct agent_config *config, const struct command_env *env,
		   char **ret_program, struct program_place *ret, struct err **err);

#endif
