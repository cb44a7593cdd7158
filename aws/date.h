/*
 * Times as AWS writes them. Both functions return false for any other text.
 */
#ifndef STK_AWS_DATE_H
#define STK_AWS_DATE_H

#include <stdbool.h>

#include "jobs/base/clock.h"

/* "Sun, 06 Nov 1994 08:49:37 GMT": a header (RFC 9110, the form that is sent today). */
bool aws_date_http(const char *text, struct utc *ret);

/* "2026-11-22T12:00:00Z", with or without a fraction, with an offset instead of the Z, with a blank
 * instead of the T, or with "UTC", as older tools wrote it. */
bool aws_date_iso(const char *text, struct utc *ret);

#endif
