/* Early end of waits for AWS: see aws.h. The state belongs to the process, not to a client: a
 * process that is told to end gives up all its waits. */
#include "aws/aws.h"

#include "jobs/base/clock.h"

/* Time from when the request to end was first noticed: a healthy service answers in less, so
 * calls under way can end normally. */
#define CALLED_MS         1500
#define CALLED_HURRIED_MS 300

static bool (*is_called)(void *arg);
static void *is_called_arg;
static struct mono called_since; /* ms 0: not called */
static struct mono hurry_until;  /* ms 0: there is no hurry */

void aws_interrupt(bool (*fn)(void *arg), void *arg)
{
	is_called = fn;
	is_called_arg = arg;
	called_since.ms = 0;
}

void aws_hurry(int64_t ms)
{
	hurry_until.ms = ms ? clock_mono_now().ms + ms : 0;
}

bool aws_gives_up(void)
{
	struct mono now = clock_mono_now();

	if (hurry_until.ms && now.ms >= hurry_until.ms)
		return true;
	if (!is_called || !is_called(is_called_arg)) {
		called_since.ms = 0;
		return false;
	}
	if (!called_since.ms)
		called_since = now;
	return now.ms - called_since.ms >= (hurry_until.ms ? CALLED_HURRIED_MS : CALLED_MS);
}

int aws_wait_turn(struct aws *aws, struct err **err)
{
	if (aws_gives_up())
		return err_set(err, EXIT_UNREACHABLE,
			       "no answer was waited for any longer: this process is to end");
	aws_turn(aws, is_called || hurry_until.ms ? AWS_LOOK_MS : 1000);
	return 0;
}
