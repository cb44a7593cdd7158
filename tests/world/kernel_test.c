/* The kernel of the simulated world, by small programs that run in it: time, pipes, signals,
 * children, timers, machines that sleep and halt, and the loop of the product. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/process/loop.h"
#include "tests/world/call.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

static struct machine *machine;

/* Within a program no assertion of cmocka may fail: it would jump to another stack. */
static void must(bool right, const char *what)
{
	if (!right)
		world_broken(what);
}
#define MUST(condition) must(condition, #condition)

/* What the programs tell the test. */
static int results[16];
static int64_t times[16];

static int started(void **state)
{
	static int number;
	char host[32];

	(void)state;
	snprintf(host, sizeof host, "host-%d", ++number);
	machine = machine_new(host, 1800000000 * WORLD_S);
	memset(results, 0, sizeof results);
	memset(times, 0, sizeof times);
	return 0;
}

static struct process *start(const char *program)
{
	char *argv[] = { (char *)program, NULL }, *envp[] = { "HOME=/", NULL };
	char path[64], line[64];
	struct process *process;

	snprintf(path, sizeof path, "/bin/%s", program);
	snprintf(line, sizeof line, "\177ELF world %s\n", program);
	tree_put(machine, path, line, strlen(line), 0755);
	process = process_start(&(struct process_start){
		.machine = machine, .program = path, .argv = argv, .envp = envp });
	assert_non_null(process);
	return process;
}

/* ---- time ---- */

static int sleeper(int argc, char **argv)
{
	const struct timespec pause = { .tv_sec = 2 };
	struct timespec before, after;

	(void)argc, (void)argv;
	clock_gettime(CLOCK_BOOTTIME, &before);
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_BOOTTIME, &after);
	results[0] = (int)((after.tv_sec - before.tv_sec) * 1000 +
			   (after.tv_nsec - before.tv_nsec) / 1000000);
	return 7;
}

static void test_a_pause_takes_its_time(void **state)
{
	struct process *process = start("sleeper");

	(void)state;
	world_play_until(WORLD_NEVER);
	assert_in_range(results[0], 2000, 2001);
	assert_int_equal(process->state, PROCESS_GONE);
	assert_true(WIFEXITED(process->status));
	assert_int_equal(WEXITSTATUS(process->status), 7);
}

/* A suspended machine's pause is longer by as much on the clock that counts sleep. */
static void wake(void *arg)
{
	machine_wake(arg);
}

static void suspend(void *arg)
{
	machine_suspend(arg);
}

static void test_a_machine_that_sleeps_does_nothing(void **state)
{
	(void)state;
	start("sleeper");
	world_at(now_ns + WORLD_S, suspend, machine);
	world_at(now_ns + 100 * WORLD_S, wake, machine);
	world_play_until(WORLD_NEVER);
	assert_in_range(results[0], 101000, 101001);
	assert_int_equal(machine->slept_ns, 99 * WORLD_S);
}

/* ---- pipes and children ---- */

static int echo(int argc, char **argv)
{
	char bytes[256];
	ssize_t len;

	(void)argc, (void)argv;
	while ((len = read(0, bytes, sizeof bytes)) > 0)
		if (write(1, bytes, (size_t)len) != len)
			return 1;
	return len == 0 ? 3 : 2;
}

/* Starts a program with pipes as its input and output; close the ends. */
static pid_t spawn_with_pipes(char *program, int *ret_to, int *ret_from)
{
	char *argv[] = { program, NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	int to[2], from[2];
	pid_t pid = -1;

	MUST(pipe2(to, O_CLOEXEC) == 0);
	MUST(pipe2(from, O_CLOEXEC) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	posix_spawn_file_actions_adddup2(&actions, from[1], 1);
	MUST(posix_spawn(&pid, program, &actions, NULL, argv, envp) == 0);
	posix_spawn_file_actions_destroy(&actions);
	close(to[0]);
	close(from[1]);
	*ret_to = to[1];
	*ret_from = from[0];
	return pid;
}

static int talker(int argc, char **argv)
{
	enum { LEN = 200000 }; /* more than two pipes hold */
	char *bytes = calloc(1, LEN), *back = calloc(1, LEN);
	int to, from, status;
	size_t sent = 0, had = 0;
	pid_t pid = spawn_with_pipes("/bin/echo", &to, &from);

	(void)argc, (void)argv;
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (char)(i % 251);
	fcntl(to, F_SETFL, O_NONBLOCK);
	while (had < LEN) {
		struct pollfd polls[] = { { .fd = to, .events = POLLOUT },
					  { .fd = from, .events = POLLIN } };
		ssize_t part;

		polls[0].fd = sent < LEN ? to : -1;
		MUST(poll(polls, 2, -1) > 0);
		if (polls[0].revents & POLLOUT) {
			part = write(to, bytes + sent, LEN - sent);
			sent += part > 0 ? (size_t)part : 0;
		}
		if (polls[1].revents & POLLIN) {
			part = read(from, back + had, LEN - had);
			had += part > 0 ? (size_t)part : 0;
		}
	}
	results[0] = memcmp(bytes, back, LEN) == 0;
	results[1] = waitpid(pid, &status, WNOHANG);
	close(to);
	results[2] = (int)read(from, back, 1);
	results[3] = waitpid(pid, &status, 0) == pid;
	results[4] = WEXITSTATUS(status);
	results[5] = waitpid(-1, &status, 0) == -1 && errno == ECHILD;
	free(bytes);
	free(back);
	return 0;
}

static void test_children_talk_by_pipes(void **state)
{
	(void)state;
	tree_put(machine, "/bin/echo", "\177ELF world echo\n", 17, 0755);
	start("talker");
	world_play_until(WORLD_NEVER);
	assert_int_equal(results[0], 1);
	assert_int_equal(results[1], 0);
	assert_int_equal(results[2], 0);
	assert_int_equal(results[3], 1);
	assert_int_equal(results[4], 3);
	assert_int_equal(results[5], 1);
}

/* ---- the loop of the product ---- */

struct clockwork {
	struct loop *loop;
	int ticks;
};

static void tick(void *arg)
{
	struct clockwork *clockwork = arg;

	if (++clockwork->ticks == 28 * 3600 * 10)
		loop_quit(clockwork->loop);
	else
		loop_after(clockwork->loop, 100, tick, clockwork);
}

static int looper(int argc, char **argv)
{
	struct clockwork clockwork = { .loop = NULL };
	struct err *err = NULL;

	(void)argc, (void)argv;
	MUST(loop_new(&clockwork.loop, &err) == 0);
	loop_after(clockwork.loop, 100, tick, &clockwork);
	MUST(loop_run(clockwork.loop, &err) == 0);
	loop_freep(&clockwork.loop);
	results[0] = clockwork.ticks;
	return 0;
}

static void test_a_loop_runs_for_28_hours(void **state)
{
	int64_t before_ns = now_ns;

	(void)state;
	start("looper");
	world_play_until(WORLD_NEVER);
	assert_int_equal(results[0], 28 * 3600 * 10);
	assert_in_range((now_ns - before_ns) / WORLD_S, 28 * 3600, 28 * 3600 + 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_pause_takes_its_time, started),
		cmocka_unit_test_setup(test_a_machine_that_sleeps_does_nothing, started),
		cmocka_unit_test_setup(test_children_talk_by_pipes, started),
		cmocka_unit_test_setup(test_a_loop_runs_for_28_hours, started),
	};

	program_register("sleeper", sleeper);
	program_register("echo", echo);
	program_register("talker", talker);
	program_register("looper", looper);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
