/*
 * How many columns text takes on a terminal, and cutting it to some.
 *
 * Widths are those of Unicode as the C library knows them, whatever the locale:
 * 0 for marks that combine, 2 for wide characters, else 1. A terminal may know
 * another version; whoever must not be off by one turns its line wrap off.
 */
#ifndef STK_BASE_COLUMNS_H
#define STK_BASE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/sb.h"

/* 0 to 2; -1: this version knows no such character, or it has no shape. */
int columns_of(uint32_t code);

/*
 * Append as much of outside text as fits into `max` columns, made harmless as by
 * text_escape(), and say how many were taken. If something had to go, it ends in
 * "…" (without `utf8`: in "..."). A tab becomes a blank, a newline an escape; what
 * has no known width is shown as \uXXXX, and so is all but ASCII without `utf8`;
 * of many marks on one character some are left out.
 */
size_t columns_fit(struct sb *out, const char *text, size_t len, size_t max, bool utf8);

/*
 * The same in up to `rows` rows of `room` columns each, broken at blanks where that can
 * be; before all but the first go a newline and `indent` blanks. What is left for the
 * last row is cut as by columns_fit().
 */
void columns_wrap(struct sb *out, const char *text, size_t len, size_t room, size_t indent,
		  size_t rows, bool utf8);

/* How many that would take if nothing had to go. */
size_t columns_width(const char *text, size_t len, bool utf8);

/*
 * The character at `text` as columns_fit() shows it: its length there (1 to 4), the
 * bytes to show (with a NUL) and their columns. `len` is not 0.
 */
#define COLUMNS_SHOWN 11 /* \U0010ffff */
size_t columns_show(const char *text, size_t len, bool utf8, char shown[COLUMNS_SHOWN],
		    int *ret_columns);

#endif
