/*
 * Reads messages in logs: a position in a piece of bytes that only moves forward, and never over
 * the end of a line. Shared by the readers of all compilers.
 */
#ifndef STK_CACHE_KINDS_CURSOR_H
#define STK_CACHE_KINDS_CURSOR_H

#include "jobs/cache/kinds/compile_kind.h"

#define WHY_MAX 300 /* longest explanation that is kept, in bytes */

/* The unread rest of a piece of log. */
struct cursor {
	const char *at, *end;
};

/* Consumes `word`; false, and nothing is consumed, if it does not come next. */
bool cursor_accept(struct cursor *in, const char *word);

/* Consumes everything up to and including `stop`, within `max` bytes and a line; `ret` excludes
 * `stop`. */
bool cursor_accept_until(struct cursor *in, const char *stop, size_t max,
			 struct compile_kind_words *ret);

/* Consumes a number without a sign, of at most 32 characters. */
bool cursor_accept_number(struct cursor *in, double *ret);

/* The rest of the line, up to `max` bytes; nothing is consumed. */
struct compile_kind_words cursor_line_ahead(const struct cursor *in, size_t max);

/* Consumes the rest of the line, without trailing blanks, up to WHY_MAX and to a NUL byte, because
 * it becomes a string. */
struct compile_kind_words cursor_accept_why(struct cursor *in);

#endif
