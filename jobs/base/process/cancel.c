/* Early end of waits: see cancel.h. */
#include "jobs/base/process/cancel.h"

#include <poll.h>
#include <stddef.h>

#include "jobs/base/clock.h"

/* Time from when the request to end was first noticed: a healthy service answers in less, so
 * calls under way can end normally. */
#define GRACE_MS         1500
#define GRACE_LIMITED_MS 300

static bool (*question)(void *arg); /* NULL: none */
static void *question_arg;
static struct mono asked_since;                 /* ms 0: not asked */
static struct mono end_by;                      /* ms 0: no limit */
static _Thread_local struct mono thread_end_by; /* ms 0: no limit */

void cancel_when(bool (*fn)(void *arg), void *arg)
{
	question = fn;
	question_arg = arg;
	asked_since.ms = 0;
}

void cancel_after(int64_t ms)
{
	end_by.ms = ms ? clock_mono_now().ms + ms : 0;
}

void cancel_thread_after(int64_t ms)
{
	thread_end_by.ms = ms ? clock_mono_now().ms + ms : 0;
}

static bool is_past(struct mono end, struct mono now)
{
	return end.ms && now.ms >= end.ms;
}

static bool is_over(struct mono now)
{
	return is_past(end_by, now) || is_past(thread_end_by, now);
}

static bool is_asked(void)
{
	if (is_over(clock_mono_now()))
		return true;
	return question && question(question_arg);
}

bool cancel_is_due(void)
{
	struct mono now = clock_mono_now();

	if (is_over(now))
		return true;
	if (!is_asked()) {
		if (asked_since.ms) /* threads that wait at once write nothing */
			asked_since.ms = 0;
		return false;
	}
	if (!asked_since.ms)
		asked_since = now;
	return now.ms - asked_since.ms >= (end_by.ms ? GRACE_LIMITED_MS : GRACE_MS);
}

void cancel_pause_briefly(int64_t ms)
{
	if (ms > 0)
		(void)!poll(NULL, 0, ms < CANCEL_LOOK_MS ? (int)ms : CANCEL_LOOK_MS);
}

bool cancel_pause(int64_t ms)
{
	struct mono end = { clock_mono_now().ms + ms };

	for (int64_t left = ms; left > 0; left = end.ms - clock_mono_now().ms) {
		if (is_asked())
			return false;
		cancel_pause_briefly(left);
	}
	return true;
}
