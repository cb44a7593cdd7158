/*
 * YAML text to a tree of nodes, by libyaml's events. Only yaml.c uses libyaml.
 *
 * Beyond libyaml: places count from 1, duplicate keys are errors (libyaml
 * lets them pass), one document only, tags only where they change nothing but
 * "this is a string", merge keys (<<) work, and nothing can
 * blow up: depth, nodes and text are bounded with every alias counted in full.
 */
#ifndef STK_SPEC_YAML_H
#define STK_SPEC_YAML_H

#include "jobs/spec/node.h"

#define TREE_DEPTH_MAX 64
#define TREE_NODES_MAX ((size_t)200000)  /* aliases counted in full */
#define TREE_TEXT_MAX  ((size_t)8 << 20) /* bytes of scalars, likewise */

/* `text` must be UTF-8 without NUL. `set` marks the places of an override, else NULL. Returns 0
 * or -1; duplicate keys are reported and still give 0. *ret is NULL for a text without a
 * document. */
int spec_tree_parse(struct arena *arena, struct reporter *reporter, const char *text, size_t len,
		    const char *set, struct node **ret) STK_MUST_CHECK;
/* The same for the bytes of a file, which are checked first. */
int spec_file_parse(struct arena *arena, struct reporter *reporter, const char *text, size_t len,
		    struct node **ret) STK_MUST_CHECK;

#endif
