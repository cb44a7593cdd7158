/*
 * Errors as values. The last parameter of a function that can fail is
 * `struct err **err`: success leaves it alone, failure stores a new error
 * there and returns -1. A caller that receives an error either returns it or prints it, never both;
 * only cmd prints.
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

#include <stdbool.h>

#include "jobs/base/auto.h"
#include "jobs/base/exitcode.h"

struct err {
	enum exit_code code; /* exit code of the process if this error ends it */
	char *message;       /* outermost context first, joined by ": " */
	char *hint;          /* how to fix it, or NULL */
	char *file;          /* the user's file, or NULL */
	int line, column;    /* from 1; 0 means unknown */
	char *field;         /* dotted path of a spec field, or NULL */
	int os_errno;        /* 0 if the operating system had no part in it */
	bool damage;         /* stored data was read but differs from what was written */
};

/* Store a new error and return -1. `*err` must be NULL on entry. */
int err_set(struct err **err, enum exit_code code, const char *fmt, ...) STK_PRINTF(3, 4);

/* The same, with ": " and the system's text for `os_errno` at the end. */
int err_system(struct err **err, enum exit_code code, int os_errno, const char *fmt, ...)
	STK_PRINTF(4, 5);

/* Add to an existing error; all return -1. err_wrap puts context in front. */
int err_wrap(struct err **err, const char *fmt, ...) STK_PRINTF(2, 3);
int err_hint(struct err **err, const char *fmt, ...) STK_PRINTF(2, 3);
int err_at(struct err **err, const char *file, int line, int column);
int err_field(struct err **err, const char *field);
int err_code(struct err **err, enum exit_code code); /* for a caller that knows better */
int err_damage(struct err **err);
/* Store a copy of `from`, so that a second caller can report it too, and return -1. */
int err_again(struct err **err, const struct err *from);

/* The static analyzer sees one file at a time: tell it what these return. */
#ifdef __clang_analyzer__
#define err_set(...)    (err_set(__VA_ARGS__), -1)
#define err_system(...) (err_system(__VA_ARGS__), -1)
#define err_wrap(...)   (err_wrap(__VA_ARGS__), -1)
#define err_hint(...)   (err_hint(__VA_ARGS__), -1)
#define err_at(...)     (err_at(__VA_ARGS__), -1)
#define err_field(...)  (err_field(__VA_ARGS__), -1)
#define err_code(...)   (err_code(__VA_ARGS__), -1)
#define err_again(...)  (err_again(__VA_ARGS__), -1)
#endif

void err_free(struct err *err);
void err_freep(struct err **err); /* for AUTO(); also forgets a handled error */

/* True if the failure is transient, so that a retry may succeed: known by os_errno or, if the
 * operating system had no part in it, by EXIT_UNREACHABLE. */
bool err_passes(const struct err *err);
bool err_errno_passes(int os_errno);
/* True if a call that has just failed with errno is worth another try at once, because it was
 * interrupted, or has failed fewer than ERR_FAILURES times in a row for causes that may pass.
 * Counts them. */
#define ERR_FAILURES 4
bool err_try_again(int *failures);

/* "file:line:column: message" in one line, without the hint. The caller frees it. */
char *err_format(const struct err *err);

#endif
