/*
 * Width of text in terminal columns, and cutting text to a width.
 *
 * Widths are those of Unicode as the C library knows them, whatever the locale:
 * 0 for marks that combine, 2 for wide characters, else 1. A terminal may know
 * another version; a caller that must not be off by one turns off the terminal's line wrap.
 */
#ifndef STK_BASE_TEXT_COLUMNS_H
#define STK_BASE_TEXT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/sb.h"

/*
 * Append as much of outside text as fits into `max` columns, made harmless as by
 * text_escape(), and return the number of columns used. If text was cut, it ends in "…" (without
 * `utf8`: in "..."). A tab becomes a blank, a newline an escape; a character of unknown width is
 * shown as \uXXXX, and so is all but ASCII without `utf8`; of many marks on one character some are
 * left out.
 */
size_t columns_fit(struct sb *out, const char *text, size_t len, size_t max, bool utf8);

/*
 * The same in up to `rows` rows of `room` columns each, broken at blanks if possible; each row but
 * the first begins with a newline and `indent` blanks. The last row is cut as by columns_fit().
 */
void columns_wrap(struct sb *out, const char *text, size_t len, size_t room, size_t indent,
		  size_t rows, bool utf8);

/* Number of columns that the text takes if nothing is cut. */
size_t columns_width(const char *text, size_t len, bool utf8);

/*
 * The character at `text` as columns_fit() shows it: its length there (1 to 4), the
 * bytes to show (with a NUL) and their columns. `len` is not 0.
 */
#define COLUMNS_SHOWN 11 /* \U0010ffff */
size_t columns_show(const char *text, size_t len, bool utf8, char shown[COLUMNS_SHOWN],
		    int *ret_columns);

#endif
