/*
 * --set path=value: overrides put into the tree before it is checked, so they
 * are typed, expanded and checked like everything else.
 */
#ifndef STK_SPEC_SET_H
#define STK_SPEC_SET_H

#include "jobs/spec/node.h"

/* Applies each "path=value" in order; the later wins. `root` is a map. */
void set_apply(struct arena *arena, struct reporter *reporter, struct node *root,
	       char *const *sets);

#endif
