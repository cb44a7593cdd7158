/*
 * Instants and ages for people: local time on a terminal, with a date if the day is another one;
 * RFC 3339 in UTC everywhere else, as programs and `--json` have it.
 */
#ifndef STK_BASE_TEXT_WHEN_H
#define STK_BASE_TEXT_WHEN_H

#include "jobs/base/clock.h"

#define WHEN_TEXT 32

/* "45s", "3m", "2h", "5d"; "0s" if it lies ahead. */
const char *when_age(struct utc at, struct utc now, char ret[WHEN_TEXT]);

/* Writes a time for a terminal: "12:03:41"; "Nov 21 12:03:41" if that is not the day of `now`, with
 * the year if it is not that of `now`. Else "2026-11-21T12:03:41Z". */
const char *when_instant(struct utc at, struct utc now, bool terminal, char ret[WHEN_TEXT]);

/* The same for a time as in the journal; the text itself if it is none, "-" if it is NULL. */
const char *when_text(const char *utc, bool terminal, char ret[WHEN_TEXT]);

#endif
