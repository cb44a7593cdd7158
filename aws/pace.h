/*
 * When a request may go, so that a client stays below what a service takes: rates.def says how
 * many a second and how many at once. Pure: no clock of its own.
 *
 * A request takes its place in time when it is asked for: whoever came first goes first, and
 * any number of calls may be started at once.
 */
#ifndef STK_AWS_PACE_H
#define STK_AWS_PACE_H

#include <stdint.h>

struct pace_rate {
	double a_second; /* 0: as they come */
	int burst;       /* that may go at once after a pause */
};

/* Of one operation; zeroed: none has been sent. */
struct pace {
	double next_ms; /* when the next one would go, if they came evenly */
};

/* How many ms the next request waits from `now_ms` (monotonic) on; it has its place then. */
int64_t pace_place(struct pace *pace, const struct pace_rate *rate, int64_t now_ms);

#endif
