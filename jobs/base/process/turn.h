/*
 * Budget of one turn of a loop, so that signals, requests, limits and leases are served however
 * much work there is: bytes, CPU time and wall-clock time, whichever is used up first. Work is done
 * in slices, each of which is reported here; the rest waits for the next turn.
 */
#ifndef STK_BASE_PROCESS_TURN_H
#define STK_BASE_PROCESS_TURN_H

#include <stddef.h>

#include "jobs/base/clock.h"

struct turn {
	size_t bytes; /* bytes left */
	struct cpu cpu_end;
	struct mono end;
	bool over;
};

struct turn turn_begin(size_t bytes, int64_t cpu_ms, int64_t wall_ms);
/* Counts a finished slice of `bytes`; true if the turn is over. */
bool turn_spend(struct turn *turn, size_t bytes);

#endif
