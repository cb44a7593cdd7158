/* A driver after a failure: it waits and tries again, or it ends. See
 * jobs/run/driver_internal.h. */
#include "jobs/run/driver_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/lease.h"

static char dir[64];
static struct driver driver;
static struct event recorded;
static char reason[128];
static int away; /* times that it was told */

static int64_t pauses[8]; /* that it asked for */
static size_t pause_count;

/* The linker leads again.c here (tests/CMakeLists.txt). */
void __real_driver_wake_in(struct driver *of, int64_t delay_ms);
void __wrap_driver_wake_in(struct driver *of, int64_t delay_ms);

void __wrap_driver_wake_in(struct driver *of, int64_t delay_ms)
{
	if (pause_count < STK_LENGTH(pauses))
		pauses[pause_count++] = delay_ms;
	__real_driver_wake_in(of, delay_ms);
}

static void note(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)row;
	recorded = *ev;
	snprintf(reason, sizeof reason, "%s", EVENT_HAS(ev, reason) ? ev->reason : "");
}

static void note_away(void *arg, const struct err *why)
{
	(void)arg;
	assert_string_equal(why->message, "no answer");
	away++;
}

static int set_up(void **state)
{
	static const struct driver_options options = { .on_event = note, .on_away = note_away };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-again-XXXXXX");
	assert_non_null(mkdtemp(dir));
	recorded.kind = EV_RUN_CREATED;
	away = 0;
	pause_count = 0;
	driver = (struct driver){ .run = "r1", .options = &options, .live = true };
	driver.live_at = clock_utc_now();
	driver.live_since = clock_mono_now();
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
	return loop_new(&driver.loop, &err);
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	loop_freep(&driver.loop);
	lease_freep(&driver.lease);
	journal_freep(&driver.journal);
	again_forget(&driver);
	err_free(driver.failure);
	return fs_remove_tree(dir, &err);
}

static void fail_with(enum exit_code code)
{
	err_freep(&driver.failure);
	err_set(&driver.failure, code, "no answer");
}

static void a_failure_that_does_not_pass_ends_a_driver_without_a_job(void **state)
{
	(void)state;
	fail_with(EXIT_REFUSED);
	assert_false(again_try(&driver));
	assert_int_equal(away, 0);
	assert_non_null(driver.failure);
	/* With a job under way nothing but the time does. */
	driver.submitted = true;
	driver.flow.attempt_state = ATTEMPT_INTENDED;
	assert_true(again_try(&driver));
	assert_int_equal(away, 1);
	assert_null(driver.failure);
}

static void a_failure_that_may_pass_is_tried_a_few_times_without_a_job(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		fail_with(EXIT_REFUSED);
		driver.failure->os_errno = EAGAIN;
		assert_true(again_try(&driver));
	}
	fail_with(EXIT_REFUSED);
	driver.failure->os_errno = EAGAIN;
	assert_false(again_try(&driver));
	assert_int_equal(away, 1);
}

static void a_wait_is_recorded_once_and_its_end(void **state)
{
	(void)state;
	driver.reaches_out = true;
	fail_with(EXIT_UNREACHABLE);
	assert_true(again_try(&driver));
	assert_int_equal(recorded.kind, EV_RUN_CREATED); /* nothing: it may work at once */
	fail_with(EXIT_UNREACHABLE);
	assert_true(again_try(&driver));
	assert_int_equal(recorded.kind, EV_DRIVER_WAITING);
	assert_string_equal(reason, "no answer");
	recorded.kind = EV_RUN_CREATED;
	fail_with(EXIT_UNREACHABLE);
	assert_true(again_try(&driver));
	assert_int_equal(recorded.kind, EV_RUN_CREATED);
	again_works(&driver);
	assert_int_equal(recorded.kind, EV_DRIVER_WENT_ON);
	assert_string_equal(reason, "no answer");
	recorded.kind = EV_RUN_CREATED;
	again_works(&driver);
	assert_int_equal(recorded.kind, EV_RUN_CREATED);
	assert_int_equal(away, 1);
}

static void miss_right(const char *cure)
{
	recorded.kind = EV_RUN_CREATED;
	fail_with(EXIT_REFUSED);
	assert_int_equal(err_hint(&driver.failure, "%s", cure), -1);
	assert_true(again_try(&driver));
}

static void rights_that_are_missing_by_turns_are_told_once_each(void **state)
{
	char cure[] = "allow A";

	(void)state;
	driver.submitted = true;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	miss_right("allow A");
	miss_right("allow B");
	assert_int_equal(away, 2);
	assert_int_equal(recorded.kind, EV_DRIVER_WAITING);
	miss_right("allow A"); /* told, but it was the first failure */
	assert_int_equal(recorded.kind, EV_DRIVER_WAITING);
	for (int i = 0; i < 4; i++) {
		miss_right(i % 2 ? "allow A" : "allow B");
		assert_int_equal(recorded.kind, EV_RUN_CREATED);
	}
	assert_int_equal(away, 2);
	/* The number of rights that are kept in mind is limited; more are not told. */
	for (int round = 0; round < 2; round++)
		for (int last = 'C'; last <= 'Z'; last++) {
			cure[strlen(cure) - 1] = (char)last;
			miss_right(cure);
		}
	assert_int_equal(away, AWAY_TOLD_MAX);
	/* In another wait they are told anew. */
	again_works(&driver);
	miss_right("allow B");
	assert_int_equal(away, AWAY_TOLD_MAX + 1);
}

static void assert_pauses(const int64_t *want, size_t count)
{
	assert_int_equal(pause_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pauses[i], want[i]);
	pause_count = 0;
	again_works(&driver);
}

static void fail_times(int times, enum exit_code code)
{
	for (int i = 0; i < times; i++) {
		fail_with(code);
		driver.failure->os_errno = EAGAIN;
		assert_true(again_try(&driver));
	}
}

static void it_waits_ever_longer_and_never_long_where_it_is_urgent(void **state)
{
	static const int64_t brief[] = { 300, 600, 1200, 2400 };
	static const int64_t of_job[] = { 1000, 2000, 4000, 8000, 10000, 10000 };
	static const int64_t urgent[] = { 1000, 2000, 2500, 2500 };
	static const int64_t of_service[] = { 2500, 10000, 10000 };
	static const int64_t of_urgent_service[] = { 2500, 2500, 2500 };

	(void)state;
	fail_times(4, EXIT_REFUSED);
	assert_pauses(brief, STK_LENGTH(brief));
	driver.reaches_out = true;
	fail_times(3, EXIT_UNREACHABLE);
	assert_pauses(of_service, STK_LENGTH(of_service));
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	fail_times(6, EXIT_REFUSED); /* no service's client has waited for that */
	assert_pauses(of_job, STK_LENGTH(of_job));
	driver.flow.stop_requested = true;
	fail_times(4, EXIT_REFUSED);
	assert_pauses(urgent, STK_LENGTH(urgent));
	fail_times(3, EXIT_UNREACHABLE);
	assert_pauses(of_urgent_service, STK_LENGTH(of_urgent_service));
	driver.flow.stop_requested = false;
	driver.flow.recompile = true;
	fail_times(4, EXIT_REFUSED);
	assert_pauses(urgent, STK_LENGTH(urgent));
}

static void after_its_time_is_over_a_driver_ends_unreachable(void **state)
{
	(void)state;
	driver.submitted = true;
	driver.flow.attempt_state = ATTEMPT_INTENDED;
	driver.flow.policy.unreachable_ms = 60000;
	fail_with(EXIT_REFUSED);
	assert_true(again_try(&driver));
	driver.away_since.ms -= 60000;
	/* A job that is seen, and can be journalled, is not left because something else fails. */
	driver.job_seen_at = driver.journal_spoke_at = clock_mono_now();
	fail_with(EXIT_REFUSED);
	assert_true(again_try(&driver));
	/* The one of engine and journal that has been silent for longer counts. */
	driver.journal_spoke_at.ms -= 60000;
	fail_with(EXIT_REFUSED);
	assert_false(again_try(&driver));
	assert_int_equal(driver.failure->code, EXIT_UNREACHABLE);
	driver.journal_spoke_at = clock_mono_now();
	driver.job_seen_at.ms = 0;
	fail_with(EXIT_REFUSED);
	assert_false(again_try(&driver));
	assert_int_equal(driver.failure->code, EXIT_UNREACHABLE);
	assert_string_equal(driver.failure->message, "no answer");
}

static void a_wait_before_an_attempt_was_intended_does_not_count_against_it(void **state)
{
	(void)state;
	driver.reaches_out = true;
	driver.flow.policy.unreachable_ms = 60000;
	fail_with(EXIT_UNREACHABLE);
	assert_true(again_try(&driver));
	driver.away_since.ms -= 60000;
	driver.flow.attempt_state = ATTEMPT_INTENDED;
	snprintf(driver.flow.nonce, sizeof driver.flow.nonce, "another");
	fail_with(EXIT_UNREACHABLE);
	assert_true(again_try(&driver));
	driver.away_since.ms -= 60000;
	fail_with(EXIT_UNREACHABLE);
	assert_false(again_try(&driver));
}

/* Another driver has written to the journal. */
static void take_over(void)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event other = { .kind = EV_DRIVER_TOOK_OVER, .seq = driver.seq + 1, .at = { 1 } };

	other.at = clock_utc_now();
	EVENT_SET_STR(&other, host, "there");
	EVENT_SET(&other, pid, 1);
	EVENT_SET(&other, epoch, 2);
	assert_int_equal(journal_append(driver.journal, "r1", &other, &err), 1);
}

static void a_driver_that_was_taken_over_waits_for_nothing(void **state)
{
	(void)state;
	driver.reaches_out = true;
	fail_with(EXIT_UNREACHABLE);
	assert_true(again_try(&driver));
	take_over();
	fail_with(EXIT_UNREACHABLE);
	assert_false(again_try(&driver));
	assert_true(driver.stood_down);
	fail_with(EXIT_UNREACHABLE);
	assert_false(again_try(&driver));
	/* Nor is its wait journalled. */
	recorded.kind = EV_RUN_CREATED;
	again_works(&driver);
	assert_int_equal(recorded.kind, EV_RUN_CREATED);
}

static void without_its_lease_a_driver_does_nothing_and_leaves_the_loop(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_true(again_may_act(&driver));
	assert_int_equal(lease_remove(driver.lease, &err), 0);
	assert_false(again_may_act(&driver));
	assert_int_equal(driver.failure->code, EXIT_BUSY);
	assert_int_equal(loop_run(driver.loop, &err), 0); /* it does not wait for anything */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_failure_that_does_not_pass_ends_a_driver_without_a_job),
		TEST(a_failure_that_may_pass_is_tried_a_few_times_without_a_job),
		TEST(a_wait_is_recorded_once_and_its_end),
		TEST(rights_that_are_missing_by_turns_are_told_once_each),
		TEST(it_waits_ever_longer_and_never_long_where_it_is_urgent),
		TEST(after_its_time_is_over_a_driver_ends_unreachable),
		TEST(a_wait_before_an_attempt_was_intended_does_not_count_against_it),
		TEST(a_driver_that_was_taken_over_waits_for_nothing),
		TEST(without_its_lease_a_driver_does_nothing_and_leaves_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
