/* The real machine beneath the world: the children in which schedules play. */
#ifndef STK_TESTS_WORLD_HOST_H
#define STK_TESTS_WORLD_HOST_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/world/report.h"

typedef void (*host_play_fn)(const void *arg, uint64_t number, struct report *ret);

/* Plays schedules `from` to from+count-1, `jobs` at once, each in a child; adds their reports in
 * the order of their numbers. */
void host_run_all(uint64_t from, uint64_t count, int jobs, host_play_fn fn, const void *arg,
		  struct reports *reports);
/* The same, but returns the `count` reports, for host_drop(). */
struct report *host_run_each(uint64_t from, uint64_t count, int jobs, host_play_fn fn,
			     const void *arg);
void host_drop(struct report *reports, uint64_t count);
/* Plays one in a child. */
void host_run_one(host_play_fn fn, const void *arg, uint64_t number, struct report *ret);
/* As fork(), with stdout flushed before; the program ends if there is no process to be had. */
pid_t host_fork(void);
double host_seconds(void); /* a clock that only goes on */

#endif
