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

/* The number of calls of a function in the role that the process has now. */
struct tally {
	int turn;
	long count;
};

static char role[32] = "main", wanted_role[32], wanted_call[32], mark[4096], log_path[4096];
static long wanted_number;
static int fault, folders, turn = 1; /* of roles */

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
static int is_it(const char *name, struct tally *tally)
{
	int kept = errno, it;

	if (strcmp(role, wanted_role) != 0)
		return 0;
	tally->count = tally->turn == turn ? tally->count + 1 : 1;
	tally->turn = turn;
	note(name, tally->count);
	it = tally->count == wanted_number && strcmp(name, wanted_call) == 0 &&
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

#define CALL(name, when, failed)                                                                   \
	long nth_##name(long a, long b, long c, long d, long e, long f) __asm__(#name);            \
	long nth_##name(long a, long b, long c, long d, long e, long f)                            \
	{                                                                                          \
		static struct tally tally;                                                         \
		static call_fn *real;                                                              \
		if (!real)                                                                         \
			real = (call_fn *)dlsym(RTLD_NEXT, #name);                                 \
		if (creates(when, b, c) && is_it(#name, &tally)) {                                 \
			errno = fault;                                                             \
			return failed;                                                             \
		}                                                                                  \
		return real(a, b, c, d, e, f);                                                     \
	}

CALL(open, IF_CREATES_2, -1)
CALL(openat, IF_CREATES_3, -1)
CALL(mkostemp, ALWAYS, -1)
CALL(mkdtemp, ALWAYS, 0)
CALL(mkdir, ALWAYS, -1)
CALL(mkdirat, ALWAYS, -1)
CALL(rmdir, ALWAYS, -1)
CALL(unlink, ALWAYS, -1)
CALL(unlinkat, ALWAYS, -1)
CALL(rename, ALWAYS, -1)
CALL(renameat, ALWAYS, -1)
CALL(renameat2, ALWAYS, -1)
CALL(link, ALWAYS, -1)
CALL(linkat, ALWAYS, -1)
CALL(symlinkat, ALWAYS, -1)
CALL(chmod, ALWAYS, -1)
CALL(fchmod, ALWAYS, -1)
CALL(fchmodat, ALWAYS, -1)
CALL(futimens, ALWAYS, -1)
CALL(write, ALWAYS, -1)
CALL(pwrite, ALWAYS, -1)
CALL(pwrite64, ALWAYS, -1)
CALL(ftruncate, ALWAYS, -1)
CALL(ftruncate64, ALWAYS, -1)
CALL(syncfs, ALWAYS, -1)
CALL(fdatasync, ALWAYS, -1)
CALL(sendfile, ALWAYS, -1)
CALL(copy_file_range, ALWAYS, -1)
CALL(flock, ALWAYS, -1)
CALL(fork, ALWAYS, -1)
CALL(kill, ALWAYS, -1)
CALL(posix_spawn, ALWAYS, fault)
CALL(connect, ALWAYS, -1)
CALL(send, ALWAYS, -1)
CALL(sendto, ALWAYS, -1)

/* fsync stands alone, since a folder may be refused. */
int nth_fsync(int fd) __asm__("fsync");
int nth_fsync(int fd)
{
	static struct tally tally;
	struct stat st;

	if (folders && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = folders;
		return -1;
	}
	if (is_it("fsync", &tally)) {
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
		turn++;
	}
	return (int)syscall(SYS_prctl, option, a, b, c, d);
}
