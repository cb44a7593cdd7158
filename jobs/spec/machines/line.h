/*
 * Words of a line for a shell, with the place of each in the line, so that some can be cut out. The
 * line is only inspected: quotes and backslashes protect as in a POSIX shell, nothing is expanded,
 * and the text of a substitution ($(…), `…`) is part of its word.
 */
#ifndef STK_SPEC_MACHINES_LINE_H
#define STK_SPEC_MACHINES_LINE_H

#include <stddef.h>

struct split_line {
	char **words; /* without their quotes; NULL-terminated */
	struct line_span {
		size_t from, to; /* bytes of the line, quotes included */
		size_t command; /* 0 for the words of the first simple command, 1 for the next … */
	} * spans;
	size_t count;
};

/* Start from { 0 }; an open quote lasts to the end. */
void line_split(const char *text, struct split_line *ret);
void line_release(struct split_line *line); /* for AUTO() */

#endif
