/*
 * The lines of JSON that commands print, described: shapes.def and the events as rows, and as JSON
 * Schema (draft 2020-12). A schema is closed: a key without a row is an error.
 *
 * report/shapes: what programs may read from stdout. Nothing here makes or prints such a line.
 */
#ifndef STK_REPORT_SHAPES_SHAPES_H
#define STK_REPORT_SHAPES_SHAPES_H

#include <stdbool.h>

#include "jobs/base/text/js.h"

enum shape_kind { SHAPE_LINE, SHAPE_PART, SHAPE_KEY, SHAPE_KEYS_OF };

/* A row of shapes.def. */
struct shape_row {
	enum shape_kind kind;
	const char *name;
	const char *of, *commands; /* of a line */
	const char *type, *unit;   /* of a key */
	const char *meaning;       /* NULL: keys of a part */
};
extern const struct shape_row shapes_rows[]; /* ended by a row without a name */

/* Length of a key's name without the '?' of one that may be absent. */
size_t shapes_key_len(const struct shape_row *key);
bool shapes_key_is_optional(const struct shape_row *key);
/* Returns the part of this name; NULL if there is none. */
const struct shape_row *shapes_part(const char *name);

/* Returns the schema of a line of `stoker … --json`, as `schema --of NAME` names it, a new
 * reference; the line of an error is part of each. NULL if there is no such name. `$defs` has a
 * schema for each line, each event (by its name) and each part in them. */
json_t *shapes_schema(const char *of);

#endif
