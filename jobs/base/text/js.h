/*
 * JSON by Jansson (only this header includes it), plus helpers for common tasks.
 *
 * Numbers: integers are 64-bit (a larger one is an error, not a rounded one); a
 * real is written with 15 significant digits, so that 0.003 reads as 0.003; JSON has no nan and
 * infinity, so json_real() of them is NULL and js_put() leaves them out. Parsing is strict, limited
 * in depth by Jansson (2048), rejects duplicate keys and takes any value at the top. Errors carry
 * EXIT_REFUSED and never an excerpt of the text. json_auto_t releases a reference at the end of its
 * scope.
 */
#ifndef STK_BASE_TEXT_JS_H
#define STK_BASE_TEXT_JS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"

/* Parse `len` bytes. `what` names the text in errors ("the reply of s3"). */
int js_parse(const char *text, size_t len, const char *what, json_t **ret, struct err **err);
int js_load(const char *path, size_t max, json_t **ret, struct err **err);

/* The value in one line, in insertion order: for output and the journal. Characters that could
 * steer a terminal are written as \uXXXX, which means the same. The caller frees it. */
char *js_line(const json_t *value);
/* The same; a real that 15 digits do not tell has as many more as it needs to read back the same:
 * for measurements. */
char *js_line_exact(const json_t *value);
/* SHA-256 over the canonical form: one line, keys sorted, no spaces. Equal values give equal
 * digests. */
void js_digest(const json_t *value, char hex[65]);

/* Members of an object; the fallback if absent or of another type. */
const char *js_str(const json_t *object, const char *key);           /* NULL */
bool js_is(const json_t *object, const char *key, const char *word); /* true if it is this text */
int64_t js_int(const json_t *object, const char *key, int64_t fallback);
double js_real(const json_t *object, const char *key, double fallback);
bool js_bool(const json_t *object, const char *key, bool fallback);

/* "a.b.c" through nested objects; borrowed, NULL if any part is absent. */
json_t *js_path(const json_t *object, const char *dotted);
/* Set a member and take over the value; a NULL string or value is left out. Text that is not UTF-8
 * is repaired (U+FFFD, also for NUL, at which js_str() would end) before it becomes a string. */
void js_put(json_t *object, const char *key, json_t *value);
void js_put_str(json_t *object, const char *key, const char *text);
json_t *js_text(const char *bytes, size_t len);
/* A number; JSON has no word for nan, inf and -inf: they are strings. */
json_t *js_number(double value);

#endif
