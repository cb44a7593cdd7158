/* A driver whose journal fails for a while, whose lease is an object, whose run was salvaged, and
 * whose notifications are still due. See jobs/run/driver.c and interrupt.c. */
#include "drive_fixture.h"

#include "jobs/run/journal/lease.h"
#include "jobs/run/journal/lease_internal.h"
#include "jobs/store/order.h"

static int begin(void **state)
{
	AUTO(auto_free) char *url = NULL;
	AUTO(err_freep) struct err *err = NULL;

	if (set_up(state) < 0)
		return -1;
	journal_freep(&journal);
	url = mem_format("dir:%s/objects", dir);
	return journal_open(url, JOURNAL_WRITE, &journal, &err);
}

static char *event_place(int64_t seq)
{
	return mem_format("%s/objects/runs/r1/events/%012lld.json", dir, (long long)seq);
}

static int64_t obstructed; /* event that can be neither read nor written; 0: none */
static int clears_after;   /* so many waits */

static void clear_in_time(void);

static void obstruct(void)
{
	const json_t *last = json_array_get(recorded, json_array_size(recorded) - 1);
	AUTO(auto_free) char *place = event_place(js_int(last, "seq", 0) + 1);
	AUTO(err_freep) struct err *err = NULL;

	obstructed = js_int(last, "seq", 0) + 1;
	at_wait = clear_in_time;
	assert_int_equal(fs_mkdirs(place, &err), 0);
}

static void clear(void)
{
	AUTO(auto_free) char *place = event_place(obstructed);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_remove_tree(place, &err), 0);
	obstructed = 0;
}

static void clear_in_time(void)
{
	if (obstructed && clears_after-- <= 0)
		clear();
}

static void a_run_is_driven_on_objects_too(void **state)
{
	static const struct lease_rules rules = { .valid_ms = 60000, .renew_ms = 50 };
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *before = NULL;

	(void)state;
	create(NULL);
	options.lease = &rules;
	play.until_end = 20;
	wait_max = 30;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "attempt.ended run.ended");
	/* given up at the end */
	path = in_dir("objects/runs/r1/" LEASE_OBJECT);
	assert_int_equal(js_load(path, 4096, &before, &err), 0);
	assert_false(js_bool(before, "held", true));
}

static void obstruct_for_a_while(int number)
{
	if (number == 2)
		obstruct();
	play.until_end = number < 9;
}

static void a_journal_that_fails_for_a_while_ends_no_watch(void **state)
{
	(void)state;
	create(NULL);
	play.at_describe = obstruct_for_a_while;
	clears_after = 20;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "driver.went_on attempt.ended run.ended");
	assert_int_equal(aways, 1);
}

static void interrupt_while_obstructed(int number)
{
	if (number == 2) {
		obstruct();
		raise(SIGUSR1);
	}
}

static void a_stop_reaches_the_job_before_it_can_be_journalled(void **state)
{
	(void)state;
	create(NULL);
	play.at_describe = interrupt_while_obstructed;
	play.ends_at_stop = 1;
	clears_after = 20;
	drive_ends(EXIT_STOPPED);
	assert_int_equal(obstructed, 0);
	assert_string_equal(newest("request.stop", "reason"),
			    "'stoker stop', which could not journal it");
	assert_int_equal(count_of("request.stop"), 1);
}

static enum interrupt stop_it(void *arg, int signo)
{
	(void)arg, (void)signo;
	return INTERRUPT_STOP;
}

/* Raises the signal again when the stop has reached the job. */
static void raise_again(void)
{
	if (play.stops > 0)
		raise(SIGINT);
}

static void interrupt_twice(int number)
{
	if (number == 2) {
		obstruct();
		at_wait = raise_again;
		raise(SIGINT);
	}
}

static void who_asks_twice_for_a_stop_leaves(void **state)
{
	(void)state;
	create(NULL);
	play.until_end = 1000000;
	play.at_describe = interrupt_twice;
	options.on_interrupt = stop_it;
	drive_fails(EXIT_UNREACHABLE,
		    "the stop could not be recorded yet, so the job of run r1 may run on",
		    "'stoker stop r1' requests the stop again; run r1 is safe; 'stoker resume r1' "
		    "continues it");
	assert_true(play.stops > 0);
	assert_int_equal(count_of("request.stop"), 0);
}

static void without_a_job_a_broken_journal_ends_the_driver(void **state)
{
	AUTO(auto_free) char *place = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	(void)state;
	create(NULL);
	place = event_place(3);
	assert_int_equal(fs_mkdirs(place, &err), 0);
	assert_int_equal(drive(&exit_code, &err), -1);
	assert_non_null(strstr(err->message, "event 3 of run r1"));
	assert_non_null(strstr(err->hint, "run r1 is safe; 'stoker resume r1' continues it"));
	assert_told("driver.took_over");
	assert_int_equal(play.submits, 0);
	assert_int_equal(loops, 0);
}

/* ---- the lease ---- */

static void take_lease_now(int number)
{
	AUTO(auto_free) char *path = in_dir("objects/runs/r1/" LEASE_OBJECT);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *lease = NULL;
	AUTO(auto_free) char *text = NULL;

	if (number != 2)
		return;
	assert_int_equal(js_load(path, 4096, &lease, &err), 0);
	js_put_str(lease, "holder", "another");
	js_put_str(lease, "nonce", "another");
	js_put_str(lease, "host", "elsewhere");
	text = js_line(lease);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &err), 0);
}

static void a_driver_without_its_lease_ends(void **state)
{
	static const struct lease_rules rules = { .valid_ms = 60000, .renew_ms = 1 };
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	(void)state;
	create(NULL);
	options.lease = &rules;
	play.until_end = 1000000;
	play.at_describe = take_lease_now;
	assert_int_equal(drive(&exit_code, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_int_equal(count_of("driver.left"), 0);
	assert_int_equal(play.stops, 0);
	assert_int_equal(loops, 0);
}

/* ---- a salvaged run ---- */

static void what_is_under_way_is_looked_for_before_anything_is_submitted(void **state)
{
	struct event ev = { .kind = EV_JOURNAL_SALVAGED };

	(void)state;
	create(NULL);
	EVENT_SET_STR(&ev, reason, "damaged");
	append(&ev);
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over journal.settled cache.checked attempt.intended "
		    "attempt.submitted attempt.ended run.ended");
}

/* ---- waits ---- */

static void fail_once(int number)
{
	(void)number;
	play.until_end = 0;
	play.end.exit = play.submits < 2 ? 75 : 0;
}

static void a_retry_waits_for_its_time(void **state)
{
	size_t long_waits = 0;

	(void)state;
	create("'retry':{'attempts':3,'without_progress':3,'backoff_first_ms':300,"
	       "'backoff_max_ms':300}");
	play.at_describe = fail_once;
	drive_ends(EXIT_DONE);
	assert_int_equal(play.submits, 2);
	for (size_t i = 0; i < wait_count; i++)
		long_waits += waits[i] > 101 && waits[i] <= 300;
	assert_true(long_waits > 0);
}

static int releases, busy_releases;
static enum exit_code release_error;

static int play_release(struct engine *engine, const char *name, const char *prefix,
			int64_t *ret_seconds, struct err **err)
{
	(void)engine;
	releases++;
	assert_string_equal(name, "stk-r1-train-1");
	assert_string_equal(prefix, "runs/r1/train-1/");
	if (busy_releases > 0) {
		busy_releases--;
		return err_set(err, EXIT_BUSY, "not known yet");
	}
	if (release_error) {
		enum exit_code code = release_error;

		release_error = EXIT_DONE;
		return err_set(err, code, "no answer");
	}
	*ret_seconds = 7;
	return 1;
}

static void machines_that_are_kept_are_given_back_at_the_end(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		create(NULL);
		play.report = "{'v':1,'claimed':7,'host':'a','nonce':'n','ended':9}";
		play.until_end = 1;
		play_ops.release = play_release;
		releases = 0;
		busy_releases = i == 1 ? 2 : 0;
		release_error = i == 2 ? EXIT_UNREACHABLE : EXIT_DONE;
		if (i == 2) {
			AUTO(err_freep) struct err *err = NULL;
			int exit_code;

			/* without a job nothing is waited for that is not far away */
			assert_int_equal(drive(&exit_code, &err), 0);
		} else {
			drive_ends(EXIT_DONE);
		}
		assert_int_equal(count_of("attempt.kept"), 1);
		assert_int_equal(releases, i == 0 ? 1 : i == 1 ? 3 : 2);
		(void)tear_down(NULL);
		(void)begin(NULL);
	}
}

/* ---- notifications ---- */

#define NOTIFIES                                                                                   \
	"'spec_file':'/tmp/spec.yaml','notify':[{'when':['succeeded'],'command':['sh','-c',"       \
	"'exit 0']},{'when':['succeeded'],'command':['sh','-c','sleep 3']}]"

static void the_end_waits_for_messages_and_the_next_driver_sends_the_rest(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	(void)state;
	create(NOTIFIES);
	wait_max = 400;
	drive_ends(EXIT_DONE);
	assert_int_equal(count_of("run.ended"), 1);
	assert_int_equal(count_of("notify.sent"), 1);
	assert_int_equal(newest_int("notify.sent", "rule"), 0);
	assert_true(waits_of(30000) == 1);
	/* one is due yet: that takes a loop */
	json_array_clear(recorded);
	wait_count = 0;
	loops_shown = 0;
	assert_int_equal(drive(&exit_code, &err), 0);
	assert_int_equal(exit_code, EXIT_DONE);
	assert_told("");
	assert_int_equal(loops_shown, 0); /* nobody shows a run that has ended */
	assert_true(waits_of(30000) == 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_is_driven_on_objects_too),
		TEST(a_journal_that_fails_for_a_while_ends_no_watch),
		TEST(a_stop_reaches_the_job_before_it_can_be_journalled),
		TEST(who_asks_twice_for_a_stop_leaves),
		TEST(without_a_job_a_broken_journal_ends_the_driver),
		TEST(a_driver_without_its_lease_ends),
		TEST(what_is_under_way_is_looked_for_before_anything_is_submitted),
		TEST(a_retry_waits_for_its_time),
		TEST(machines_that_are_kept_are_given_back_at_the_end),
		TEST(the_end_waits_for_messages_and_the_next_driver_sends_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
