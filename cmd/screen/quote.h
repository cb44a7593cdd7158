/* Excerpt of a spec: the line with a problem, and a caret beneath the column. */
#ifndef STK_CMD_SCREEN_QUOTE_H
#define STK_CMD_SCREEN_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/sb.h"

/*
 * Appends two lines:
 *
 *     14 | retires: 3
 *        | ^
 *
 * `column` counts characters from 1; one past the end points there. 0 is not a place: then the
 * second line is omitted. Output is escaped: tabs become blanks up to the next eighth column,
 * everything else as by columns_fit(). Of a line wider than `width` the part around the column is
 * shown. Returns false, and appends nothing, if the text has no such line.
 */
bool quote_line(struct sb *out, const char *text, size_t len, int line, int column, size_t width,
		bool utf8);

/* True if the line may be shown: false if the line, a line that contains it by indentation, or
 * the field (NULL: none) is named like a secret. */
bool quote_is_harmless(const char *text, size_t len, int line, const char *field);

#endif
