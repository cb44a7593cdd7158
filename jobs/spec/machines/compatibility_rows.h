/*
 * Rows of configs/catalogue/compatibility.yaml, by the layout of its lines: a row begins with
 * "  - id:", each of its fields is one line. A field is parsed as YAML when it is asked for: the
 * whole file would take as long as a fifth of a command that reads a spec.
 */
#ifndef STK_SPEC_MACHINES_COMPATIBILITY_ROWS_H
#define STK_SPEC_MACHINES_COMPATIBILITY_ROWS_H

#include <stdbool.h>

#include "jobs/base/text/js.h"

/* Text of the file, which is not NUL-terminated. */
struct row_text {
	const char *text; /* NULL: none */
	size_t len;
};

/* Goes on to the next row of a section ("tags"), from { 0 }. Returns false at the end. */
bool compatibility_next(const char *section, struct row_text *row);
/* Returns the text behind "NAME: ", as it is written. */
struct row_text compatibility_field(struct row_text row, const char *name);
/* Returns the value of a field: a text, a list or a mapping. A new reference; NULL if the row does
 * not have it. */
json_t *compatibility_value(struct row_text row, const char *name);
/* True if the text of a field holds a word, between other signs than those of names. */
bool compatibility_has_word(struct row_text field, const char *word, size_t len);
/* Returns what a list of names of `sources` stands for. The caller frees it. */
char *compatibility_sources(const char *names);

#endif
