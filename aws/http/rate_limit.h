/*
 * Time at which a request may be sent, so that a client stays below a service's limits: rates.def
 * has the rate and the burst. Pure: no clock of its own.
 *
 * A request reserves its time when it is placed: first come, first served, and any number of
 * calls may be started at once.
 */
#ifndef STK_AWS_HTTP_RATE_LIMIT_H
#define STK_AWS_HTTP_RATE_LIMIT_H

#include <stdint.h>

struct rate_limit_rate {
	double a_second; /* requests per second; 0: no limit */
	int burst;       /* number of requests that may go at once after a pause */
};

/* State of one operation; zeroed: no request has been sent. */
struct rate_limit {
	double next_ms; /* time of the next request if they were evenly spaced */
};

/* Returns how many ms after `now_ms` (monotonic) the next request may go, and reserves the time. */
int64_t rate_limit_place(struct rate_limit *limit, const struct rate_limit_rate *rate,
			 int64_t now_ms);

#endif
