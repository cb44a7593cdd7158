/*
 * Time as the rules with clocks count it: time in which a process could have acted. What does not
 * count is the time in which it was suspended (stopped, its machine asleep or off), and time in a
 * single call that had not returned: one that the world has made slow, or a request to a service
 * that does not answer. A call of the usual length counts, so that ten thousand of them do.
 *
 * Looked at once a second: a time is right to within a second for each change.
 */
#ifndef STK_TESTS_WORLD_CLOCKS_TIME_H
#define STK_TESTS_WORLD_CLOCKS_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/world/kernel.h"

#define FIGURE(name, seconds, meaning) name,
enum figure {
#include "tests/world/clocks.def"
	FIGURE_COUNT
};
#undef FIGURE

int64_t figure_ns(enum figure figure);

void time_reset(void);
/* Once a second: what has passed since then counted for each process, or did not. */
void time_look(void);
/* Time that counted for a process since it began. */
int64_t time_counted_ns(const struct process *process);
/* The same with the time in calls that hang. */
int64_t time_awake_ns(const struct process *process);
/* It could act now. */
bool time_counts(const struct process *process);
/* A call of the process begins that the world makes take long; it has returned. */
void time_call_hangs(const struct process *process);
void time_call_returns(const struct process *process);

/* Time of one process from a start that may be put off; unset: all zero. */
struct stretch {
	const struct process *who; /* NULL: it does not run */
	int64_t from_ns;           /* of its counted time */
};
void stretch_begin(struct stretch *stretch, const struct process *who);
/* Counted time since then, less than 0 where the start lies ahead; 0: it does not run. */
int64_t stretch_ns(const struct stretch *stretch);

#endif
