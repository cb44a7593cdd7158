/* The fates of a notification: sent, tried again ever later, given up, and what is said of why.
 * See jobs/run/notify.h. */
#include "notify_fixture.h"

#include <signal.h>
#include <unistd.h>

#include "../quoted.h"

static int sent, failed;
static int64_t about;
static char why[8192], hint[256];
static bool goes_on;               /* the loop turns on after an outcome */
static int64_t short_ms, short_of; /* waits of `short_of` ms last `short_ms` */
static size_t waits_of_short;

struct watch *__real_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);
struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);

struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg)
{
	if (delay_ms != short_of)
		return __real_loop_after(loop, delay_ms, fn, arg);
	waits_of_short++;
	return __real_loop_after(loop, short_ms, fn, arg);
}

static void note_outcome(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)row;
	if (ev->kind != EV_NOTIFY_SENT && ev->kind != EV_NOTIFY_FAILED)
		return;
	*(ev->kind == EV_NOTIFY_SENT ? &sent : &failed) += 1;
	about = ev->about;
	snprintf(why, sizeof why, "%s", EVENT_HAS(ev, reason) ? ev->reason : "");
	snprintf(hint, sizeof hint, "%s", EVENT_HAS(ev, hint) ? ev->hint : "");
	if (!goes_on)
		loop_quit(driver.loop);
}

/* A run that has begun, by a plan with these rules; each is told of its beginning. */
static void begin_with(json_t *rules)
{
	sent = failed = 0;
	goes_on = false;
	short_of = -2;
	waits_of_short = 0;
	begin_run("dir", rules, note_outcome);
}

static void begin(const char *script)
{
	json_t *rules = json_array();

	json_array_append_new(rules, rule_of(script));
	begin_with(rules);
}

static void turn(void)
{
	AUTO(err_freep) struct err *err = NULL;

	notify_pump(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
}

/* The last try of a message fails so. */
static void fails_with(const char *script, const char *words)
{
	AUTO(auto_free) char *want = mem_format("started: %s", words);

	begin(script);
	driver.notify->first->tries = NOTIFY_TRIES - 1;
	turn();
	assert_int_equal(failed, 1);
	assert_int_equal(sent, 0);
	assert_int_equal(about, 1);
	assert_string_equal(why, want);
	assert_string_equal(hint,
			    "run the command or request of notify by hand, with this event on "
			    "its input");
	assert_false(notify_queue_pending(&driver));
	assert_int_equal(driver.notify->under_way, 0);
	end();
}

static void the_last_line_of_its_errors_is_the_reason(void **state)
{
	AUTO(auto_free) char *long_line = mem_zero(513, 1);
	AUTO(auto_free) char *script = NULL;

	(void)state;
	fails_with("exit 3", "exit status 3");
	fails_with("kill -9 $$", "killed by signal 9");
	fails_with("echo first >&2; echo 'the last' >&2; exit 1", "the last");
	fails_with("echo one >&2; exit 1", "one");
	fails_with("printf 'x\\n' >&2; exit 1", "x");
	fails_with("printf 'a\\n\\nb  \\n \\n' >&2; exit 1", "b");
	fails_with("printf ' \\n\\n ' >&2; exit 4", "exit status 4");
	fails_with("printf 'no newline' >&2; exit 1", "no newline");
	fails_with("printf 'a \\033[1mbold one' >&2; exit 1", "a \\x1b[1mbold one");
	fails_with("echo out; exit 1", "exit status 1"); /* not of its output */
	/* all that there is room for, and its end if there is more */
	memset(long_line, 'y', 512);
	fails_with("head -c 512 /dev/zero | tr '\\0' y >&2; exit 1", long_line);
	fails_with("head -c 10000 /dev/zero | tr '\\0' y >&2; exit 1", long_line);
	fails_with("printf xxx >&2; sleep 0.1; head -c 512 /dev/zero | tr '\\0' y >&2; exit 1",
		   long_line);
	long_line[511] = 'z';
	fails_with("head -c 700 /dev/zero | tr '\\0' y >&2; sleep 0.1; printf z >&2; exit 1",
		   long_line);
	memmove(long_line, long_line + 412, 101);
	script = mem_format(
		"head -c 5000 /dev/zero | tr '\\0' x >&2; sleep 0.1; printf '\\n%s' >&2; "
		"exit 1",
		long_line);
	fails_with(script, long_line);
}

static void a_program_that_is_not_there_is_named(void **state)
{
	(void)state;
	begin_with(quoted_json("[{'when':['started'],'command':['no-such-program-1']}]"));
	driver.notify->first->tries = NOTIFY_TRIES - 1;
	turn();
	assert_string_equal(why, "started: program 'no-such-program-1' not found");
	end();
	begin_with(quoted_json("[{'when':['started'],'webhook':'http://127.0.0.1:9/x'}]"));
	driver.notify->first->tries = NOTIFY_TRIES - 1;
	turn();
	assert_string_equal(why, "started: stoker's own 'stoker-post' is missing; install all of "
				 "stoker");
	end();
}

static void a_command_that_takes_too_long_is_ended_with_all_that_it_began(void **state)
{
	AUTO(auto_free) char *late = NULL;

	(void)state;
	begin("(sleep 3600; touch late) & echo said >&2; sleep 3600");
	late = fs_join(dir, "late");
	driver.notify->first->tries = NOTIFY_TRIES - 1;
	short_of = 15000;
	short_ms = 50;
	turn();
	assert_int_equal(waits_of_short, 1);
	assert_string_equal(why, "started: timeout after 15 s");
	assert_int_equal(driver.notify->under_way, 0);
	end();
}

static void a_message_that_fails_is_sent_again_ever_later(void **state)
{
	(void)state;
	for (int tries = 0; tries < NOTIFY_TRIES - 1; tries++) {
		int64_t pause_ms = (int64_t)1000 << tries, before, left;
		const struct notify_message *message;

		begin("exit 3");
		message = driver.notify->first;
		driver.notify->first->tries = tries;
		short_of = pause_ms;
		before = clock_mono_now().ms;
		notify_pump(&driver);
		while (message->tries == tries) {
			AUTO(err_freep) struct err *err = NULL;

			loop_after(driver.loop, 5, quit, driver.loop);
			assert_int_equal(loop_run(driver.loop, &err), 0);
		}
		left = message->due.ms - clock_mono_now().ms;
		assert_true(left <= pause_ms);
		assert_true(message->due.ms >= before + pause_ms);
		assert_int_equal(message->tries, tries + 1);
		assert_int_equal(message->sender, 0);
		assert_int_equal(message->words_fd, -1);
		assert_int_equal(failed, 0);
		assert_true(notify_queue_pending(&driver));
		end();
	}
}

static void a_message_that_works_the_second_time_is_sent(void **state)
{
	(void)state;
	begin("test -e again || { touch again; exit 1; }");
	for (int i = 0; i < 1000 && sent == 0; i++) {
		AUTO(err_freep) struct err *err = NULL;

		driver.notify->first->due.ms = 0;
		notify_pump(&driver);
		loop_after(driver.loop, 5, quit, driver.loop);
		assert_int_equal(loop_run(driver.loop, &err), 0);
	}
	assert_int_equal(sent, 1);
	assert_int_equal(failed, 0);
	assert_string_equal(why, "");
	assert_string_equal(hint, "");
	end();
}

/* ---- several ---- */

static void some_go_out_at_once_and_each_is_sent_once(void **state)
{
	json_t *rules = json_array();
	AUTO(auto_free) char *open = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	for (int i = 0; i < 6; i++)
		json_array_append_new(rules, rule_of("while ! test -e open; do sleep 0.01; done"));
	begin_with(rules);
	goes_on = true;
	for (int i = 0; i < 20; i++) {
		notify_pump(&driver);
		loop_after(driver.loop, 2, quit, driver.loop);
		assert_int_equal(loop_run(driver.loop, &err), 0);
	}
	assert_int_equal(driver.notify->under_way, 4);
	assert_int_equal(sent, 0);
	open = fs_join(dir, "open");
	assert_int_equal(fs_write_atomic(open, "", 0, 0600, &err), 0);
	notify_flush(&driver); /* until all are sent */
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(sent, 6);
	assert_int_equal(failed, 0);
	assert_false(notify_queue_pending(&driver));
	assert_int_equal(driver.notify->under_way, 0);
	end();
}

static void the_one_that_has_waited_longest_goes_first(void **state)
{
	json_t *rules = json_array();
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(100);

	(void)state;
	for (int i = 0; i < 3; i++) {
		AUTO(auto_free) char *script = mem_format("echo %d >>order", i);

		json_array_append_new(rules, rule_of(script));
	}
	begin_with(rules);
	driver.notify->first->due.ms = clock_mono_now().ms - 10;
	driver.notify->first->next->due.ms = clock_mono_now().ms - 20;
	driver.notify->first->next->next->due.ms = clock_mono_now().ms - 15;
	for (int i = 0; i < 3; i++) {
		driver.notify->under_way = 3; /* one at a time */
		turn();
	}
	driver.notify->under_way = 0;
	path = fs_join(dir, "order");
	assert_int_equal(fs_read(path, 100, &text, &err), 0);
	assert_string_equal(text.text, "1\n2\n0\n");
	end();
}

/* ---- input of a command ---- */

static void a_command_gets_the_environment_of_jobs_and_no_other(void **state)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(10000);

	(void)state;
	setenv("MY_TOKEN", "s3cr3t", 1);
	setenv("LANG", "C.UTF-8", 1);
	begin("env >all; cat >message");
	turn();
	assert_int_equal(sent, 1);
	path = fs_join(dir, "all");
	assert_int_equal(fs_read(path, 10000, &text, &err), 0);
	assert_non_null(strstr(text.text, "STOKER_RUN=r1\n"));
	assert_non_null(strstr(text.text, "STOKER_OCCASION=started\n"));
	assert_non_null(strstr(text.text, "LANG=C.UTF-8\n"));
	assert_non_null(strstr(text.text, "PATH="));
	assert_null(strstr(text.text, "MY_TOKEN"));
	assert_null(strstr(text.text, "TEST_SEED"));
	free(path);
	path = fs_join(dir, "message");
	sb_clear(&text);
	assert_int_equal(fs_read(path, 10000, &text, &err), 0);
	assert_int_equal(text.text[0], '{');
	assert_int_equal(text.text[text.len - 1], '\n');
	assert_null(memchr(text.text, '\n', text.len - 1)); /* one line */
	end();
}

/* ---- times without messages ---- */

static void who_has_left_or_failed_sends_nothing(void **state)
{
	(void)state;
	begin("exit 0");
	driver.left = true;
	notify_pump(&driver);
	assert_null(driver.notify->timer);
	driver.left = false;
	(void)!err_set(&driver.failure, EXIT_REFUSED, "x");
	notify_pump(&driver);
	assert_null(driver.notify->timer);
	err_freep(&driver.failure);
	notify_pump(&driver);
	assert_non_null(driver.notify->timer);
	end();
}

static void the_end_of_a_run_waits_for_its_messages_and_not_for_ever(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin("sleep 3600");
	short_of = 30000;
	short_ms = 30;
	notify_flush(&driver);
	notify_flush(&driver); /* the time is not begun anew */
	assert_int_equal(waits_of_short, 1);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(sent + failed, 0);
	assert_true(notify_queue_pending(&driver));
	kill(-driver.notify->first->sender, SIGKILL);
	end();
	/* nor at all if there are none */
	begin_with(json_array());
	notify_flush(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_null(driver.notify);
	end();
}

/* ---- a record that fails ---- */

static void what_was_sent_is_recorded_later_and_not_sent_again(void **state)
{
	AUTO(auto_free) char *place = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(100);
	int64_t begun = clock_mono_now().ms;

	(void)state;
	begin("echo sent >>all");
	place = mem_format("%s/state/runs/r1/events/%012d.json", dir, 2);
	assert_int_equal(fs_mkdirs(place, &err), 0);
	driver.flow.state = FLOW_ENDED;
	turn(); /* which the failure ends */
	assert_int_equal(sent, 0);
	assert_true(notify_queue_pending(&driver));
	assert_true(driver.notify->first->is_sent);
	assert_true(driver.notify->first->due.ms >= begun + AWAY_MS);
	assert_null(driver.failure);
	assert_int_equal(fs_remove_tree(place, &err), 0);
	assert_int_equal(driver_absorb(&driver, &err), 0); /* the journal can be read */
	driver.notify->first->due.ms = 0;
	turn();
	assert_int_equal(sent, 1);
	assert_false(notify_queue_pending(&driver));
	path = fs_join(dir, "all");
	assert_int_equal(fs_read(path, 100, &text, &err), 0);
	assert_string_equal(text.text, "sent\n");
	end();
}

/* ---- the loop ---- */

static int marks;

static void mark(void *arg)
{
	(void)arg;
	marks++;
}

static void note_and_mark(void *arg, const struct event *ev, json_t *row)
{
	note_outcome(arg, ev, row);
	if (ev->kind != EV_NOTIFY_SENT)
		return;
	loop_after(driver.loop, 10, mark, NULL);
	loop_after(driver.loop, 20, quit, driver.loop);
}

static void while_a_run_goes_on_its_messages_end_no_loop(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin("exit 0");
	goes_on = true;
	marks = 0;
	options.on_event = note_and_mark;
	notify_pump(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(marks, 1);
	assert_int_equal(sent, 1);
	end();
}

static void the_last_failure_ends_the_wait_at_the_end(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin("exit 1");
	goes_on = true;
	driver.notify->first->tries = NOTIFY_TRIES - 1;
	notify_flush(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(failed, 1);
	assert_false(notify_queue_pending(&driver));
	end();
}

static int64_t first_rule = -1;

static void note_first(void *arg, const struct event *ev, json_t *row)
{
	note_outcome(arg, ev, row);
	if (ev->kind == EV_NOTIFY_SENT && first_rule < 0)
		first_rule = ev->rule;
}

static void one_that_takes_long_keeps_no_other_waiting(void **state)
{
	json_t *rules = json_array();
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	json_array_append_new(rules, rule_of("while ! test -e go; do sleep 0.01; done"));
	json_array_append_new(rules, rule_of("exit 0"));
	begin_with(rules);
	options.on_event = note_first;
	notify_pump(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(first_rule, 1);
	assert_int_equal(sent, 1);
	{
		AUTO(auto_free) char *go = fs_join(dir, "go");

		assert_int_equal(fs_write_atomic(go, "", 0, 0600, &err), 0);
	}
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(sent, 2);
	end();
}

/* The process goes on, and nobody hears of it. */
static void who_leaves_forgets_what_is_under_way(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin("echo x >&2; while ! test -e go; do sleep 0.01; done; echo y >&2; exit 3");
	loop_after(driver.loop, 30, quit, driver.loop);
	notify_pump(&driver);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(driver.notify->under_way, 1);
	notify_release(&driver);
	assert_null(driver.notify);
	{
		AUTO(auto_free) char *go = fs_join(dir, "go");

		assert_int_equal(fs_write_atomic(go, "", 0, 0600, &err), 0);
	}
	loop_after(driver.loop, 200, quit, driver.loop);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(sent + failed, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_line_of_its_errors_is_the_reason),
		cmocka_unit_test(a_program_that_is_not_there_is_named),
		cmocka_unit_test(a_command_that_takes_too_long_is_ended_with_all_that_it_began),
		cmocka_unit_test(a_message_that_fails_is_sent_again_ever_later),
		cmocka_unit_test(a_message_that_works_the_second_time_is_sent),
		cmocka_unit_test(some_go_out_at_once_and_each_is_sent_once),
		cmocka_unit_test(the_one_that_has_waited_longest_goes_first),
		cmocka_unit_test(a_command_gets_the_environment_of_jobs_and_no_other),
		cmocka_unit_test(who_has_left_or_failed_sends_nothing),
		cmocka_unit_test(the_end_of_a_run_waits_for_its_messages_and_not_for_ever),
		cmocka_unit_test(what_was_sent_is_recorded_later_and_not_sent_again),
		cmocka_unit_test(while_a_run_goes_on_its_messages_end_no_loop),
		cmocka_unit_test(the_last_failure_ends_the_wait_at_the_end),
		cmocka_unit_test(one_that_takes_long_keeps_no_other_waiting),
		cmocka_unit_test(who_leaves_forgets_what_is_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
