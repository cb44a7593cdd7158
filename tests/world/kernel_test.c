/* The kernel of the simulated world, by small programs that run in it: time, pipes, signals,
 * children, timers, machines that sleep and halt, and the loop of the product. */
#include "tests/world/kernel_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/process/loop.h"

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
	struct process *process = start(sleeper);

	(void)state;
	play();
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
	start(sleeper);
	world_at(now_ns + WORLD_S, suspend, machine);
	world_at(now_ns + 100 * WORLD_S, wake, machine);
	play();
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
	pid_t pid = spawn_with_pipes(install(echo), &to, &from);

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
	start(talker);
	play();
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
	start(looper);
	play();
	assert_int_equal(results[0], 28 * 3600 * 10);
	assert_in_range((now_ns - before_ns) / WORLD_S, 28 * 3600, 28 * 3600 + 600);
}

/* ---- polls ---- */

static int poller(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 }, got[4];
	int epoll = epoll_create1(EPOLL_CLOEXEC), fds[2], high;

	(void)argc, (void)argv;
	MUST(pipe2(fds, O_CLOEXEC) == 0);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event) == 0);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event) < 0 && errno == EEXIST);
	MUST(epoll_wait(epoll, got, 4, 0) == 0);
	MUST(write(fds[1], "x", 1) == 1);
	MUST(epoll_wait(epoll, got, 4, -1) == 1 && got[0].data.u32 == 7);
	MUST(got[0].events == EPOLLIN);
	close(fds[1]);
	MUST(epoll_wait(epoll, got, 4, -1) == 1 && got[0].events == (EPOLLIN | EPOLLHUP));
	/* Another descriptor keeps the interest, as Linux has it; the last one ends it. */
	high = fcntl(fds[0], F_DUPFD_CLOEXEC, 20);
	MUST(high == 20);
	close(fds[0]);
	MUST(epoll_wait(epoll, got, 4, 0) == 1);
	close(high);
	MUST(epoll_wait(epoll, got, 4, 0) == 0);
	MUST(epoll_ctl(epoll, EPOLL_CTL_DEL, fds[0], NULL) < 0 && errno == EBADF);
	results[0] = 1;
	return 0;
}

static void test_epoll_follows_descriptions(void **state)
{
	(void)state;
	start(poller);
	play();
	assert_int_equal(results[0], 1);
}

/* A timer of every 10 s on the clock that goes on while the machine sleeps. */
static int timer_watcher(int argc, char **argv)
{
	const struct itimerspec every = { { 10, 0 }, { 10, 0 } };
	int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	uint64_t times;

	(void)argc, (void)argv;
	MUST(timerfd_settime(timer, 0, &every, NULL) == 0);
	MUST(read(timer, &times, sizeof times) == sizeof times && times == 1);
	MUST(read(timer, &times, sizeof times) == sizeof times);
	results[0] = (int)times;
	return 0;
}

static void test_timers_are_due_after_sleep(void **state)
{
	(void)state;
	start(timer_watcher);
	world_at(now_ns + 15 * WORLD_S, suspend, machine);
	world_at(now_ns + 115 * WORLD_S, wake, machine);
	play();
	assert_int_equal(results[0], 10);
}

/* Small writes to a pipe are whole, large ones may be parts. */
static int filler(int argc, char **argv)
{
	static const char bytes[70000];
	int fds[2];

	(void)argc, (void)argv;
	MUST(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	MUST(write(fds[1], bytes, sizeof bytes) == 65536);
	MUST(write(fds[1], bytes, 1) < 0 && errno == EAGAIN);
	MUST(read(fds[0], (char[100]){ 0 }, 100) == 100);
	MUST(write(fds[1], bytes, 4096) < 0 && errno == EAGAIN);
	MUST(write(fds[1], bytes, 5000) == 100);
	MUST(poll(&(struct pollfd){ .fd = fds[1], .events = POLLOUT }, 1, 0) == 0);
	results[0] = 1;
	return 0;
}

static void test_a_pipe_fills_up(void **state)
{
	(void)state;
	start(filler);
	play();
	assert_int_equal(results[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_pause_takes_its_time, fresh_machine),
		cmocka_unit_test_setup(test_a_machine_that_sleeps_does_nothing, fresh_machine),
		cmocka_unit_test_setup(test_children_talk_by_pipes, fresh_machine),
		cmocka_unit_test_setup(test_epoll_follows_descriptions, fresh_machine),
		cmocka_unit_test_setup(test_timers_are_due_after_sleep, fresh_machine),
		cmocka_unit_test_setup(test_a_pipe_fills_up, fresh_machine),
		cmocka_unit_test_setup(test_a_loop_runs_for_28_hours, fresh_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
