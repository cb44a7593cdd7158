/* The promises of loop.h about signals and the ends of processes. */
#include "jobs/base/process/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "tests/unit/base/scene.h"

TRACER(say_a, "a")
TRACER(say_signal, "signal")
TRACER(say_exit, "exit")

static void signals_reach_all_who_watch_them(void **state)
{
	struct scene *s = *state;

	loop_on_signal(s->loop, SIGUSR1, say_signal, s);
	loop_on_signal(s->loop, SIGUSR1, say_signal, s);
	loop_on_signal(s->loop, SIGUSR2, say_a, s);
	loop_after(s->loop, 5, quit, s);
	raise(SIGUSR1);
	run(s);
	assert_string_equal(s->trace.text, "signal signal ");
	loop_after(s->loop, 5, quit, s);
	raise(SIGUSR1);
	run(s);
	assert_string_equal(s->trace.text, "signal signal signal signal ");
}

static void swap_signal_watches(void *arg)
{
	struct scene *s = arg;

	sb_adds(&s->trace, "swap ");
	for (int i = 0; i < 3; i++)
		loop_remove(s->loop, s->watches[i]);
	s->watches[0] = loop_on_signal(s->loop, SIGUSR1, say_a, s);
}

static void signal_watches_may_be_removed_and_made_inside_one(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 3; i++)
		s->watches[i] = loop_on_signal(s->loop, SIGUSR1, swap_signal_watches, s);
	loop_after(s->loop, 5, quit, s);
	raise(SIGUSR1);
	run(s);
	assert_string_equal(s->trace.text, "swap ");
	loop_after(s->loop, 5, quit, s);
	raise(SIGUSR1);
	run(s);
	assert_string_equal(s->trace.text, "swap a ");
}

static void no_such_signal_is_refused(void **state)
{
	struct scene *s = *state;

	assert_null(loop_on_signal(s->loop, 0, say_a, s));
	assert_null(loop_on_signal(s->loop, 1000, say_a, s));
}

static void the_signal_mask_is_as_before_when_the_loop_is_gone(void **state)
{
	struct scene *s = *state;
	sigset_t before, during, after, one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	sigprocmask(SIG_BLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, NULL, &before);
	loop_on_signal(s->loop, SIGUSR1, say_a, s);
	loop_on_signal(s->loop, SIGUSR1, say_a, s);
	loop_on_signal(s->loop, SIGUSR2, say_a, s);
	sigprocmask(SIG_BLOCK, NULL, &during);
	loop_freep(&s->loop);
	sigprocmask(SIG_BLOCK, NULL, &after);
	assert_true(sigismember(&during, SIGUSR1));
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&after, i), sigismember(&before, i));
	assert_true(sigismember(&after, SIGUSR2));
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static pid_t start_child(int exit_code)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(exit_code);
	return pid;
}

static void a_signal_to_stop_can_be_seen_and_taken_without_a_turn(void **state)
{
	static const int stops[] = { SIGTERM, SIGINT, SIGHUP };
	struct scene *s = *state;

	for (size_t i = 0; i < STK_LENGTH(stops); i++)
		loop_on_signal(s->loop, stops[i], say_signal, s);
	for (size_t i = 0; i < STK_LENGTH(stops); i++) {
		raise(stops[i]);
		assert_true(loop_stop_pending());
		assert_true(loop_stop_pending()); /* seeing is not taking */
		assert_true(loop_stop_take());
		assert_false(loop_stop_pending());
		assert_false(loop_stop_take());
	}
}

static void exit_and_quit(void *arg)
{
	struct scene *s = arg;

	say_exit(s);
	loop_quit(s->loop);
}

static void the_end_of_a_child_is_reported_once(void **state)
{
	struct scene *s = *state;
	pid_t pid = start_child(3);
	int status;

	assert_non_null(loop_on_exit(s->loop, pid, exit_and_quit, s));
	run(s);
	loop_after(s->loop, 10, quit, s);
	run(s);
	assert_string_equal(s->trace.text, "exit ");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_null(loop_on_exit(s->loop, pid, exit_and_quit, s));
	assert_int_equal(errno, ESRCH);
}

/* A grandchild: its parent ends first, so that it is no child of ours. */
static void the_end_of_a_stranger_is_reported_too(void **state)
{
	struct scene *s = *state;
	int pids[2], hold[2];
	pid_t parent, unrecognised = -1;

	assert_int_equal(pipe2(pids, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	parent = fork();
	if (parent == 0) {
		pid_t child = fork();

		if (child == 0) {
			char c;

			close(hold[1]);
			_exit((int)read(hold[0], &c, 1));
		}
		_exit(write(pids[1], &child, sizeof child) != sizeof child);
	}
	assert_int_equal(read(pids[0], &unrecognised, sizeof unrecognised), sizeof unrecognised);
	waitpid(parent, NULL, 0);
	assert_non_null(loop_on_exit(s->loop, unrecognised, exit_and_quit, s));
	close(hold[1]); /* ends it */
	run(s);
	assert_string_equal(s->trace.text, "exit ");
	close(hold[0]);
	close(pids[0]);
	close(pids[1]);
}

static void a_removed_exit_watch_is_silent(void **state)
{
	struct scene *s = *state;
	pid_t pid = start_child(0);
	struct watch *watch = loop_on_exit(s->loop, pid, say_exit, s);

	loop_remove(s->loop, watch);
	loop_on_exit(s->loop, pid, exit_and_quit, s);
	run(s);
	assert_string_equal(s->trace.text, "exit ");
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_scene(signals_reach_all_who_watch_them),
		test_scene(signal_watches_may_be_removed_and_made_inside_one),
		test_scene(no_such_signal_is_refused),
		test_scene(the_signal_mask_is_as_before_when_the_loop_is_gone),
		test_scene(a_signal_to_stop_can_be_seen_and_taken_without_a_turn),
		test_scene(the_end_of_a_child_is_reported_once),
		test_scene(the_end_of_a_stranger_is_reported_too),
		test_scene(a_removed_exit_watch_is_silent),
	};

	return cmocka_run_group_tests_name("base/loop_process", tests, NULL, NULL);
}
