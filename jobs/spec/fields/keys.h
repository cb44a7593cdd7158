/*
 * Keys of a map as YAML wrote them: no key twice, and merge keys (<<) put in
 * effect.
 */
#ifndef STK_SPEC_FIELDS_KEYS_H
#define STK_SPEC_FIELDS_KEYS_H

#include "jobs/spec/node.h"

/* Key of an unquoted "<<"; recognised by its address. */
extern const char keys_merge[];

/* Reports each key that a map has twice, and drops all but its first entry. `path` is the map's
 * own path, NULL at the top. */
void keys_check(struct reporter *reporter, struct node *map, const char *path);

/* Replaces each "<<" by the entries of the map (or maps) it names; the map's own entries win,
 * then the earlier ones. -1 if it names something else. */
int keys_resolve_merges(struct arena *arena, struct reporter *reporter, struct node *map)
	STK_MUST_CHECK;

#endif
