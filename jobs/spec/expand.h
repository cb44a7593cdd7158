/*
 * ${VAR} and ${VAR:-default} in values, never in keys. ${STOKER_…} stays for
 * the agent to expand on the node; $$ is a literal $. The result of $$ or of
 * a variable is never expanded again, neither here nor on the node: if it looks
 * like a reference, the node's `deferred` says that it is not one.
 */
#ifndef STK_SPEC_EXPAND_H
#define STK_SPEC_EXPAND_H

#include "jobs/spec/node.h"

#define EXPAND_TEXT_MAX ((size_t)8 << 20) /* bytes that come from variables */

/* Expands every value below `root` in place and reports variables that are unset or malformed;
 * such values are marked unknown. */
void expand_tree(struct arena *arena, struct reporter *reporter, spec_getenv_fn *getenv_fn,
		 struct node *root);

#endif
