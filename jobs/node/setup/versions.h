/*
 * Versions that decide how fast a command runs and what it computes, as they are where it runs: of
 * its Python with framework and compiler, of the drivers of the accelerators, of the system. For
 * people who compare runs, and repeat one; nothing is decided by them.
 *
 * They come from files alone: the metadata of installed packages, /proc and /sys. Nothing is
 * imported or run, except a version manager's `python` shim (python.h says how long it may take).
 */
#ifndef STK_NODE_SETUP_VERSIONS_H
#define STK_NODE_SETUP_VERSIONS_H

#include "jobs/base/text/js.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/command_env.h"
#include "jobs/store/node_report.h"

/* Puts "versions" into the report. A version that cannot be found is left out; there is no error.
 * Python is that of the command's program, or, if that is no Python program (a shell script,
 * mpirun), the python3, else the python, of the command's PATH. */
void versions_inspect(const struct agent_config *config, const struct command_env *env,
		      struct node_report *said);

#endif
