/*
 * Small text tools: escaping for terminals, numbers, sizes, durations, edit distance, run ids.
 *
 * base/text: bytes and text: numbers and sizes as people write them, UTF-8 and columns, JSON,
 * regular expressions, shell words. No I/O.
 */
#ifndef STK_BASE_TEXT_TEXT_H
#define STK_BASE_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/sb.h"

/* Append outside text so that it cannot steer a terminal: controls (see
 * text_is_control) and malformed UTF-8 become visible escapes (\x1b, \u202e).
 * Tabs are kept; newlines only with `keep_newlines`. Backslashes are kept too: the result is for
 * reading and cannot be decoded. */
void text_escape(struct sb *out, const char *text, size_t len, bool keep_newlines);

bool text_is_utf8(const char *text, size_t len);
/* True for a URL with a user or a password in it: "http://user:word@proxy:3128"; without its scheme
 * only with a password at the beginning of the text. */
bool text_has_login(const char *text);
/* The well-formed UTF-8 character at `text`: its length (1 to 4) and code point; 0 if the bytes are
 * not UTF-8 or `len` is 0. */
size_t text_utf8(const char *text, size_t len, uint32_t *ret_code);
/* True for a character that acts on a terminal or misleads a reader: C0 (tab and newline too), DEL,
 * C1, marks that change the direction of text, line and paragraph separators, the byte order mark.
 */
bool text_is_control(uint32_t code);

/* The longest number at `text`: [+-] digits . digits e[+-]digits, or nan, inf,
 * infinity in any case as a whole word ("info" does not count). Returns its length, 0 if not found.
 * Independent of the locale. */
size_t text_float(const char *text, size_t len, double *ret_value);

#define TEXT_NUMBER 32
/* Writes the number with the fewest digits that read back the same; nan, inf and -inf as such.
 * Returns `ret`. */
const char *text_number(double value, char ret[TEXT_NUMBER]);

/* "90s", "2h", "7d", "1.5h", "250ms" (ms s m h d w; "0" needs no unit) →
 * milliseconds; "8GiB", "512 MiB", "64KB", "1000000" (B, KB to TB by 1000, KiB to
 * TiB by 1024; a blank may stand before the unit) → bytes. Decimals are rounded
 * to a whole result. Anything else, or overflow, returns false and stores nothing. */
bool text_duration(const char *text, int64_t *ret_ms);
bool text_size(const char *text, uint64_t *ret_bytes);

/* "1m 05s", "2.1 s", "340 ms": for people. The caller frees it. */
char *text_format_duration(int64_t ms);
/* "6.67 steps/s", or "3.00 s/step" below one step a second; of another unit than steps, if it is
 * not NULL. */
char *text_format_speed(double steps_per_second, const char *unit);
char *text_format_bytes(uint64_t bytes);

/* Edit distance over bytes, in which a swap of neighbours counts as one edit; `limit` + 1 stands
 * for everything above `limit`. */
size_t text_distance(const char *a, const char *b, size_t limit);

bool text_starts(const char *text, const char *prefix);

/* A fresh run id: 12 characters of lower-case base 32 (a-z without i l o u,
 * 0-9: Crockford): 40 bits of milliseconds since 2020, then 20 random bits, so that ids made later
 * sort later; within one process always. */
#define RUN_ID_LEN 12
void text_run_id_new(char id[RUN_ID_LEN + 1]);
/* True for an id that --id accepts: 1 to 40 of [a-z0-9-], beginning with a letter or digit. */
bool text_run_id_valid(const char *id);

#endif
