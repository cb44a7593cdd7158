/*
 * The clocks of servers against ours, by what their Date headers say. A signature is only
 * good for some minutes around the server's time, and the clocks of containers and laptops
 * are off by more now and then.
 */
#ifndef STK_AWS_SKEW_H
#define STK_AWS_SKEW_H

#include <stdbool.h>

#include "jobs/base/clock.h"

/* Off by more than this, a refused signature is blamed on the clock (ms). */
#define SKEW_MIN_MS 240000

struct skews; /* how far each host is ahead of us */

struct skews *skews_new(void);
void skews_freep(struct skews **skews); /* for AUTO() */

/* Our time as this host sees it. */
struct utc skew_time(const struct skews *skews, const char *host, struct utc now);
/* It refused what we dated `used`, and its Date header is `date`: true if that is why, and
 * from now on its own time is used. `now` is our clock's. */
bool skew_learn(struct skews *skews, const char *host, const char *date, struct utc used,
		struct utc now);

/* "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, the form that is sent today). */
bool http_date_parse(const char *text, struct utc *ret);

#endif
