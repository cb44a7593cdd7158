/*
 * The environment of the command: exactly what the order and the house rules
 * say, nothing that happens to be set where the agent runs (a stray XLA_FLAGS
 * would make a false warm).
 */
#ifndef STK_NODE_ENVLIST_H
#define STK_NODE_ENVLIST_H

#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/node/claim.h"
#include "jobs/node/task.h"

struct envlist {
	char **list; /* NAME=VALUE, NULL-terminated; each name once */
	size_t count;
};

void envlist_put(struct envlist *env, const char *name, const char *value);
void envlist_drop(struct envlist *env, const char *name);
const char *envlist_get(const struct envlist *env, const char *name); /* NULL: not set */
void envlist_release(struct envlist *env);                            /* for AUTO() */

/* All of it. Later ones win: PATH, HOME, USER, LANG, TMPDIR from our own
 * environment; the names that launchers read (MASTER_ADDR, PET_*); the order's
 * env, expanded; secrets from our own environment; STOKER_*. */
int envlist_build(const struct task *task, const struct claim *claim, struct envlist *ret,
		  struct err **err);

/* The order's command with its ${STOKER_…} expanded. NULL-terminated, yours. */
int envlist_command(const struct task *task, const struct envlist *env, char ***ret,
		    struct err **err);

/* Replace ${STOKER_NAME} and ${STOKER_NAME:-text} in `text`, and each "$$" right
 * before "{STOKER_" or before such a reference by "$"; every other dollar sign
 * stays as it is, and what comes in is not looked at again. One that is not set is an error
 * (EXIT_SPEC) that names it and `where`. An empty value counts as set, but takes the text after
 * ":-". */
int envlist_expand(const struct envlist *env, const char *text, const char *where, char **ret,
		   struct err **err);

#endif
