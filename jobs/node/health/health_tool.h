/*
 * Programs of the image that a check-up runs: started with a time limit, their output kept up to a
 * bound, and no process of them left afterwards.
 */
#ifndef STK_NODE_HEALTH_HEALTH_TOOL_H
#define STK_NODE_HEALTH_HEALTH_TOOL_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/node/setup/command_env.h"

#define TOOL_OUTPUT_MAX ((size_t)1 << 20) /* bytes of stdout and of stderr; the rest is dropped */

struct tool_result {
	struct sb out, err;
	bool hung;  /* not ended by `end`, and killed */
	int status; /* as a shell gives it */
};

/* Returns the path of a program, looked for along the environment's PATH, then where the Neuron SDK
 * is installed (/opt/aws/neuron/bin). NULL if not found. The caller frees it. */
char *health_tool_find(const struct command_env *env, const char *name);

/* Runs a program in `folder` and waits for its end, until `end` at most. It leads a session of its
 * own, all of which is killed then. Returns -1 if it cannot be started. */
int health_tool_run(const struct command_env *env, const char *folder, char *const *argv,
		    struct mono end, struct tool_result *ret, struct err **err);
void health_tool_release(struct tool_result *result); /* for AUTO(); { 0 } is fine */

/* Returns the last line that is not blank, of stderr, else of stdout, made safe for a terminal and
 * not longer than a line of a report may be; empty if there is none. The caller frees it. */
char *health_tool_last_words(const struct tool_result *result);

#endif
