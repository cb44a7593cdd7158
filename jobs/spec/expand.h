/*
 * ${VAR} and ${VAR:-default} in values, never in keys. ${STOKER_…} stays for
 * the agent to expand on the node; $$ is a literal $. What comes out of $$ or of
 * a variable is never expanded again, neither here nor on the node: where it looks
 * like a reference, the node's `deferred` says that it is none.
 */
#ifndef STK_SPEC_EXPAND_H
#define STK_SPEC_EXPAND_H

#include "jobs/spec/node.h"

#define EXPAND_TEXT_MAX ((size_t)8 << 20) /* bytes that come from variables */

/* Expand every value below `root` in place, reporting what is unset or
 * malformed; such values are marked unknown. */
void expand_tree(struct arena *arena, struct reporter *reporter, spec_getenv_fn *getenv_fn,
		 struct node *root);

#endif
