/*
 * Environment of the command. On a machine that people use it is exactly what the order and the
 * house rules say, without variables that happen to be set where the agent runs (a stray XLA_FLAGS
 * would make a false warm). In a container it begins with the container's own: container_env.h.
 */
#ifndef STK_NODE_SETUP_COMMAND_ENV_H
#define STK_NODE_SETUP_COMMAND_ENV_H

#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/node/claim.h"
#include "jobs/node/setup/agent_config.h"

struct command_env {
	char **list; /* NAME=VALUE, NULL-terminated; each name once */
	size_t count;
};

void command_env_put(struct command_env *env, const char *name, const char *value);
void command_env_drop(struct command_env *env, const char *name);
const char *command_env_get(const struct command_env *env, const char *name); /* NULL: not set */
void command_env_release(struct command_env *env);                            /* for AUTO() */

/* Builds the environment. Later ones win: PATH, HOME, USER, LANG, TMPDIR from our own environment,
 * in a container all of that but what container_env.h leaves out; the names that launchers read
 * (MASTER_ADDR, PET_*); the order's env, expanded; secrets from our own environment; STOKER_*. */
int command_env_build(const struct agent_config *config, const struct claim *claim,
		      struct command_env *ret, struct err **err);

/* Gives the order's command with its ${STOKER_…} expanded, NULL-terminated. The caller frees it. */
int command_env_command(const struct agent_config *config, const struct command_env *env,
			char ***ret, struct err **err);

/* Replaces ${STOKER_NAME} and ${STOKER_NAME:-text} in `text`, and each "$$" right before "{STOKER_"
 * or before such a reference by "$"; every other dollar sign stays as it is, and inserted text is
 * not expanded again. A variable that is not set is an error (EXIT_SPEC) that names it and `where`.
 * An empty value counts as set, but takes the text after ":-". */
int command_env_expand(const struct command_env *env, const char *text, const char *where,
		       char **ret, struct err **err);

#endif
