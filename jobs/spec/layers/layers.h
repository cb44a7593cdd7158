/*
 * The layers of a spec, the lowest first:
 *
 *   what is built in      defaults of fields.def
 *   configuration         the user's own file: config.c
 *   `extends`             the files that a spec stands on, in their order: extends.c
 *   the spec
 *   `profiles`            those that --use names, in that order: profiles.c
 *   --set                 set.c
 *
 * One rule puts a layer on those below it (merge.c): mappings are merged by key, lists and scalars
 * replaced, and null takes a field back to its default. Every value keeps the mark of the file and
 * the profile that said it.
 *
 * A relative path is relative to the file that says it. Below, paths are relative to the spec:
 * place.c rewrites those of other files.
 *
 * spec/layers: from the files of a spec to one tree. What a value means is not known here.
 */
#ifndef STK_SPEC_LAYERS_LAYERS_H
#define STK_SPEC_LAYERS_LAYERS_H

#include "jobs/spec/resolved.h"

/* Number of files that may stand on one another. */
#define EXTENDS_DEPTH_MAX 8

/* --- merge.c --- */

/* The effect of a null that stands above no value. */
enum null_rule {
	NULL_DROPS, /* nothing: the field has its default anyway */
	NULL_STAYS, /* null stays, for the table to judge */
	NULL_COUNTS /* null stays, also above a value: in a profile, for when that is used */
};

/* Returns `over` on top of `base`, which both stay as they are. They are mappings of this row;
 * FIELD_NONE: the spec. */
struct node *merge_nodes(struct arena *arena, field_id field, const struct node *base,
			 const struct node *over, enum null_rule rule);

/* --- extends.c --- */

/* Puts the spec's tree on the files that it extends, and takes `extends` out of it. Returns 0, or
 * -1 after problems that leave no tree to check. */
int extends_apply(struct binder *binder) STK_MUST_CHECK;
/* Returns the place of `path` as a file says it: a relative one is beside that file. */
char *extends_beside(const char *file, const char *path);

/* --- profiles.c --- */

/* Puts the profiles that were chosen on the spec's tree, and takes `profiles` out of it. Their
 * names are in spec->profiles. A profile that nobody chose is checked for its form alone. */
void profiles_apply(struct binder *binder);

/* --- config.c --- */

/* Puts the spec's tree, in which variables are expanded, on the user's configuration. A section of
 * an engine that is not the spec's is left out. */
void config_apply(struct binder *binder);

/* --- place.c --- */

/* Makes the relative paths of other files relative to the spec. */
void place_paths(struct binder *binder);

#endif
