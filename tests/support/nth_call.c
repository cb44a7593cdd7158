/* Preloaded into a program, this counts its calls that change something, and at one of them kills
 * the process or lets the call fail, once. It is for what strace does not reach: helpers of the
 * agent, which are forked and not started, and machines that refuse ptrace. It sees the calls that
 * the program makes to the C library, not those that the library makes by itself.
 *
 *   NTH_ROLE     whose calls are counted: "main" is the process that was started, anything else a
 *                child that names itself so (prctl(PR_SET_NAME))
 *   NTH_LOG      a file: "NAME NUMBER PID" is appended for each call of the role
 *   NTH_CALL     the name of a call, and
 *   NTH_NUMBER   which one of that name, in one process of the role, from 1
 *   NTH_ERRNO    what it fails with; without it the process is killed before the call
 *   NTH_MARK     a file that is made at that moment; once it is there nothing happens any more
 *   NTH_FOLDERS  an errno that every fsync of a folder fails with, in every process
 *
 * Only the program and the processes that it forks are meant: what they start has no preload. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Every argument of these functions is an integer or a pointer, so one shape fits all. */
typedef long call_fn(long a, long b, long c, long d, long e, long f);

enum { ALWAYS, IF_CREATES_2, IF_CREATES_3 };

#define CALLS(X)                                                                                   \
	X(open, IF_CREATES_2, -1)                                                                  \
	X(openat, IF_CREATES_3, -1)                                                                \
	X(mkostemp, ALWAYS, -1) X(mkdtemp, ALWAYS, 0) X(mkdir, ALWAYS, -1) X(                      \
		mkdirat, ALWAYS, -1) X(rmdir, ALWAYS, -1) X(unlink, ALWAYS, -1)                    \
		X(unlinkat, ALWAYS, -1) X(rename, ALWAYS, -1) X(renameat, ALWAYS, -1) X(           \
			renameat2, ALWAYS, -1) X(link, ALWAYS, -1) X(linkat, ALWAYS, -1)           \
			X(symlinkat, ALWAYS, -1) X(chmod, ALWAYS, -1) X(fchmod, ALWAYS, -1) X(     \
				fchmodat, ALWAYS, -1) X(futimens, ALWAYS, -1) X(write, ALWAYS, -1) \
				X(pwrite, ALWAYS, -1) X(pwrite64, ALWAYS, -1) X(                   \
					ftruncate, ALWAYS, -1) X(ftruncate64, ALWAYS,              \
								 -1) X(syncfs, ALWAYS, -1)         \
					X(fdatasync, ALWAYS, -1) X(sendfile, ALWAYS, -1) X(        \
						copy_file_range, ALWAYS,                           \
						-1) X(flock, ALWAYS, -1) X(fork, ALWAYS, -1)       \
						X(kill, ALWAYS, -1) X(posix_spawn, ALWAYS, 'e')    \
							X(connect, ALWAYS, -1) X(send, ALWAYS, -1) \
								X(sendto, ALWAYS, -1)

#define NUMBER_OF(name, when, failed) AT_##name,
enum { CALLS(NUMBER_OF) AT_fsync, CALL_COUNT };
#undef NUMBER_OF

static char role[32] = "main", wanted_role[32], wanted_call[32], mark[4096], log_path[4096];
static long counts[CALL_COUNT], wanted_number;
static int fault, folders;

static void take_text(const char *name, char *ret, size_t size)
{
	const char *value = getenv(name);

	snprintf(ret, size, "%s", value ? value : "");
}

static long take_number(const char *name)
{
	const char *value = getenv(name);

	return value ? atol(value) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	take_text("NTH_ROLE", wanted_role, sizeof wanted_role);
	take_text("NTH_CALL", wanted_call, sizeof wanted_call);
	take_text("NTH_MARK", mark, sizeof mark);
	take_text("NTH_LOG", log_path, sizeof log_path);
	wanted_number = take_number("NTH_NUMBER");
	fault = (int)take_number("NTH_ERRNO");
	folders = (int)take_number("NTH_FOLDERS");
	unsetenv("LD_PRELOAD");
}

/* The file is opened each time: a helper closes whatever it was left. */
static void note(const char *name, long number)
{
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
	char line[100];
	int len = snprintf(line, sizeof line, "%s %ld %ld\n", name, number, (long)getpid());
	int fd = log_path[0] ? (int)syscall(SYS_openat, AT_FDCWD, log_path, flags, 0600) : -1;

	if (fd < 0)
		return;
	syscall(SYS_write, fd, line, (size_t)len);
	syscall(SYS_close, fd);
}

/* Is it this call? The process does not come back if it is to be killed. */
static int is_it(const char *name, int at)
{
	int kept = errno, it;

	if (strcmp(role, wanted_role) != 0)
		return 0;
	counts[at]++;
	note(name, counts[at]);
	it = counts[at] == wanted_number && strcmp(name, wanted_call) == 0 &&
	     syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >=
		     0;
	if (it && !fault)
		syscall(SYS_kill, getpid(), SIGKILL);
	errno = kept;
	return it;
}

static int creates(int when, long second, long third)
{
	const long making = O_CREAT | O_TRUNC;

	return when == ALWAYS || (when == IF_CREATES_2 && second & making) ||
	       (when == IF_CREATES_3 && third & making);
}

#define DEFINE(name, when, failed)                                                                 \
	long nth_##name(long a, long b, long c, long d, long e, long f) __asm__(#name);            \
	long nth_##name(long a, long b, long c, long d, long e, long f)                            \
	{                                                                                          \
		static call_fn *real;                                                              \
		if (!real)                                                                         \
			real = (call_fn *)dlsym(RTLD_NEXT, #name);                                 \
		if (creates(when, b, c) && is_it(#name, AT_##name)) {                              \
			errno = fault;                                                             \
			return failed == 'e' ? fault : failed;                                     \
		}                                                                                  \
		return real(a, b, c, d, e, f);                                                     \
	}
CALLS(DEFINE)

/* By itself, since a folder may be refused. */
int nth_fsync(int fd) __asm__("fsync");
int nth_fsync(int fd)
{
	struct stat st;

	if (folders && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = folders;
		return -1;
	}
	if (is_it("fsync", AT_fsync)) {
		errno = fault;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

/* A helper tells its name before anything else. */
int nth_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	      unsigned long d) __asm__("prctl");
int nth_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	if (option == PR_SET_NAME) {
		snprintf(role, sizeof role, "%s", (const char *)a);
		memset(counts, 0, sizeof counts);
	}
	return (int)syscall(SYS_prctl, option, a, b, c, d);
}
