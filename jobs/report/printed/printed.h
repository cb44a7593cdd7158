/*
 * The lines of JSON that commands print, described: lines.def, parts.def and the events as rows,
 * and as JSON Schema (draft 2020-12). A schema is closed: a key without a row is an error.
 *
 * report/printed: what programs may read from stdout. Nothing here makes or prints such a line.
 */
#ifndef STK_REPORT_PRINTED_PRINTED_H
#define STK_REPORT_PRINTED_PRINTED_H

#include <stdbool.h>

#include "jobs/base/text/js.h"

/* The names of all schemas below, and that of the spec's, which is not made here. */
#define PRINTED_NAMES                                                                              \
	"events|status|list|machines|plan|validate|doctor|init|logs|metrics|compare|sweep|report|" \
	"stats|export|rm|diff|copy|promote|rollback|lineage|cache-ls|cache-verify|cache-why|"      \
	"cache-gc|schedule-add|schedule-ls|schedule-next|schedule-rm|version|completion|help|"     \
	"error"
#define PRINTED_SPEC "spec"

enum printed_kind { PRINTED_LINE, PRINTED_PART, PRINTED_KEY, PRINTED_KEYS_OF };

/* A row of lines.def or parts.def. */
struct printed_row {
	enum printed_kind kind;
	const char *name;
	const char *of, *commands; /* of a line */
	const char *type, *unit;   /* of a key */
	const char *meaning;       /* NULL: keys of a part */
};
extern const struct printed_row printed_rows[]; /* ended by a row without a name */

/* Length of a key's name without the '?' of one that may be absent. */
size_t printed_key_len(const struct printed_row *key);
bool printed_key_is_optional(const struct printed_row *key);
/* Returns the part of this name; NULL if there is none. */
const struct printed_row *printed_part(const char *name);

/* Returns the schema of a line of `stoker … --json`, as `schema --of NAME` names it, a new
 * reference; the line of an error is part of each. NULL if there is no such name. `$defs` has a
 * schema for each line, each event (by its name) and each part in them. */
json_t *printed_schema(const char *of);

#endif
