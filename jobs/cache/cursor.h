/*
 * Reading messages out of logs: a position in a piece of bytes that only moves
 * forward, and never over the end of a line. Compilers' readers share it.
 */
#ifndef STK_CACHE_CURSOR_H
#define STK_CACHE_CURSOR_H

#include "jobs/cache/kind.h"

#define WHY_MAX 300 /* bytes of an explanation that are kept */

/* The unread rest of a piece of log. */
struct cursor {
	const char *at, *end;
};

/* Go over `word`; false, and nothing is eaten, if it does not come next. */
bool eat(struct cursor *in, const char *word);

/* Everything up to `stop`, which is eaten too; within `max` bytes and a line. */
bool eat_until(struct cursor *in, const char *stop, size_t max, struct words *ret);

/* A number without a sign, at most 32 characters of it. */
bool eat_number(struct cursor *in, double *ret);

/* What is left of the line, up to `max` bytes; nothing is eaten. */
struct words line_ahead(const struct cursor *in, size_t max);

/* The rest of the line without blanks at its end, up to WHY_MAX and to a NUL byte: it
 * becomes a string; eaten. */
struct words eat_why(struct cursor *in);

#endif
