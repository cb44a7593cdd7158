/*
 * Errors as values. The last parameter of a function that can fail is
 * `struct err **err`: success leaves it alone, failure stores a new error
 * there and returns -1. Whoever receives an error either returns it or prints
 * it, never both; only cmd prints.
 *
 * A message says what failed, on what and why: lower case, subject quoted, no
 * full stop. The hint is one imperative sentence about what to do. Secrets
 * never enter an error.
 *
 *     if (fs_read(path, SPEC_BYTES_MAX, &text, err) < 0)
 *             return err_wrap(err, "cannot load the spec");
 */
#ifndef STK_BASE_ERR_H
#define STK_BASE_ERR_H

#include "jobs/base/auto.h"
#include "jobs/base/exitcode.h"

struct err {
	enum exit_code code; /* what the process exits with if this error ends it */
	char *message;       /* outermost context first, joined by ": " */
	char *hint;          /* what to do about it, or NULL */
	char *file;          /* the user's file, or NULL */
	int line, column;    /* from 1; 0 means unknown */
	char *field;         /* dotted path of a spec field, or NULL */
	int os_errno;        /* 0 if the operating system had no part in it */
};

/* Store a new error and return -1. `*err` must be NULL on entry. */
int err_set(struct err **err, enum exit_code code, const char *fmt, ...) STK_PRINTF(3, 4);

/* The same, with ": " and the system's text for `os_errno` at the end. */
int err_system(struct err **err, enum exit_code code, int os_errno, const char *fmt, ...)
	STK_PRINTF(4, 5);

/* Add to the error in hand; all return -1. err_wrap puts context in front. */
int err_wrap(struct err **err, const char *fmt, ...) STK_PRINTF(2, 3);
int err_hint(struct err **err, const char *fmt, ...) STK_PRINTF(2, 3);
int err_at(struct err **err, const char *file, int line, int column);
int err_field(struct err **err, const char *field);
int err_code(struct err **err, enum exit_code code); /* a caller knows better */

/* The static analyzer sees one file at a time: tell it what these return. */
#ifdef __clang_analyzer__
#define err_set(...)    (err_set(__VA_ARGS__), -1)
#define err_system(...) (err_system(__VA_ARGS__), -1)
#define err_wrap(...)   (err_wrap(__VA_ARGS__), -1)
#define err_hint(...)   (err_hint(__VA_ARGS__), -1)
#define err_at(...)     (err_at(__VA_ARGS__), -1)
#define err_field(...)  (err_field(__VA_ARGS__), -1)
#define err_code(...)   (err_code(__VA_ARGS__), -1)
#endif

void err_free(struct err *err);
void err_freep(struct err **err); /* for AUTO(); also forgets a handled error */

/* "file:line:column: message" in one line, without the hint. Yours to free. */
char *err_format(const struct err *err);

#endif
