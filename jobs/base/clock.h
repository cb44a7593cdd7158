/*
 * Four kinds of time as four types, so that mixing them does not compile.
 *
 * UTC is what people read and what the journal stores. Monotonic time measures
 * gaps and arms timers; it means nothing after a reboot or on another machine.
 * Awake time is the same without the time in which the machine slept: it measures work.
 * CPU time is what a thread has computed: it bounds work fairly on a busy machine.
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

struct awake {
	int64_t ms; /* since an arbitrary point */
};

struct cpu {
	int64_t us; /* CPU time of this thread since it began */
};

struct utc clock_utc_now(void);
struct mono clock_mono_now(void);
struct awake clock_awake_now(void);
struct cpu clock_cpu_now(void); /* a system call: too slow for every line of a log */

/* RFC 3339 with milliseconds: "2026-11-21T11:36:00.123Z" and a NUL. */
#define UTC_TEXT 25
const char *clock_utc_format(struct utc at, char text[UTC_TEXT]); /* returns text */
bool clock_utc_parse(const char *text, struct utc *ret_at);       /* accepts that form only */

#endif
