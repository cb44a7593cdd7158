/*
 * Suggestions for a mistyped name: the nearest field, wherever it stands, and the nearest word
 * of a choice.
 */
#ifndef STK_SPEC_LINT_SUGGEST_H
#define STK_SPEC_LINT_SUGGEST_H

#include "jobs/spec/fields/field.h"

/* Returns the hint for an unknown member `name` of a section (FIELD_NONE: of the spec), never
 * NULL. The caller frees it. */
char *suggest_field(field_id section, const char *name);

/* Returns the member with the nearest name, FIELD_NONE if none is near. */
field_id suggest_member(field_id section, const char *name);

/* Returns the nearest of the space-separated words, or NULL. The caller frees it. */
char *suggest_word(const char *words, const char *word);

#endif
