/*
 * What somebody probably meant: the nearest field, wherever it stands, and the
 * nearest word of a choice.
 */
#ifndef STK_SPEC_SUGGEST_H
#define STK_SPEC_SUGGEST_H

#include "jobs/spec/field.h"

/* The hint for an unknown member `name` of a section (FIELD_NONE: of the
 * spec). Yours to free; never NULL. */
char *suggest_field(field_id section, const char *name);

/* The member with the nearest name, FIELD_NONE if none is near. */
field_id suggest_member(field_id section, const char *name);

/* The nearest of the space-separated words, or NULL. Yours to free. */
char *suggest_word(const char *words, const char *word);

#endif
