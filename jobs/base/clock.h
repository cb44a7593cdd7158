/*
 * Two kinds of time as two types, so that mixing them does not compile.
 *
 * UTC is what people read and what the journal stores. Monotonic time measures
 * gaps and arms timers; it means nothing after a reboot or on another machine.
 */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct utc {
	int64_t ms; /* since 1970-01-01T00:00:00Z */
};

struct mono {
	int64_t ms; /* since an arbitrary point */
};

struct utc utc_now(void);
struct mono mono_now(void);

/* RFC 3339 with milliseconds: "2026-11-21T11:36:00.123Z" and a NUL. */
#define UTC_TEXT 25
const char *utc_format(struct utc at, char text[UTC_TEXT]); /* returns text */
bool utc_parse(const char *text, struct utc *ret_at);       /* that form only */

#endif
