/* Signals and the ends of processes in the simulated world: see kernel.h. What is said here of
 * Linux is in signal(7), wait(2), prctl(2). */
#include "tests/world/kernel_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/process/cancel.h"
#include "jobs/store/store.h"

static sigset_t set_of(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	return set;
}

static int sleep_long(int argc, char **argv)
{
	(void)argc, (void)argv;
	pause_ms(1000000);
	return 0;
}

/* ---- default actions ---- */

static int killer(int argc, char **argv)
{
	pid_t pid = spawn(install(sleep_long), 0);
	int status;

	(void)argc, (void)argv;
	pause_ms(1000);
	MUST(kill(pid, 0) == 0);
	MUST(kill(pid, SIGWINCH) == 0); /* harmless */
	pause_ms(1000);
	MUST(waitpid(pid, &status, WNOHANG) == 0);
	MUST(kill(pid, SIGTERM) == 0);
	MUST(waitpid(pid, &status, 0) == pid);
	MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	MUST(kill(pid, 0) < 0 && errno == ESRCH);
	results[0] = 1;
	return 0;
}

static void test_a_signal_ends_a_process(void **state)
{
	(void)state;
	start(killer);
	play();
	assert_int_equal(results[0], 1);
}

/* SIGTERM waits while a process is stopped; SIGKILL does not. */
static int stopper(int argc, char **argv)
{
	pid_t pid = spawn(install(sleep_long), 0);
	int status;

	(void)argc, (void)argv;
	MUST(kill(pid, SIGSTOP) == 0);
	MUST(kill(pid, SIGTERM) == 0);
	pause_ms(1000);
	MUST(waitpid(pid, &status, WNOHANG) == 0);
	MUST(kill(pid, SIGCONT) == 0);
	MUST(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM);
	pid = spawn(install(sleep_long), 0);
	MUST(kill(pid, SIGSTOP) == 0);
	MUST(kill(pid, SIGKILL) == 0);
	MUST(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
	results[0] = 1;
	return 0;
}

static void test_a_stopped_process_keeps_its_signals(void **state)
{
	(void)state;
	start(stopper);
	play();
	assert_int_equal(results[0], 1);
}

static int broken_pipe(int argc, char **argv)
{
	int fds[2];

	(void)argc, (void)argv;
	MUST(pipe2(fds, O_CLOEXEC) == 0);
	close(fds[0]);
	signal(SIGPIPE, SIG_IGN);
	MUST(write(fds[1], "x", 1) < 0 && errno == EPIPE);
	results[0] = 1;
	signal(SIGPIPE, SIG_DFL);
	(void)!write(fds[1], "x", 1);
	results[1] = 1;
	return 0;
}

static void test_a_pipe_without_readers_kills(void **state)
{
	struct process *process = start(broken_pipe);

	(void)state;
	play();
	assert_int_equal(results[0], 1);
	assert_int_equal(results[1], 0);
	assert_int_equal(process->status, SIGPIPE);
}

/* ---- masks, handlers, signalfd ---- */

static int end_at_once(int argc, char **argv)
{
	(void)argc, (void)argv;
	return 5;
}

static int masker(int argc, char **argv)
{
	sigset_t child = set_of(SIGCHLD), pending;
	const struct timespec no_time = { 0 }, second = { 1, 0 };
	struct signalfd_siginfo info;
	int fd;

	(void)argc, (void)argv;
	sigprocmask(SIG_BLOCK, &child, NULL);
	MUST(sigtimedwait(&child, NULL, &no_time) < 0 && errno == EAGAIN);
	MUST(sigtimedwait(&child, NULL, &second) < 0 && errno == EAGAIN);
	spawn(install(end_at_once), 0);
	/* Ignored by default, but it waits while it is blocked. */
	MUST(sigtimedwait(&child, NULL, NULL) == SIGCHLD);
	spawn(install(end_at_once), 0);
	pause_ms(1000);
	MUST(sigpending(&pending) == 0 && sigismember(&pending, SIGCHLD));
	fd = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
	MUST(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 1);
	MUST(read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGCHLD);
	MUST(read(fd, &info, sizeof info) < 0 && errno == EAGAIN);
	results[0] = 1;
	return 0;
}

static void test_blocked_signals_wait(void **state)
{
	(void)state;
	start(masker);
	play();
	assert_int_equal(results[0], 1);
}

static void note(int signo)
{
	results[1] = signo;
}

static int handler_owner(int argc, char **argv)
{
	const struct timespec pause = { 1000, 0 };
	struct timespec left;

	(void)argc, (void)argv;
	MUST(signal(SIGUSR1, note) == SIG_DFL);
	MUST(nanosleep(&pause, &left) < 0 && errno == EINTR);
	MUST(left.tv_sec >= 989 && left.tv_sec <= 990);
	MUST(signal(SIGUSR1, SIG_DFL) == note);
	results[0] = results[1] == SIGUSR1;
	return 0;
}

static void send_usr1(void *arg)
{
	process_signal(arg, SIGUSR1);
}

static void test_a_handler_interrupts_a_pause(void **state)
{
	struct process *process = start(handler_owner);

	(void)state;
	world_at(now_ns + 10 * WORLD_S, send_usr1, process);
	play();
	assert_int_equal(results[0], 1);
}

/* ---- families ---- */

static int dies_with_parent(int argc, char **argv)
{
	(void)argc, (void)argv;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause_ms(1000000);
	return 0;
}

static int leaves_children(int argc, char **argv)
{
	(void)argc, (void)argv;
	results[2] = spawn(install(dies_with_parent), 0);
	results[3] = spawn(install(sleep_long), 0);
	pause_ms(1000);
	return 0;
}

static int subreaper(int argc, char **argv)
{
	pid_t child, first, second;
	int status;

	(void)argc, (void)argv;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	child = spawn(install(leaves_children), POSIX_SPAWN_SETSID);
	MUST(waitpid(child, &status, 0) == child);
	first = waitpid(-1, &status, 0);
	MUST(first == results[2] && WTERMSIG(status) == SIGKILL);
	/* The group of its session is still its own. */
	MUST(kill(-child, SIGTERM) == 0);
	second = waitpid(-1, &status, 0);
	MUST(second == results[3] && WTERMSIG(status) == SIGTERM);
	MUST(waitpid(-1, &status, 0) < 0 && errno == ECHILD);
	MUST(kill(-child, 0) < 0 && errno == ESRCH);
	results[0] = 1;
	return 0;
}

static void test_orphans_fall_to_the_subreaper(void **state)
{
	(void)state;
	start(subreaper);
	play();
	assert_int_equal(results[0], 1);
}

static int pidfd_watcher(int argc, char **argv)
{
	pid_t pid = spawn(install(leaves_children), POSIX_SPAWN_SETSID);
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), status;

	(void)argc, (void)argv;
	MUST(fd >= 0);
	MUST(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 100) == 0);
	MUST(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1) == 1);
	MUST(waitpid(pid, &status, 0) == pid);
	MUST(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0 && errno == ESRCH);
	MUST(process_find(self->machine, results[3]) != NULL);
	MUST(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 1 << 2) == 0);
	MUST(process_find(self->machine, results[3]) == NULL);
	MUST(syscall(SYS_pidfd_open, 77777, 0) < 0 && errno == ESRCH);
	results[0] = 1;
	return 0;
}

static void test_a_pidfd_names_one_process(void **state)
{
	(void)state;
	start(pidfd_watcher);
	play();
	assert_int_equal(results[0], 1);
}

/* More than there are pids: they are used again, but not while somebody has them. */
static int breeder(int argc, char **argv)
{
	pid_t zombie = spawn(install(end_at_once), 0);
	char *path = install(end_at_once);
	int status, seen = 0;

	(void)argc, (void)argv;
	for (int i = 0; i < 1000; i++) {
		pid_t pid = spawn(path, 0);

		MUST(pid != zombie && pid != self->pid);
		MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
		seen += pid == zombie + 1;
	}
	results[0] = seen;
	MUST(waitpid(zombie, &status, 0) == zombie);
	return 0;
}

static void test_pids_are_used_again(void **state)
{
	(void)state;
	start(breeder);
	play();
	assert_in_range(results[0], 2, 5);
}

/* ---- statics, halts, killed fibers ---- */

static bool is_asked(void *arg)
{
	(void)arg;
	return false;
}

/* Each process has the variables of the boxes for itself, as the linker made them. */
static int variable_owner(int argc, char **argv)
{
	int at = results[8]++;

	(void)argc, (void)argv;
	MUST(strcmp(environ[0], "HOME=/") == 0);
	MUST(setenv("OWN", at ? "b" : "a", 1) == 0);
	cancel_when(is_asked, &results[at]);
	pause_ms(1000);
	MUST(strcmp(getenv("OWN"), at ? "b" : "a") == 0);
	errno = 100 + at;
	pause_ms(1000);
	results[at] = errno;
	return 0;
}

static void test_each_process_has_its_own_variables(void **state)
{
	(void)state;
	start(variable_owner);
	start(variable_owner);
	play();
	assert_int_equal(results[0], 100);
	assert_int_equal(results[1], 101);
	assert_null(getenv("OWN"));
}

static int deep(int depth)
{
	volatile char frame[2000];

	frame[0] = (char)depth;
	if (depth == 0)
		pause_ms(1000000);
	else
		deep(depth - 1);
	return frame[0];
}

static int deep_sleeper(int argc, char **argv)
{
	(void)argc, (void)argv;
	return deep(50);
}

static void halt(void *arg)
{
	machine_halt(arg, true);
}

static void test_a_halt_ends_all(void **state)
{
	struct process *list[20];
	char boot_id[37];

	(void)state;
	memcpy(boot_id, machine->boot_id, sizeof boot_id);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 20; i++)
			list[i] = start(deep_sleeper);
		world_at(now_ns + WORLD_S, halt, machine);
		play();
		for (int i = 0; i < 20; i++)
			assert_int_equal(list[i]->state, PROCESS_GONE);
		machine_boot(machine);
		assert_string_not_equal(machine->boot_id, boot_id);
		assert_int_equal(machine_clock_ns(machine, CLOCK_BOOTTIME), 0);
	}
}

/* ---- the same seed ---- */

static int busybody(int argc, char **argv)
{
	(void)argc, (void)argv;
	for (int i = 0; i < 50; i++)
		pause_ms(chance_below(100));
	return 0;
}

static uint64_t digest_of(uint64_t seed)
{
	chance_seed(seed, 0);
	now_ns = 0;
	call_digest = 0;
	start(busybody);
	start(busybody);
	play();
	return call_digest;
}

static void test_another_seed_gives_another_digest(void **state)
{
	uint64_t first = digest_of(1);

	(void)state;
	assert_int_not_equal(first, 0);
	assert_int_not_equal(digest_of(2), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_signal_ends_a_process, fresh_machine),
		cmocka_unit_test_setup(test_a_stopped_process_keeps_its_signals, fresh_machine),
		cmocka_unit_test_setup(test_a_pipe_without_readers_kills, fresh_machine),
		cmocka_unit_test_setup(test_blocked_signals_wait, fresh_machine),
		cmocka_unit_test_setup(test_a_handler_interrupts_a_pause, fresh_machine),
		cmocka_unit_test_setup(test_orphans_fall_to_the_subreaper, fresh_machine),
		cmocka_unit_test_setup(test_a_pidfd_names_one_process, fresh_machine),
		cmocka_unit_test_setup(test_pids_are_used_again, fresh_machine),
		cmocka_unit_test_setup(test_each_process_has_its_own_variables, fresh_machine),
		cmocka_unit_test_setup(test_a_halt_ends_all, fresh_machine),
		cmocka_unit_test_setup(test_another_seed_gives_another_digest, fresh_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
