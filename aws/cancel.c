/* Early end of waits for AWS: see aws.h. The state belongs to the process, not to a client: a
 * process that is told to end gives up all its waits. */
#include "aws/request.h"

/* Time from when the request to end was first noticed: a healthy service answers in less, so
 * calls under way can end normally. */
#define CANCEL_GRACE_MS         1500
#define CANCEL_GRACE_LIMITED_MS 300

static bool (*cancel_is_asked)(void *arg);
static void *cancel_asked_arg;
static struct mono cancel_asked_since; /* ms 0: not asked */
static struct mono cancel_by;          /* ms 0: no limit */

void aws_cancel_when(bool (*fn)(void *arg), void *arg)
{
	cancel_is_asked = fn;
	cancel_asked_arg = arg;
	cancel_asked_since.ms = 0;
}

void aws_cancel_after(int64_t ms)
{
	cancel_by.ms = ms ? clock_mono_now().ms + ms : 0;
}

bool aws_cancel_is_due(void)
{
	struct mono now = clock_mono_now();

	if (cancel_by.ms && now.ms >= cancel_by.ms)
		return true;
	if (!cancel_is_asked || !cancel_is_asked(cancel_asked_arg)) {
		cancel_asked_since.ms = 0;
		return false;
	}
	if (!cancel_asked_since.ms)
		cancel_asked_since = now;
	return now.ms - cancel_asked_since.ms >=
	       (cancel_by.ms ? CANCEL_GRACE_LIMITED_MS : CANCEL_GRACE_MS);
}

int64_t aws_cancel_poll_ms(void)
{
	return cancel_is_asked || cancel_by.ms ? AWS_CANCEL_POLL_MS : 1000;
}
