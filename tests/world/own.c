/* Calls that touch only the process and its machine: clocks, identity, limits. See kernel.h. */
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"

CALL_WRAPS(clock_gettime);
CALL_WRAPS(time);
CALL_WRAPS(nanosleep);
CALL_WRAPS(getpid);
CALL_WRAPS(getppid);
CALL_WRAPS(geteuid);
CALL_WRAPS(setenv);
CALL_WRAPS(getrlimit);
CALL_WRAPS(setrlimit);
CALL_WRAPS(prctl);
CALL_WRAPS(sched_getaffinity);
CALL_WRAPS(sched_yield);
CALL_WRAPS(umask);
CALL_WRAPS(uname);
CALL_WRAPS(gethostname);
CALL_WRAPS(getrandom);
CALL_WRAPS(dlopen);

#define USER_ID 0 /* owns all files: tree.h */

/* ---- clocks ---- */

static int64_t read_clock(clockid_t clock)
{
	if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID)
		return self->cpu_ns;
	return machine_clock_ns(self->machine, clock);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int64_t ns;

	call_enter(CALL_clock_gettime, NULL, -1);
	ns = read_clock(clock);
	/* A clock that was set to before 1970 has a negative time, with nanoseconds from 0 on. */
	ret->tv_nsec = ((ns % WORLD_S) + WORLD_S) % WORLD_S;
	ret->tv_sec = (ns - ret->tv_nsec) / WORLD_S;
	return 0;
}

time_t __wrap_time(time_t *ret)
{
	time_t now;

	call_enter(CALL_time, NULL, -1);
	now = read_clock(CLOCK_REALTIME) / WORLD_S;
	if (ret)
		*ret = now;
	return now;
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *ret_left)
{
	struct call call = call_enter(CALL_nanosleep, NULL, -1);
	int64_t until_ns = now_ns + pause->tv_sec * WORLD_S + pause->tv_nsec;
	int waited;

	if (call.error)
		return call_fail(&call);
	waited = world_wait(NULL, NULL, until_ns);
	if (waited == -EINTR && ret_left) {
		int64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

		*ret_left = (struct timespec){ left_ns / WORLD_S, left_ns % WORLD_S };
	}
	return (int)call_return(&call, waited == -EINTR ? -EINTR : 0);
}

/* ---- identity and limits ---- */

pid_t __wrap_getpid(void)
{
	call_enter(CALL_getpid, NULL, -1);
	return self->pid;
}

pid_t __wrap_getppid(void)
{
	call_enter(CALL_getppid, NULL, -1);
	return self->parent;
}

uid_t __wrap_geteuid(void)
{
	call_enter(CALL_geteuid, NULL, -1);
	return USER_ID;
}

/* That of glibc reallocates the list that it made last, which may be another process's. */
int __wrap_setenv(const char *name, const char *value, int overwrite)
{
	size_t len = strlen(name), count = 0, size = len + strlen(value) + 2;
	char **row = environ, **list, *text;

	call_enter(CALL_setenv, NULL, -1);
	for (; row[count] && (strncmp(row[count], name, len) != 0 || row[count][len] != '=');
	     count++)
		;
	if (row[count] && !overwrite)
		return 0;
	text = world_zero(size);
	snprintf(text, size, "%s=%s", name, value);
	if (row[count]) {
		row[count] = text;
		return 0;
	}
	/* Not freed: somebody may still read the old list. */
	list = world_zero((count + 2) * sizeof *list);
	memcpy(list, row, count * sizeof *list);
	list[count] = text;
	environ = list;
	return 0;
}

int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *ret)
{
	struct call call = call_enter(CALL_getrlimit, NULL, -1);

	if ((unsigned)resource >= RLIM_NLIMITS)
		return (int)call_return(&call, -EINVAL);
	*ret = self->limits[resource];
	return (int)call_return(&call, 0);
}

int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	struct call call = call_enter(CALL_setrlimit, NULL, -1);

	if ((unsigned)resource >= RLIM_NLIMITS || limit->rlim_cur > limit->rlim_max)
		return (int)call_return(&call, -EINVAL);
	if (limit->rlim_max > self->limits[resource].rlim_max)
		return (int)call_return(&call, -EPERM);
	self->limits[resource] = *limit;
	return (int)call_return(&call, 0);
}

static int control(int option, unsigned long value, const char *name)
{
	switch (option) {
	case PR_SET_NAME:
		snprintf(self->name, sizeof self->name, "%s", name);
		return 0;
	case PR_SET_PDEATHSIG:
		if (value > SIGNALS)
			return -EINVAL;
		self->death_signal = (int)value;
		return 0;
	case PR_SET_CHILD_SUBREAPER:
		self->subreaper = value != 0;
		return 0;
	case PR_SET_DUMPABLE:
		return 0;
	default:
		return -EINVAL;
	}
}

int __wrap_prctl(int option, ...)
{
	struct call call = call_enter(CALL_prctl, NULL, -1);
	unsigned long value = 0;
	const char *name = NULL;
	va_list arguments;

	va_start(arguments, option);
	if (option == PR_SET_NAME)
		name = va_arg(arguments, const char *);
	else
		value = va_arg(arguments, unsigned long);
	va_end(arguments);
	return (int)call_return(&call, control(option, value, name));
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
	(void)pid;
	call_enter(CALL_sched_getaffinity, NULL, -1);
	CPU_ZERO_S(size, ret);
	CPU_SET_S(0, size, ret);
	CPU_SET_S(1, size, ret);
	return 0;
}

int __wrap_sched_yield(void)
{
	call_enter(CALL_sched_yield, NULL, -1);
	return 0;
}

mode_t __wrap_umask(mode_t mask)
{
	mode_t before;

	call_enter(CALL_umask, NULL, -1);
	before = self->umask;
	self->umask = mask & 0777;
	return before;
}

/* ---- the machine ---- */

int __wrap_uname(struct utsname *ret)
{
	call_enter(CALL_uname, NULL, -1);
	memset(ret, 0, sizeof *ret);
	snprintf(ret->sysname, sizeof ret->sysname, "Linux");
	snprintf(ret->nodename, sizeof ret->nodename, "%s", self->machine->host);
	snprintf(ret->release, sizeof ret->release, "6.1.0-world");
	snprintf(ret->version, sizeof ret->version, "#1 SMP");
	snprintf(ret->machine, sizeof ret->machine, "x86_64");
	return 0;
}

int __wrap_gethostname(char *ret, size_t size)
{
	struct call call = call_enter(CALL_gethostname, NULL, -1);

	if (strlen(self->machine->host) >= size)
		return (int)call_return(&call, -ENAMETOOLONG);
	snprintf(ret, size, "%s", self->machine->host);
	return (int)call_return(&call, 0);
}

ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags)
{
	char *bytes = ret;

	(void)flags;
	call_enter(CALL_getrandom, NULL, -1);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)chance_next();
	return (ssize_t)len;
}

/* No library is loaded while the program runs: libcurl and libgit2 are not there. */
void *__wrap_dlopen(const char *path, int flags)
{
	(void)path, (void)flags;
	call_enter(CALL_dlopen, NULL, -1);
	return NULL;
}
