/* Children in which schedules play: see host.h. The linker leads plain names to the world, so the
 * real functions are called by their __real_ names. */
#include "tests/world/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

pid_t __real_fork(void);
pid_t __real_waitpid(pid_t pid, int *status, int options);
void __real__exit(int status) __attribute__((noreturn));
int __real_clock_gettime(clockid_t clock, struct timespec *ret);

double host_seconds(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

pid_t host_fork(void)
{
	pid_t pid;

	fflush(stdout);
	pid = __real_fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	return pid;
}

static pid_t start(uint64_t number, host_play_fn fn, const void *arg, struct report *ret)
{
	pid_t pid = host_fork();

	if (pid > 0)
		return pid;
	ret->died = true;
	fn(arg, number, ret);
	ret->died = false;
	fflush(stdout);
	__real__exit(0);
}

static struct report *shared_reports(size_t size)
{
	struct report *all = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return all;
}

void host_run_one(host_play_fn fn, const void *arg, uint64_t number, struct report *ret)
{
	struct report *shared = shared_reports(sizeof *shared);
	pid_t pid = start(number, fn, arg, shared);
	int status;

	while (__real_waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret = *shared;
	host_drop(shared, 1);
}

struct report *host_run_each(uint64_t from, uint64_t count, int jobs, host_play_fn fn,
			     const void *arg)
{
	struct report *all =
		shared_reports(count * sizeof *all); /* the children fill in one each */
	uint64_t begun = 0;
	int running = 0, status;

	while (begun < count || running > 0) {
		if (begun < count && running < jobs) {
			all[begun].number = from + begun;
			(void)start(from + begun, fn, arg, &all[begun]);
			begun++;
			running++;
		} else if (__real_waitpid(-1, &status, 0) > 0) {
			running--;
		} else if (errno != EINTR) {
			break;
		}
	}
	return all;
}

void host_drop(struct report *reports, uint64_t count)
{
	munmap(reports, count * sizeof *reports);
}

void host_run_all(uint64_t from, uint64_t count, int jobs, host_play_fn fn, const void *arg,
		  struct reports *reports)
{
	struct report *all = host_run_each(from, count, jobs, fn, arg);

	for (uint64_t i = 0; i < count; i++)
		reports_add(reports, &all[i]);
	host_drop(all, count);
}
