/*
 * Numbers with units in a spec: durations, sizes and percentages, and the cures for other units.
 */
#ifndef STK_SPEC_FIELDS_UNITS_H
#define STK_SPEC_FIELDS_UNITS_H

#include "jobs/spec/fields/field.h"

/* Converts FIELD_DURATION to milliseconds, FIELD_SIZE to bytes, FIELD_PERCENT to thousandths of
 * a percent; false on anything else. */
bool units_parse(enum field_type type, const char *text, int64_t *ret);
/* "a duration: a number and ms, s, m, h, d or w" */
const char *units_must_be(enum field_type type);
/* Returns the text to write instead of one that does not parse. The caller frees it. */
char *units_hint(enum field_type type, const char *text, const char *example);

#endif
