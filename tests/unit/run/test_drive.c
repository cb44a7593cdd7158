/* A run from its first event to its last, as its driver drives it. See jobs/run/driver.h. */
#include "drive_fixture.h"

#include "jobs/run/journal/lease.h"
#include "jobs/store/order.h"

static void a_training_that_ends_well_ends_its_run(void **state)
{
	char host[256] = "?";
	AUTO(auto_free) char *order = NULL;

	(void)state;
	gethostname(host, sizeof host - 1);
	create(NULL);
	play.until_end = 2;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "attempt.ended run.ended");
	assert_string_equal(newest("driver.took_over", "host"), host);
	assert_int_equal(newest_int("driver.took_over", "pid"), getpid());
	assert_int_equal(newest_int("driver.took_over", "epoch"), 1);
	assert_string_equal(newest("attempt.submitted", "job"), "stk-r1-train-1");
	assert_string_equal(newest("run.ended", "state"), "succeeded");
	assert_int_equal(newest_int("run.ended", "exit_code"), 0);
	assert_int_equal(play.checks, 1);
	assert_int_equal(play.submits, 1);
	assert_int_equal(play.finds, 0);
	assert_int_equal(play.stops, 0);
	assert_int_equal(play.describes, 3);
	assert_string_equal(play.job, "stk-r1-train-1");
	assert_string_equal(play.prefix, "runs/r1/train-1/");
	assert_int_equal(loop_calls, 2);
	assert_int_equal(aways, 0);
	order = in_dir("ws/runs/r1/train-1/order.json");
	assert_true(fs_exists(order));
}

static void a_run_that_has_ended_gives_its_exit_code_and_asks_nobody(void **state)
{
	size_t events;

	(void)state;
	create(NULL);
	play.end.exit = 2;
	drive_ends(EXIT_RUN_FAILED);
	assert_string_equal(newest("run.ended", "state"), "failed");
	events = json_array_size(recorded);
	play.checks = play.describes = loop_calls = 0;
	drive_ends(EXIT_RUN_FAILED);
	assert_int_equal(json_array_size(recorded), events);
	assert_int_equal(play.checks, 0);
	assert_int_equal(play.describes, 0);
	assert_int_equal(loop_calls, 0);
}

/* ---- failures ---- */

static void an_engine_that_does_not_answer_is_asked_again(void **state)
{
	(void)state;
	create(NULL);
	play.until_end = 1;
	play.silent_describes = 2;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "driver.waiting driver.went_on attempt.ended run.ended");
	assert_string_equal(newest("driver.waiting", "reason"), "the engine does not answer");
	assert_string_equal(newest("driver.went_on", "reason"), "the engine does not answer");
	assert_int_equal(aways, 1);
	assert_string_equal(away_why, "the engine does not answer");
	assert_int_equal(play.submits, 1);
}

/* The engine is not asked whether it would take a new job. */
static void a_job_that_was_submitted_is_watched_on(void **state)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER };

	(void)state;
	create(NULL);
	play.silent_submits = 1;
	EVENT_SET_STR(&ev, host, "h");
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, 4);
	append(&ev);
	ev = (struct event){ .kind = EV_CACHE_CHECKED };
	EVENT_SET(&ev, verdict, CACHE_NONE);
	append(&ev);
	ev = (struct event){ .kind = EV_ATTEMPT_INTENDED };
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET_STR(&ev, job, "stk-r1-train-1");
	EVENT_SET_STR(&ev, nonce, "x");
	append(&ev);
	ev = (struct event){ .kind = EV_ATTEMPT_SUBMITTED };
	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET_STR(&ev, job, "stk-r1-train-1");
	append(&ev);
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over attempt.ended run.ended");
	assert_int_equal(newest_int("driver.took_over", "epoch"), 5);
	assert_int_equal(play.checks, 0);
	assert_int_equal(play.submits, 0);
}

static void a_submission_without_an_answer_is_looked_for(void **state)
{
	(void)state;
	create(NULL);
	play.unsure_submits = 1;
	play.found = 1;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.uncertain "
		    "attempt.submitted attempt.ended run.ended");
	assert_int_equal(play.submits, 1);
	assert_int_equal(play.finds, 1);
}

static void a_submission_that_never_arrived_is_sent_again(void **state)
{
	(void)state;
	create(NULL);
	play.unsure_submits = 1;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked attempt.intended attempt.uncertain "
		    "attempt.missing attempt.submitted attempt.ended run.ended");
	assert_int_equal(play.submits, 2);
	assert_int_equal(aways, 1);
}

/* ---- stops ---- */

static void request_stop_now(int number)
{
	struct event ev = { .kind = EV_REQUEST_STOP };

	if (number != 2)
		return;
	EVENT_SET_STR(&ev, reason, "enough");
	append(&ev);
}

static void a_stop_that_another_process_requests_reaches_the_job(void **state)
{
	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	play.at_describe = request_stop_now;
	drive_ends(EXIT_STOPPED);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "request.stop attempt.ended run.ended");
	assert_int_equal(play.stop_grace_ms, 1234);
	assert_true(play.stops >= 1);
	assert_string_equal(newest("run.ended", "state"), "stopped");
	assert_true(json_is_true(json_object_get(newest_row("attempt.ended"), "by_driver")));
}

static void leave_stop(const char *text)
{
	AUTO(auto_free) char *file = in_dir("ws/runs/r1/" STOP_FILE);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_write_atomic(file, text, strlen(text), 0600, &err), 0);
}

static void leave_stop_now(int number)
{
	if (number == 2)
		leave_stop("{\"v\":1,\"reason\":\"no room\"}");
}

static void leave_empty_stop_now(int number)
{
	if (number == 2)
		leave_stop("");
}

static void a_stop_that_lies_in_the_workspace_is_journalled_and_taken_away(void **state)
{
	AUTO(auto_free) char *file = in_dir("ws/runs/r1/" STOP_FILE);

	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	play.at_describe = leave_stop_now;
	drive_ends(EXIT_STOPPED);
	assert_string_equal(newest("request.stop", "reason"), "no room");
	assert_int_equal(newest_int("request.stop", "pid"), getpid());
	assert_int_equal(count_of("request.stop"), 1);
	assert_false(fs_exists(file));
}

static void a_stop_without_a_reason_is_one(void **state)
{
	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	play.at_describe = leave_empty_stop_now;
	drive_ends(EXIT_STOPPED);
	assert_string_equal(newest("request.stop", "reason"), "interrupted");
}

/* ---- signals ---- */

static int the_signal, signal_at;

static void raise_now(int number)
{
	if (number == signal_at)
		raise(the_signal);
}

static void signalled(int signo)
{
	the_signal = signo;
	signal_at = 2;
	play.at_describe = raise_now;
}

static void a_stop_that_is_only_signalled_is_one(void **state)
{
	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	signalled(SIGUSR1);
	drive_ends(EXIT_STOPPED);
	assert_string_equal(newest("request.stop", "reason"),
			    "'stoker stop', which could not journal it");
}

static void a_signal_with_a_reason_in_the_workspace_gives_that(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *folder = NULL;

	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	signalled(SIGUSR1);
	folder = in_dir("ws/runs/r1");
	assert_int_equal(fs_mkdirs(folder, &err), 0);
	leave_stop("{\"v\":1,\"reason\":\"no room\"}");
	drive_ends(EXIT_STOPPED);
	assert_string_equal(newest("request.stop", "reason"), "no room");
}

static enum interrupt answer;
static int interrupts, newest_signo;

static enum interrupt on_interrupt(void *arg, int signo)
{
	(void)arg;
	interrupts++;
	newest_signo = signo;
	return answer;
}

static void an_interrupt_leaves_the_job_running(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	for (size_t i = 0; i < STK_LENGTH(signals); i++) {
		play.describes = 0;
		signalled(signals[i]);
		interrupts = 0;
		if (i > 0) {
			answer = i == 1 ? INTERRUPT_DETACH : INTERRUPT_HAND_OVER;
			options.on_interrupt = on_interrupt;
		}
		drive_ends(EXIT_DETACHED);
		assert_string_equal(newest("driver.left", "reason"),
				    i < 2 ? "interrupted: the job runs on"
					  : "the terminal hung up: a driver in the background "
					    "follows");
		assert_int_equal(newest_int("driver.left", "epoch"), i + 1);
		assert_int_equal(interrupts, i > 0);
		if (i > 0)
			assert_int_equal(newest_signo, signals[i]);
	}
	assert_int_equal(play.stops, 0);
	assert_int_equal(play.submits, 1);
	assert_int_equal(count_of("run.ended"), 0);
}

static void an_interrupt_stops_the_run_if_the_caller_says_so(void **state)
{
	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	signalled(SIGINT);
	answer = INTERRUPT_STOP;
	options.on_interrupt = on_interrupt;
	drive_ends(EXIT_STOPPED);
	assert_string_equal(newest("request.stop", "reason"), "interrupted");
	assert_int_equal(count_of("driver.left"), 0);
}

static void an_interrupt_that_means_nothing_changes_nothing(void **state)
{
	(void)state;
	create(NULL);
	play.until_end = 3;
	signalled(SIGTERM);
	answer = INTERRUPT_GO_ON;
	interrupts = 0;
	options.on_interrupt = on_interrupt;
	drive_ends(EXIT_DONE);
	assert_int_equal(interrupts, 1);
	assert_told("driver.took_over cache.checked attempt.intended attempt.submitted "
		    "attempt.ended run.ended");
}

static int answers;

static enum interrupt on_answer(void *arg)
{
	char byte;

	(void)arg;
	assert_int_equal(read(STDIN_FILENO, &byte, 1), 1);
	return ++answers < 2 ? INTERRUPT_ASK : INTERRUPT_STOP;
}

static void a_question_is_open_until_it_is_answered(void **state)
{
	int ends[2], before = dup(STDIN_FILENO);

	(void)state;
	create(NULL);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(write(ends[1], "???", 3), 3);
	play.ends_at_stop = 1;
	signalled(SIGINT);
	answer = INTERRUPT_ASK;
	answers = 0;
	options.on_interrupt = on_interrupt;
	options.on_answer = on_answer;
	drive_ends(EXIT_STOPPED);
	assert_int_equal(answers, 2);
	assert_string_equal(newest("request.stop", "reason"), "interrupted");
	assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
	close(before);
	close(ends[0]);
	close(ends[1]);
}

/* ---- another driver ---- */

static void take_over_now(int number)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER };

	if (number != 2)
		return;
	EVENT_SET_STR(&ev, host, "other");
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, 9);
	append(&ev);
}

static void a_driver_that_was_taken_over_ends(void **state)
{
	(void)state;
	create(NULL);
	play.ends_at_stop = 1;
	play.at_describe = take_over_now;
	drive_fails(EXIT_BUSY, "another driver took run r1 over",
		    "run r1 is safe; 'stoker resume r1' continues it");
	assert_int_equal(count_of("driver.left"), 0);
	assert_int_equal(play.stops, 0);
}

static void a_run_with_a_driver_is_refused(void **state)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int exit_code;

	(void)state;
	create(NULL);
	assert_int_equal(lease_take(journal, "r1", NULL, NULL, NULL, &lease, &err), 0);
	assert_int_equal(drive(&exit_code, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_told("");
}

/* ---- limits ---- */

static void a_deadline_ends_a_run_though_its_engine_does_not_answer(void **state)
{
	(void)state;
	create_ago(HOUR_MS, "'limits':{'deadline_ms':3600500}");
	play.ends_at_stop = 1;
	play.silent_describes = 2;
	drive_ends(EXIT_GATE);
	assert_string_equal(newest("limit.reached", "limit"), "deadline");
	assert_int_equal(count_of("limit.reached"), 1);
}

static void a_deadline_that_is_over_begins_nothing(void **state)
{
	(void)state;
	create_ago(HOUR_MS, "'limits':{'deadline_ms':1000}");
	drive_ends(EXIT_GATE);
	assert_told("driver.took_over limit.reached run.ended");
	assert_int_equal(play.submits, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_training_that_ends_well_ends_its_run),
		TEST(a_run_that_has_ended_gives_its_exit_code_and_asks_nobody),
		TEST(an_engine_that_does_not_answer_is_asked_again),
		TEST(a_job_that_was_submitted_is_watched_on),
		TEST(a_submission_without_an_answer_is_looked_for),
		TEST(a_submission_that_never_arrived_is_sent_again),
		TEST(a_stop_that_another_process_requests_reaches_the_job),
		TEST(a_stop_that_lies_in_the_workspace_is_journalled_and_taken_away),
		TEST(a_stop_without_a_reason_is_one),
		TEST(a_stop_that_is_only_signalled_is_one),
		TEST(a_signal_with_a_reason_in_the_workspace_gives_that),
		TEST(an_interrupt_leaves_the_job_running),
		TEST(an_interrupt_stops_the_run_if_the_caller_says_so),
		TEST(an_interrupt_that_means_nothing_changes_nothing),
		TEST(a_question_is_open_until_it_is_answered),
		TEST(a_driver_that_was_taken_over_ends),
		TEST(a_run_with_a_driver_is_refused),
		TEST(a_deadline_ends_a_run_though_its_engine_does_not_answer),
		TEST(a_deadline_that_is_over_begins_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
