/*
 * Numbers with units in a spec: durations, sizes and percentages, and what to
 * say to somebody who wrote another unit.
 */
#ifndef STK_SPEC_UNITS_H
#define STK_SPEC_UNITS_H

#include "jobs/spec/field.h"

/* FIELD_DURATION to milliseconds, FIELD_SIZE to bytes, FIELD_PERCENT to
 * thousandths of a percent; false on anything else. */
bool units_parse(enum field_type type, const char *text, int64_t *ret);
/* "a duration: a number and ms, s, m, h, d or w" */
const char *units_must_be(enum field_type type);
/* What to write instead of a text that is none. Yours to free. */
char *units_cure(enum field_type type, const char *text, const char *example);

#endif
