/* The looks at an attempt that goes on: what each tells, how its beginning is told, and when the
 * next look is due. The clock is the test's. See jobs/run/attempt/watch_turn.c. */
#include "attempt_clock.h"
#include "watched_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/process/loop.h"

#define TRAINS "{'nodes':1,'metrics':[{'name':'step','regex':'step ([0-9]+)'}]}"

/* ---- time of the next look ---- */

static void a_look_is_due_after_a_hundredth_of_the_silence(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);

	(void)state;
	now.ms = 1000000;
	driver.seq_at.ms = now.ms - 50000;
	assert_int_equal(watch_pause_ms(&driver), 500);
	driver.seq_at.ms = now.ms - 10000;
	assert_int_equal(watch_pause_ms(&driver), 100);
	driver.seq_at.ms = now.ms - 10100;
	assert_int_equal(watch_pause_ms(&driver), 101);
	driver.seq_at.ms = now.ms;
	assert_int_equal(watch_pause_ms(&driver), 100);
	driver.seq_at.ms = now.ms - 100000;
	assert_int_equal(watch_pause_ms(&driver), 1000);
	driver.seq_at.ms = now.ms - 100100;
	assert_int_equal(watch_pause_ms(&driver), 1000);
	driver.seq_at.ms = now.ms - 99900;
	assert_int_equal(watch_pause_ms(&driver), 999);
	/* its output is a sign of life, and the end of a process */
	watch->heard_at.ms = now.ms - 60000;
	assert_int_equal(watch_pause_ms(&driver), 600);
	watch->woken_at.ms = now.ms - 40000;
	assert_int_equal(watch_pause_ms(&driver), 400);
	watch->heard_at.ms = now.ms - 20000;
	assert_int_equal(watch_pause_ms(&driver), 200);
	driver.seq_at.ms = now.ms - 15000;
	assert_int_equal(watch_pause_ms(&driver), 150);
	now.ms = 0;
	end();
}

static void an_attempt_is_watched_by_phase_and_number(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	assert_true(watch_is(&driver, PHASE_TRAIN, 1));
	assert_false(watch_is(&driver, PHASE_TRAIN, 2));
	assert_false(watch_is(&driver, PHASE_PRECOMPILE, 1));
	assert_false(watch_is_ending(&driver));
	watch_close(&driver);
	assert_false(watch_is(&driver, PHASE_TRAIN, 1));
	assert_false(watch_is_ending(&driver));
	end();
}

static int turns;

static void note_turn(struct driver *of)
{
	turns++;
	loop_quit(of->loop);
}

static pid_t child;
static int wakes;

static int wake_of_child(struct engine *of, const char *name, const char *prefix, pid_t *ret,
			 int max)
{
	(void)of;
	assert_string_equal(name, "stk-r1-1");
	assert_string_equal(prefix, "runs/r1/train-1/");
	assert_int_equal(max, 1);
	wakes++;
	*ret = child;
	return child > 0;
}

static void the_end_of_a_process_wakes_the_driver(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(loop_new(&driver.loop, &err), 0);
	driver.turn = note_turn;
	ops.wake = wake_of_child;
	turns = wakes = 0;
	child = 0;
	look(); /* there is none */
	assert_null(watch->wake);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	look();
	look();
	assert_non_null(watch->wake);
	assert_int_equal(wakes, 2); /* one is enough */
	kill(child, SIGKILL);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(turns, 1);
	assert_null(watch->wake);
	assert_true(watch->woken_at.ms > 0);
	/* at once another may be one that has ended */
	now.ms = watch->woken_at.ms + TICK_MS - 1;
	look();
	assert_int_equal(wakes, 2);
	now.ms++;
	look();
	assert_int_equal(wakes, 3);
	now.ms = 0;
	assert_int_equal(waitpid(child, NULL, 0), child);
	loop_freep(&driver.loop);
	watch->wake = NULL;
	end();
}

/* ---- messages ---- */

static void why_it_waits_is_told_whenever_that_changes(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_QUEUED);
	driver.flow.attempt_state = ATTEMPT_SUBMITTED;
	look();
	assert_told("");
	snprintf(seen.reason, sizeof seen.reason, "no capacity");
	look();
	look();
	assert_told("attempt.waiting");
	assert_string_equal(newest("attempt.waiting", "reason"), "no capacity");
	assert_int_equal(newest_int("attempt.waiting", "attempt"), 1);
	assert_string_equal(newest("attempt.waiting", "phase"), "train");
	snprintf(seen.reason, sizeof seen.reason, "no quota");
	look();
	assert_told("attempt.waiting attempt.waiting");
	assert_string_equal(newest("attempt.waiting", "reason"), "no quota");
	seen.state = ENGINE_STARTING;
	snprintf(seen.reason, sizeof seen.reason, "starts");
	look();
	assert_recorded(2);
	end();
}

static void what_cannot_be_seen_is_lost_once_and_found_once(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_UNKNOWN);
	snprintf(seen.reason, sizeof seen.reason, "the node is down");
	look();
	assert_told("attempt.lost");
	assert_string_equal(newest("attempt.lost", "reason"), "the node is down");
	assert_int_equal(driver.job_seen_at.ms, 0);
	driver.flow.attempt_state = ATTEMPT_LOST;
	look();
	assert_recorded(1);
	seen = (struct engine_status){ .state = ENGINE_RUNNING };
	look();
	assert_told("attempt.lost attempt.found");
	assert_null(newest_value("attempt.found", "reason"));
	assert_true(driver.job_seen_at.ms > 0);
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	seen.state = ENGINE_UNKNOWN;
	look();
	assert_null(newest_value("attempt.lost", "reason"));
	end();
}

static void the_claim_is_told_of_what_starts_or_runs(void **state)
{
	static const struct {
		enum engine_state state;
		bool told;
	} rows[] = { { ENGINE_QUEUED, false },
		     { ENGINE_STARTING, true },
		     { ENGINE_RUNNING, true },
		     { ENGINE_STOPPING, false } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_seen(PHASE_TRAIN, TRAINS, rows[i].state);
		driver.flow.claimed = false;
		driver.flow.attempt_state = ATTEMPT_SUBMITTED;
		report(0, "'claimed':7,'host':'a','nonce':'n'");
		look();
		assert_told(rows[i].told ? "attempt.claimed" : "");
		if (rows[i].told) {
			assert_int_equal(newest_int("attempt.claimed", "since"), 7);
			assert_int_equal(newest_int("attempt.claimed", "node"), 0);
			assert_string_equal(newest("attempt.claimed", "job"), "stk-r1-1");
			assert_string_equal(newest("attempt.claimed", "nonce"), "n");
			assert_null(newest_value("attempt.claimed", "reason"));
			assert_null(newest_value("attempt.claimed", "held"));
		}
		end();
	}
	/* nor where it is known, or not there yet */
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	report(0, "'claimed':7,'host':'a','nonce':'n'");
	look();
	driver.flow.attempt_state = ATTEMPT_SUBMITTED;
	report(0, "'host':'a'");
	look();
	assert_told("");
	end();
}

static void a_claim_is_told_at_the_end_at_the_latest(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_ENDED);
	seen.exit_known = true;
	driver.facts.resume_step = -1;
	driver.flow.claimed = false;
	driver.flow.attempt_state = ATTEMPT_SUBMITTED;
	report(0, "'claimed':7,'host':'a','nonce':'n','ended':9");
	look();
	assert_told("attempt.claimed jit.compiled attempt.ended");
	end();
}

/* ---- looks that fail ---- */

static int refuse_log(struct engine *of, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)offset, (void)max, (void)ret;
	return err_set(err, EXIT_REFUSED, "the log is not yours");
}

static void a_look_that_fails_keeps_no_other_from_being_done(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	ops.logs = refuse_log;
	seen.started.ms = 5;
	assert_int_equal(watch_turn(&driver, &err), -1);
	assert_string_equal(err->message, "the log is not yours");
	assert_told("attempt.started");
	assert_false(watch_is_ending(&driver));
	err_freep(&err);
	end();
	/* the first one is the reason */
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_QUEUED);
	snprintf(seen.reason, sizeof seen.reason, "no capacity");
	seen.started.ms = 5;
	said.away = true;
	assert_int_equal(watch_turn(&driver, &err), -1);
	assert_string_equal(err->message, "the engine does not answer");
	assert_told("");
	said.away = false;
	err_freep(&err);
	driver.stood_down = true;
	assert_taken_over(watch_turn(&driver, &err), &err);
	end();
}

/* ---- end of an attempt ---- */

static int refuse_report(struct engine *of, const char *name, const char *prefix, int node,
			 struct node_report *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)ret;
	return err_set(err, EXIT_REFUSED, "the report is not yours");
}

/* True if the turn passes over the looks before the end. */
static bool passes_over(int64_t at_ms)
{
	AUTO(err_freep) struct err *err = NULL;
	size_t before = json_array_size(recorded);

	now.ms = at_ms;
	assert_int_equal(watch_turn(&driver, &err), -1); /* the end itself needs the report */
	assert_true(watch_is_ending(&driver));
	for (; before < json_array_size(recorded); before++)
		if (js_is(json_array_get(recorded, before), "event", "chore.failed"))
			return true;
	return false;
}

static void last_looks_are_tried_three_times_or_for_three_seconds(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_ENDED);
	ops.report = refuse_report;
	assert_false(passes_over(50000));
	assert_false(passes_over(50001));
	assert_true(passes_over(50002));
	assert_string_equal(newest("chore.failed", "reason"),
			    "time of the last step: not known: the report is not yours");
	assert_string_equal(newest("chore.failed", "phase"), "train");
	assert_false(passes_over(50003)); /* which is told once */
	end();
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_ENDED);
	ops.report = refuse_report;
	assert_false(passes_over(50000));
	assert_false(passes_over(52999));
	end();
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_ENDED);
	ops.report = refuse_report;
	assert_false(passes_over(50000));
	assert_true(passes_over(53000));
	now.ms = 0;
	end();
}

static void steps_are_dated_no_later_than_the_end(void **state)
{
	static const struct {
		const char *report;
		int64_t last_seen, want; /* 0: as they were */
	} rows[] = {
		{ "'ended':77", 5, 77 }, { "'ended':1", 5, 1 },  { "'ended':0", 5, 0 },
		{ "'host':'a'", 5, 5 },  { "'host':'a'", 0, 0 }, { "'ended':9000000000000", 5, 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
		int64_t before;

		sb_adds(&said.logs[0], "step 5\n");
		look();
		before = watch->stepped_at.ms;
		assert_true(before > 77);
		report(0, rows[i].report);
		seen.state = ENGINE_ENDED;
		seen.last_seen.ms = rows[i].last_seen;
		look();
		assert_int_equal(watch->stepped_at.ms, rows[i].want ? rows[i].want : before);
		end();
	}
}

static void checkpoints_are_looked_for_every_second_and_at_the_end(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);

	(void)state;
	now.ms = 60000;
	look();
	assert_int_equal(watch->marks_at.ms, 60000);
	now.ms = 60999;
	look();
	assert_int_equal(watch->marks_at.ms, 60000);
	now.ms = 61000;
	look();
	assert_int_equal(watch->marks_at.ms, 61000);
	now.ms = 61001;
	seen.state = ENGINE_ENDED;
	look();
	assert_int_equal(watch->marks_at.ms, 61001);
	end();
	/* phase 1 leaves none */
	watch = begin_seen(PHASE_PRECOMPILE, TRAINS, ENGINE_RUNNING);
	look();
	seen.state = ENGINE_ENDED;
	look();
	assert_int_equal(watch->marks_at.ms, 0);
	now.ms = 0;
	end();
}

static void a_log_need_not_be_read_of_what_is_to_end(void **state)
{
	static const struct {
		enum engine_state state;
		bool stops, works;
	} rows[] = { { ENGINE_RUNNING, false, false },
		     { ENGINE_STOPPING, false, true },
		     { ENGINE_RUNNING, true, true },
		     { ENGINE_ENDED, false, true } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;

		begin_seen(PHASE_TRAIN, TRAINS, rows[i].state);
		ops.logs = refuse_log;
		driver.flow.stop_requested = rows[i].stops;
		assert_int_equal(watch_turn(&driver, &err), rows[i].works ? 0 : -1);
		end();
	}
}

/* Only the log tells which graphs a phase 1 that ended well has made. */
static void a_phase_1_that_ended_well_needs_its_log(void **state)
{
	static const struct {
		enum phase phase;
		const char *kind;
		bool exit_known, stops;
		int exit;
		bool works;
	} rows[] = {
		{ PHASE_PRECOMPILE, "neuron", true, false, 0, false },
		{ PHASE_PRECOMPILE, "none", true, false, 0, true },
		{ PHASE_TRAIN, "neuron", true, false, 0, true },
		{ PHASE_PRECOMPILE, "neuron", false, false, 0, true },
		{ PHASE_PRECOMPILE, "neuron", true, false, 1, true },
		{ PHASE_PRECOMPILE, "neuron", true, true, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;

		begin_seen(rows[i].phase, TRAINS, ENGINE_ENDED);
		driver.kind = compile_kind_find(rows[i].kind);
		driver.flow.stop_requested = rows[i].stops;
		seen.exit_known = rows[i].exit_known;
		seen.exit = rows[i].exit;
		ops.logs = refuse_log;
		assert_int_equal(watch_turn(&driver, &err), rows[i].works ? 0 : -1);
		if (!rows[i].works)
			assert_string_equal(err->message, "the log is not yours");
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_is_due_after_a_hundredth_of_the_silence),
		cmocka_unit_test(an_attempt_is_watched_by_phase_and_number),
		cmocka_unit_test(the_end_of_a_process_wakes_the_driver),
		cmocka_unit_test(why_it_waits_is_told_whenever_that_changes),
		cmocka_unit_test(what_cannot_be_seen_is_lost_once_and_found_once),
		cmocka_unit_test(the_claim_is_told_of_what_starts_or_runs),
		cmocka_unit_test(a_claim_is_told_at_the_end_at_the_latest),
		cmocka_unit_test(a_look_that_fails_keeps_no_other_from_being_done),
		cmocka_unit_test(last_looks_are_tried_three_times_or_for_three_seconds),
		cmocka_unit_test(steps_are_dated_no_later_than_the_end),
		cmocka_unit_test(checkpoints_are_looked_for_every_second_and_at_the_end),
		cmocka_unit_test(a_log_need_not_be_read_of_what_is_to_end),
		cmocka_unit_test(a_phase_1_that_ended_well_needs_its_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
