/* Children of a process, and theirs: who is signalled, who is spared, and who is told. */
#include "tests/unit/node/place.h"

#include "jobs/node/subreaper.h"

#include <errno.h>
#include <sys/prctl.h>

/* ---- processes ---- */

static int ready[2]; /* each child that is ready writes a byte */

static int ready_make(void **state)
{
	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	return pipe2(ready, O_CLOEXEC);
}

static int ready_remove(void **state)
{
	(void)state;
	close(ready[0]);
	close(ready[1]);
	return 0;
}

static void on_signal(int signo)
{
	(void)signo;
	_exit(7);
}

/* Waits until so many are ready. */
static void await(int count)
{
	char byte;

	for (int i = 0; i < count; i++)
		assert_int_equal(read(ready[0], &byte, 1), 1);
}

/* A child that waits for signals; with `handles` it ends with 7 of SIGUSR1. `below`: so many
 * generations of its own, of which the last one handles it if `heir` does. */
static pid_t child(bool handles, int below, bool heir)
{
	pid_t test = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != test)
		_exit(1);
	if (handles)
		signal(SIGUSR1, on_signal);
	if (below > 0) {
		signal(SIGUSR1, SIG_DFL);
		if (handles)
			signal(SIGUSR1, on_signal);
		(void)child(below == 1 && heir, below - 1, heir);
	}
	if (write(ready[1], "", 1) == 1)
		for (;;)
			pause();
	_exit(0);
}

/* Returns how the process ended: its exit status, or below 0 the signal. */
static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool lives(pid_t pid)
{
	siginfo_t how = { 0 };

	assert_int_equal(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT | WNOHANG), 0);
	return how.si_pid == 0;
}

/* Reaps all that is left. */
static void kill_rest(void)
{
	while (subreaper_signal(SIGKILL, NULL, 0) > 0)
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* ---- all children ---- */

static void all_children_are_signalled_but_those_that_are_spared(void **state)
{
	pid_t spared[2], others[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		spared[i] = child(false, 0, false);
		others[i] = child(false, 0, false);
	}
	await(4);
	assert_int_equal(subreaper_signal(0, spared, 2), 2);
	assert_int_equal(subreaper_signal(0, spared, 1), 3);
	assert_int_equal(subreaper_signal(0, NULL, 0), 4);
	assert_int_equal(subreaper_signal(SIGTERM, spared, 2), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(end_of(others[i]), -SIGTERM);
		assert_true(lives(spared[i]));
	}
	kill_rest();
	assert_int_equal(subreaper_signal(SIGTERM, NULL, 0), 0);
}

/* A zombie is no process any more: nothing is to be waited for but its parent. */
static void who_has_ended_does_not_count(void **state)
{
	pid_t pid = child(false, 0, false);

	(void)state;
	await(1);
	kill(pid, SIGKILL);
	while (lives(pid))
		pause_ms(1);
	assert_int_equal(subreaper_signal(0, NULL, 0), 0);
	assert_int_equal(end_of(pid), -SIGKILL);
}

static void grandchildren_count_once_they_are_orphans(void **state)
{
	pid_t pid = child(false, 1, false);
	size_t count = 0;

	(void)state;
	await(2);
	assert_int_equal(subreaper_signal(0, NULL, 0), 1);
	/* The process takes its child with it, unless that has let go of it: then it is ours. */
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), -SIGKILL);
	count = subreaper_signal(0, NULL, 0);
	assert_in_range(count, 0, 1);
	kill_rest();
}

/* The name of a process may hold anything. */
static void a_process_with_an_odd_name_is_seen(void **state)
{
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "a) Z 1 (b");
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(0);
	}
	await(1);
	assert_int_equal(subreaper_signal(SIGTERM, NULL, 0), 1);
	assert_int_equal(end_of(pid), -SIGTERM);
}

/* ---- processes that handle a signal ---- */

static void who_handles_a_signal_is_told(void **state)
{
	pid_t pid = child(true, 0, false), other = child(true, 0, false);

	(void)state;
	await(2);
	assert_int_equal(subreaper_notify(pid, SIGUSR2), 0);
	assert_int_equal(subreaper_notify(pid, SIGUSR1), 1);
	assert_int_equal(end_of(pid), 7);
	assert_true(lives(other)); /* it is not of that command */
	kill_rest();
}

/* A launcher passes nothing on; and would die of it. */
static void below_who_does_not_the_first_that_does_is_told(void **state)
{
	for (int below = 1; below <= 2; below++) {
		pid_t pid = child(false, below, true);

		(void)state;
		await(below + 1);
		assert_int_equal(subreaper_notify(pid, SIGUSR1), 1);
		assert_true(lives(pid));
		kill_rest();
	}
}

static void below_who_handles_it_nobody_is_told(void **state)
{
	pid_t pid = child(true, 1, true);

	(void)state;
	await(2);
	assert_int_equal(subreaper_notify(pid, SIGUSR1), 1);
	assert_int_equal(end_of(pid), 7);
	kill_rest();
}

static void where_nobody_handles_it_nobody_is_told(void **state)
{
	pid_t pid = child(false, 2, false);

	(void)state;
	await(3);
	assert_int_equal(subreaper_notify(pid, SIGUSR1), 0);
	assert_true(lives(pid));
	kill_rest();
	assert_int_equal(subreaper_notify(pid, SIGUSR1), 0); /* it is gone */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ready_make, ready_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_children_are_signalled_but_those_that_are_spared),
		TEST(who_has_ended_does_not_count),
		TEST(grandchildren_count_once_they_are_orphans),
		TEST(a_process_with_an_odd_name_is_seen),
		TEST(who_handles_a_signal_is_told),
		TEST(below_who_does_not_the_first_that_does_is_told),
		TEST(below_who_handles_it_nobody_is_told),
		TEST(where_nobody_handles_it_nobody_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
