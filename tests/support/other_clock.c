/* Preloaded into a driver, this gives it a machine whose clock on the wall is
 * OTHER_CLOCK_S seconds off; what measures durations stays right. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off(void)
{
	const char *seconds = getenv("OTHER_CLOCK_S");

	return seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	long failed = syscall(SYS_clock_gettime, id, ret);

	if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += off();
	return (int)failed;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	ret->tv_sec = now.tv_sec;
	ret->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
