/*
 * The monotonic clock of a test that its target links with --wrap=clock_mono_now: it stands where
 * the test has put it. For one file of tests each.
 */
#ifndef TEST_RUN_ATTEMPT_CLOCK_H
#define TEST_RUN_ATTEMPT_CLOCK_H

#include "jobs/base/clock.h"

static struct mono now; /* ms 0: the true one */

struct mono __real_clock_mono_now(void);
struct mono __wrap_clock_mono_now(void);

struct mono __wrap_clock_mono_now(void)
{
	return now.ms > 0 ? now : __real_clock_mono_now();
}

#endif
