/*
 * Runs a test of a mutant where it can do no harm: confine SECONDS FOLDER PROGRAM [ARGUMENT…]
 *
 * A mutant may signal the wrong processes and remove the wrong files. So the program sees only its
 * own processes (a PID namespace, whose end ends them all), and can write only to FOLDER and to a
 * /tmp of its own (a mount namespace). Exit status: the program's, 128 + its signal, 124 after
 * SECONDS, 125 if it could not be confined.
 *
 * The first process of the namespace keeps STOKER_MUTANT in its environment, where mutant.c finds
 * it for all others, and the program does not have it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void confine_files(const char *folder)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail("private mounts");
	if (mount(folder, folder, NULL, MS_BIND, NULL) < 0)
		fail(folder);
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof read_only) <
	    0)
		fail("read-only mounts");
	if (syscall(SYS_mount_setattr, AT_FDCWD, folder, 0, &writable, sizeof writable) < 0)
		fail("writable folder");
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		fail("/proc");
	if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=256m") < 0)
		fail("/dev/shm");
	/* A node needs 1 GiB free. */
	if (mount("tmpfs", "/tmp", "tmpfs", 0, "size=2g") < 0)
		fail("/tmp");
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The first process of the namespace: what it leaves behind is its child, and ends with it. */
static void run(const char *folder, char **command)
{
	struct rlimit file = { 1UL << 30, 1UL << 30 }, core = { 0, 0 };
	int status;
	pid_t program, pid;

	confine_files(folder);
	program = fork();
	if (program < 0)
		fail("fork");
	if (program == 0) {
		setrlimit(RLIMIT_FSIZE, &file);
		setrlimit(RLIMIT_CORE, &core);
		unsetenv("STOKER_MUTANT");
		setsid();
		execv(command[0], command);
		fail(command[0]);
	}
	do
		pid = waitpid(-1, &status, 0);
	while (pid != program);
	_exit(status_of(status));
}

int main(int argc, char **argv)
{
	struct pollfd ended = { .events = POLLIN };
	int status = 0, ready;
	pid_t first;

	if (argc < 4)
		return 125;
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		fail("a namespace for the test, which only root may have");
	first = fork();
	if (first < 0)
		fail("fork");
	if (first == 0)
		run(argv[2], argv + 3);
	ended.fd = (int)syscall(SYS_pidfd_open, first, 0);
	ready = poll(&ended, 1, (int)(atof(argv[1]) * 1000));
	kill(first, ready == 0 ? SIGKILL : 0);
	waitpid(first, &status, 0);
	return ready == 0 ? 124 : status_of(status);
}
