/*
 * Offsets between the servers' clocks and this machine's, from their Date headers. A signature is
 * only valid for some minutes around the server's time, and the clocks of containers and laptops
 * are sometimes off by more.
 */
#ifndef STK_AWS_AUTH_CLOCK_SKEW_H
#define STK_AWS_AUTH_CLOCK_SKEW_H

#include <stdbool.h>

#include "jobs/base/clock.h"

/* Smallest offset (ms) for which a refused signature is blamed on the clock. */
#define CLOCK_SKEW_MIN_MS 240000

struct clock_skews; /* how far each host is ahead of this machine */

struct clock_skews *clock_skews_new(void);
void clock_skews_freep(struct clock_skews **clock_skews); /* for AUTO() */

/* Returns this machine's time as corrected for the host. */
struct utc clock_skew_time(const struct clock_skews *clock_skews, const char *host, struct utc now);
/* Call when the host refused a request dated `used`; its Date header is `date`. Returns true if
 * the clock explains the refusal; clock_skew_time() then follows the host's clock. `now` is this
 * machine's time. */
bool clock_skew_learn(struct clock_skews *clock_skews, const char *host, const char *date,
		      struct utc used, struct utc now);

#endif
