/*
 * The bytes of a spec before YAML sees them: read within bounds, and refused
 * with a place and a cure if they cannot be text.
 */
#ifndef STK_SPEC_FIELDS_BYTES_H
#define STK_SPEC_FIELDS_BYTES_H

#include "jobs/base/sb.h"
#include "jobs/spec/lint/problem.h"

/* Reads a spec file, or another, which errors call `what` ("the spec"). -1 with *err set if it
 * cannot be read at all; -1 with a problem if it is too large. "-" is stdin, which is read to its
 * end. Any other pipe or device is an error, so that nothing is waited for. */
int bytes_read(struct reporter *reporter, const char *path, const char *what, struct sb *text,
	       struct err **err) STK_MUST_CHECK;

/* Returns 0 for UTF-8 without NUL and other control characters; else -1, and reports the first
 * wrong byte. *ret_skip is the length of a byte order mark to leave out. */
int bytes_check(struct reporter *reporter, const char *text, size_t len, size_t *ret_skip)
	STK_MUST_CHECK;

/* bytes_mark(): line and column (in characters) of a byte; bytes_at(): the byte at a place. */
struct mark bytes_mark(const char *text, size_t offset);
char bytes_at(const char *text, size_t len, struct mark at);

#endif
