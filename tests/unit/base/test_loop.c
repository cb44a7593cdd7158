/* The promises of loop.h: order, removal at any moment, nothing lost, nothing left. */
#include "jobs/base/process/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "jobs/base/clock.h"
#include "tests/unit/base/scene.h"

TRACER(say_a, "a")
TRACER(say_b, "b")
TRACER(say_c, "c")

static void open_pipes(struct scene *s, int count)
{
	s->count = count;
	for (int i = 0; i < count; i++)
		assert_int_equal(pipe2(s->fds[i], O_CLOEXEC | O_NONBLOCK), 0);
}

static void close_pipes(struct scene *s)
{
	for (int i = 0; i < s->count; i++) {
		close(s->fds[i][0]);
		close(s->fds[i][1]);
	}
}

static void timers_run_in_order_of_time_then_age(void **state)
{
	struct scene *s = *state;

	loop_after(s->loop, 30, quit, s);
	loop_after(s->loop, 20, say_c, s);
	loop_after(s->loop, 0, say_a, s);
	loop_after(s->loop, 10, say_b, s);
	loop_after(s->loop, -5, say_c, s);
	loop_after(s->loop, 10, say_a, s);
	run(s);
	assert_string_equal(s->trace.text, "a c b a c ");
}

static void a_timer_is_not_early(void **state)
{
	struct scene *s = *state;

	for (int delay = 0; delay < 20; delay++) {
		struct mono began = clock_mono_now();

		loop_after(s->loop, delay, quit, s);
		run(s);
		assert_true(clock_mono_now().ms - began.ms >= delay);
	}
}

static void a_far_timer_never_comes(void **state)
{
	struct scene *s = *state;

	loop_after(s->loop, INT64_MAX, say_a, s);
	loop_after(s->loop, INT64_MAX / 2, say_a, s);
	loop_after(s->loop, 10, quit, s);
	run(s);
	assert_string_equal(s->trace.text, "");
}

static void a_removed_timer_does_not_run(void **state)
{
	struct scene *s = *state;
	struct watch *first = loop_after(s->loop, 5, say_a, s);
	struct watch *second = loop_after(s->loop, 5, say_b, s);

	loop_after(s->loop, 5, say_c, s);
	loop_after(s->loop, 20, quit, s);
	loop_remove(s->loop, first);
	loop_remove(s->loop, second);
	loop_remove(s->loop, NULL);
	run(s);
	assert_string_equal(s->trace.text, "c ");
}

static void again_at_once(void *arg)
{
	struct scene *s = arg;

	if (s->count++ == 0)
		assert_int_equal(write(s->fds[0][1], "x", 1), 1);
	loop_after(s->loop, 0, again_at_once, s);
}

static void read_and_quit(void *arg)
{
	struct scene *s = arg;

	sb_adds(&s->trace, "read ");
	loop_quit(s->loop);
}

static void a_timer_that_repeats_at_once_starves_nobody(void **state)
{
	struct scene *s = *state;

	assert_int_equal(pipe2(s->fds[0], O_CLOEXEC), 0);
	loop_on_readable(s->loop, s->fds[0][0], read_and_quit, s);
	loop_after(s->loop, 0, again_at_once, s);
	run(s);
	assert_string_equal(s->trace.text, "read ");
	assert_int_equal(s->count, 1);
	loop_freep(&s->loop);
	close(s->fds[0][0]);
	close(s->fds[0][1]);
}

/* A deadline that is due, and a sign of life that came before it was judged. */
static void take_sign_of_life(void *arg)
{
	struct scene *s = arg;

	sb_adds(&s->trace, "life ");
	loop_remove(s->loop, s->watches[0]); /* the deadline */
	loop_remove(s->loop, s->watches[1]); /* itself */
	loop_after(s->loop, 0, quit, s);
}

/* While this runs, the sign of life comes and then the deadline passes. */
static void spend_the_time(void *arg)
{
	struct scene *s = arg;

	loop_remove(s->loop, s->watches[2]); /* itself */
	assert_int_equal(write(s->fds[0][1], "x", 1), 1);
	while (clock_mono_now().ms <= s->at_ms)
		usleep(1000);
}

static void every_sign_of_life_is_read_before_a_deadline_judges(void **state)
{
	struct scene *s = *state;

	open_pipes(s, 2);
	s->watches[1] = loop_on_readable(s->loop, s->fds[0][0], take_sign_of_life, s);
	s->watches[2] = loop_on_readable(s->loop, s->fds[1][0], spend_the_time, s);
	assert_int_equal(write(s->fds[1][1], "x", 1), 1);
	s->watches[0] = loop_after(s->loop, 400, say_a, s);
	s->at_ms = clock_mono_now().ms + 400;
	run(s);
	assert_string_equal(s->trace.text, "life ");
	close_pipes(s);
}

static void count_and_drop(void *arg)
{
	struct scene *s = arg;

	s->at_ms++;
}

static void many_ready_descriptors_come_before_a_due_timer(void **state)
{
	struct scene *s = *state;

	open_pipes(s, 300);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(write(s->fds[i][1], "x", 1), 1);
		s->watches[i] = loop_on_readable(s->loop, s->fds[i][0], count_and_drop, s);
		assert_non_null(s->watches[i]);
	}
	loop_after(s->loop, 0, quit, s);
	usleep(2000);
	run(s);
	assert_int_equal(s->at_ms, 300);
	close_pipes(s);
}

/* The first callback removes all, itself included. */
static void remove_all(void *arg)
{
	struct scene *s = arg;

	sb_adds(&s->trace, "first ");
	for (int i = 0; i < s->count; i++) {
		loop_remove(s->loop, s->watches[i]);
		loop_remove(s->loop, s->watches[i]); /* within the turn this is harmless */
	}
	loop_after(s->loop, 5, quit, s);
}

static void the_first_callback_may_remove_all_that_are_ready(void **state)
{
	struct scene *s = *state;

	open_pipes(s, 100);
	for (int i = 0; i < s->count; i++) {
		assert_int_equal(write(s->fds[i][1], "x", 1), 1);
		s->watches[i] = loop_on_readable(s->loop, s->fds[i][0], remove_all, s);
	}
	run(s);
	assert_string_equal(s->trace.text, "first ");
	close_pipes(s);
}

/* Removes its neighbour, closes that one's pipe and opens another, which gets the
 * same descriptor: the neighbour's event must not reach the newcomer. */
static void replace_neighbour(void *arg)
{
	struct scene *s = arg;

	sb_adds(&s->trace, "first ");
	for (int i = 0; i < 2; i++)
		loop_remove(s->loop, s->watches[i]);
	close_pipes(s);
	open_pipes(s, 2);
	s->watches[0] = loop_on_readable(s->loop, s->fds[0][0], say_a, s);
	s->watches[1] = loop_on_readable(s->loop, s->fds[1][0], say_b, s);
	loop_after(s->loop, 10, quit, s);
}

static void a_reused_descriptor_gets_no_event_of_the_old_one(void **state)
{
	struct scene *s = *state;

	open_pipes(s, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(s->fds[i][1], "x", 1), 1);
		s->watches[i] = loop_on_readable(s->loop, s->fds[i][0], replace_neighbour, s);
	}
	run(s);
	assert_string_equal(s->trace.text, "first ");
	close_pipes(s);
}

static void remove_other_timer(void *arg)
{
	struct scene *s = arg;

	sb_adds(&s->trace, "first ");
	loop_remove(s->loop, s->watches[0]); /* itself: gone already */
	loop_remove(s->loop, s->watches[1]);
}

static void a_timer_may_remove_one_that_is_due_with_it(void **state)
{
	struct scene *s = *state;

	s->watches[0] = loop_after(s->loop, 1, remove_other_timer, s);
	s->watches[1] = loop_after(s->loop, 1, say_b, s);
	loop_after(s->loop, 10, quit, s);
	run(s);
	assert_string_equal(s->trace.text, "first ");
}

static void drain(void *arg)
{
	struct scene *s = arg;
	char bytes[4096];

	sb_adds(&s->trace, "drained ");
	while (read(s->fds[0][1], bytes, sizeof bytes) > 0)
		;
}

static void a_full_descriptor_is_waited_for_until_it_can_be_written_to(void **state)
{
	struct scene *s = *state;
	char bytes[4096] = "";

	s->count = 1;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s->fds[0]), 0);
	s->watches[0] = loop_on_ready(s->loop, s->fds[0][0], LOOP_WRITE, read_and_quit, s);
	run(s); /* there is room */
	loop_remove(s->loop, s->watches[0]);
	while (write(s->fds[0][0], bytes, sizeof bytes) > 0)
		;
	loop_on_ready(s->loop, s->fds[0][0], LOOP_READ | LOOP_WRITE, read_and_quit, s);
	assert_null(loop_on_ready(s->loop, s->fds[0][0], LOOP_READ, say_c, s));
	assert_int_equal(errno, EEXIST);
	loop_after(s->loop, 5, say_a, s);
	loop_after(s->loop, 10, drain, s);
	run(s);
	assert_string_equal(s->trace.text, "read a drained read ");
	close_pipes(s);
}

static void a_hang_up_is_readable(void **state)
{
	struct scene *s = *state;

	open_pipes(s, 1);
	loop_on_readable(s->loop, s->fds[0][0], read_and_quit, s);
	close(s->fds[0][1]);
	run(s);
	assert_string_equal(s->trace.text, "read ");
	close(s->fds[0][0]);
}

static void descriptors_that_cannot_be_watched_are_refused(void **state)
{
	struct scene *s = *state;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	open_pipes(s, 1);
	assert_null(loop_on_readable(s->loop, file, say_a, s));
	assert_int_equal(errno, EPERM);
	assert_null(loop_on_readable(s->loop, -1, say_a, s));
	assert_int_equal(errno, EBADF);
	assert_non_null(loop_on_readable(s->loop, s->fds[0][0], say_a, s));
	assert_null(loop_on_readable(s->loop, s->fds[0][0], say_a, s));
	assert_int_equal(errno, EEXIST);
	close(file);
	loop_freep(&s->loop);
	close_pipes(s);
}

static void quitting_leaves_the_rest_for_the_next_run(void **state)
{
	struct scene *s = *state;

	loop_on_signal(s->loop, SIGUSR1, read_and_quit, s);
	loop_on_signal(s->loop, SIGUSR2, read_and_quit, s);
	loop_after(s->loop, 0, say_a, s);
	loop_after(s->loop, 0, quit, s);
	loop_after(s->loop, 0, say_b, s);
	raise(SIGUSR1);
	raise(SIGUSR2);
	run(s);
	assert_string_equal(s->trace.text, "read ");
	run(s);
	assert_string_equal(s->trace.text, "read read ");
	run(s);
	assert_string_equal(s->trace.text, "read read a ");
	loop_after(s->loop, 0, quit, s);
	run(s);
	assert_string_equal(s->trace.text, "read read a b ");
}

static void quitting_before_the_run_ends_it_at_once(void **state)
{
	struct scene *s = *state;

	loop_after(s->loop, 0, say_a, s);
	loop_quit(s->loop);
	run(s);
	assert_string_equal(s->trace.text, "");
}

static int highest_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void a_loop_that_is_freed_leaves_no_descriptor(void **state)
{
	struct scene *s = *state;
	int before = highest_fd();

	for (int i = 0; i < 20; i++) {
		AUTO(loop_freep) struct loop *loop = NULL;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(loop_new(&loop, &err), 0);
		loop_after(loop, 1000, say_a, s);
		loop_on_signal(loop, SIGUSR1, say_a, s);
		assert_non_null(loop_on_exit(loop, getpid(), say_a, s));
	}
	assert_int_equal(highest_fd(), before);
}

/* Random adding and removing of everything by everything, for the sanitizers. */
static void churn(void *arg)
{
	struct scene *s = arg;
	static const watch_fn again = churn;

	if (++s->at_ms > 20000) {
		loop_quit(s->loop);
		return;
	}
	for (int i = 0; i < 4; i++) {
		int slot = rand() % 64;
		char c = 'x';

		/* Timers forget their slot when they run; only readable ones are kept. */
		loop_remove(s->loop, s->watches[slot]);
		s->watches[slot] = NULL;
		if (rand() % 3)
			s->watches[slot] = loop_on_readable(s->loop, s->fds[slot][0], again, s);
		assert_true(write(s->fds[slot][1], &c, 1) <= 1);
		if (rand() % 2)
			(void)!read(s->fds[rand() % 64][0], &c, 1);
	}
	if (rand() % 8 == 0)
		loop_after(s->loop, rand() % 2, again, s);
	if (rand() % 16 == 0)
		raise(SIGUSR1);
}

static void anything_may_be_added_and_removed_at_any_time(void **state)
{
	struct scene *s = *state;

	srand(1);
	open_pipes(s, 64);
	loop_on_signal(s->loop, SIGUSR1, churn, s);
	for (int i = 0; i < 4; i++)
		loop_after(s->loop, 0, churn, s);
	run(s);
	assert_true(s->at_ms > 20000);
	loop_freep(&s->loop);
	close_pipes(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_scene(timers_run_in_order_of_time_then_age),
		test_scene(a_timer_is_not_early),
		test_scene(a_far_timer_never_comes),
		test_scene(a_removed_timer_does_not_run),
		test_scene(a_timer_that_repeats_at_once_starves_nobody),
		test_scene(every_sign_of_life_is_read_before_a_deadline_judges),
		test_scene(many_ready_descriptors_come_before_a_due_timer),
		test_scene(the_first_callback_may_remove_all_that_are_ready),
		test_scene(a_reused_descriptor_gets_no_event_of_the_old_one),
		test_scene(a_timer_may_remove_one_that_is_due_with_it),
		test_scene(a_full_descriptor_is_waited_for_until_it_can_be_written_to),
		test_scene(a_hang_up_is_readable),
		test_scene(descriptors_that_cannot_be_watched_are_refused),
		test_scene(quitting_leaves_the_rest_for_the_next_run),
		test_scene(quitting_before_the_run_ends_it_at_once),
		test_scene(a_loop_that_is_freed_leaves_no_descriptor),
		test_scene(anything_may_be_added_and_removed_at_any_time),
	};

	return cmocka_run_group_tests_name("base/loop", tests, NULL, NULL);
}
