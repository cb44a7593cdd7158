/*
 * What the programs of the bench share. Each prints one JSON object: how long the
 * work took, and what came of it, which `run` holds against what must come of it. A
 * failure is a message on stderr and exit code 1.
 */
#ifndef STK_TESTS_BENCH_BENCH_H
#define STK_TESTS_BENCH_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jobs/base/err.h"

static inline double clock_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline double wall_seconds(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

static inline double cpu_seconds(void)
{
	return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

__attribute__((noreturn)) static inline void give_up(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", what, err ? err->message : strerror(errno));
	exit(1);
}

static inline long number_of(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0')
		give_up("no number", NULL);
	return value;
}

#endif
