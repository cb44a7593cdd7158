/* Pauses that cost no time: the clock is the test's, and each pause moves it and is noted. Included
 * by one test of a program, which is linked so that these take the place of the real ones
 * (tests/CMakeLists.txt). */
#ifndef STK_TESTS_UNIT_NODE_PAUSES_H
#define STK_TESTS_UNIT_NODE_PAUSES_H

#include "jobs/base/clock.h"
#include "jobs/base/mem.h"

static int64_t now_ms;
static int64_t pauses[64];
static size_t pause_count;
static void (*on_pause)(void); /* events elsewhere meanwhile */

struct mono __wrap_clock_mono_now(void);
bool __wrap_cancel_pause(int64_t ms);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

bool __wrap_cancel_pause(int64_t ms)
{
	if (pause_count < STK_LENGTH(pauses))
		pauses[pause_count++] = ms;
	now_ms += ms;
	if (on_pause)
		on_pause();
	return true;
}

#endif
