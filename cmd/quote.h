/* The line of a spec that a problem is about, with a caret beneath the place. */
#ifndef STK_CMD_QUOTE_H
#define STK_CMD_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/sb.h"

/*
 * Append two lines:
 *
 *     14 | retires: 3
 *        | ^
 *
 * `column` counts characters from 1; one behind the end points there, 0 is no place:
 * then there is no second line. Made harmless: tabs become blanks up to the next eighth
 * column, all else as by columns_fit(). Of a line that is wider than `width` what lies
 * around the column is shown. False, and nothing appended, if the text has no such line.
 */
bool quote_line(struct sb *out, const char *text, size_t len, int line, int column, size_t width,
		bool utf8);

/* May it be shown at all? Not where the line, or one that it belongs to by its
 * indentation, or the field (NULL: none) is named like a secret. */
bool quote_is_harmless(const char *text, size_t len, int line, const char *field);

#endif
