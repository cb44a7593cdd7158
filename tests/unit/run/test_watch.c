/* The looks at an attempt that goes on: what each tells, how its beginning is told, and when the
 * next look is due. The clock is the test's. See jobs/run/attempt/watch_turn.c. */
#include "attempt_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/process/loop.h"
#include "jobs/store/store_backend.h"

#define TRAINS   "{'nodes':1,'metrics':[{'name':'step','regex':'step ([0-9]+)'}]}"
#define COMPILES "{'nodes':2,'compile':{'kind':'jax'},'metrics':[]}"

static struct mono now; /* ms 0: the true one */

struct mono __real_clock_mono_now(void);
struct mono __wrap_clock_mono_now(void);

struct mono __wrap_clock_mono_now(void)
{
	return now.ms > 0 ? now : __real_clock_mono_now();
}

static struct engine_status seen;

static int describe(struct engine *of, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	(void)of;
	assert_string_equal(name, "stk-r1-1");
	assert_memory_equal(prefix, "runs/r1/", 8);
	if (said.away)
		return no_answer(err);
	*ret = seen;
	return 0;
}

static struct attempt_watch *begin_seen(enum phase phase, const char *plan, enum engine_state state)
{
	struct attempt_watch *watch;

	now.ms = 0;
	watch = begin(phase, plan);
	ops.describe = describe;
	seen = (struct engine_status){ .state = state };
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	return watch;
}

static void look(void)
{
	AUTO(err_freep) struct err *err = NULL;

	if (watch_turn(&driver, &err) < 0)
		fail_msg("%s", err->message);
}

static char *told(void)
{
	struct sb words = SB_INIT;
	const json_t *row;
	size_t i;

	json_array_foreach (recorded, i, row)
		sb_addf(&words, "%s%s", i ? " " : "", js_str(row, "event"));
	return words.len ? sb_take(&words) : mem_copy("");
}

static void assert_told(const char *want)
{
	AUTO(auto_free) char *words = told();

	assert_string_equal(words, want);
}

/* ---- when the next look is due ---- */

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

/* ---- what is told ---- */

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

/* ---- how it began ---- */

static void the_beginning_is_told_once_it_is_known(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	look();
	seen.started.ms = 1;
	driver.flow.claimed = false;
	look();
	driver.flow.claimed = driver.flow.started = true;
	look();
	assert_told("");
	driver.flow.started = false;
	look();
	assert_told("attempt.started");
	assert_int_equal(newest_int("attempt.started", "started"), 1);
	assert_int_equal(newest_int("attempt.started", "attempt"), 1);
	end();
}

/* A folder of the kernel's is one of a file system that syncs none. */
static void a_place_that_cannot_be_synced_is_named_at_the_first_attempt(void **state)
{
	static const struct {
		const char *url;
		int precompiles, trainings;
		bool told;
	} rows[] = {
		{ "/proc", 0, 1, true },  { "/proc", 1, 0, true }, { "/proc", 1, 1, false },
		{ "/proc", 0, 2, false }, { "/tmp", 0, 1, false }, { "s3://b/x", 0, 1, false },
		{ "proc", 0, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *plan = mem_format("{'nodes':1,'metrics':[],'checkpoint':{'url':'%s'}}",
					rows[i].url);
		struct attempt_watch *watch = begin_seen(PHASE_TRAIN, plan, ENGINE_RUNNING);
		AUTO(err_freep) struct err *err = NULL;

		driver.flow.attempts[PHASE_PRECOMPILE] = rows[i].precompiles;
		driver.flow.attempts[PHASE_TRAIN] = rows[i].trainings;
		assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
		assert_told(rows[i].told ? "environment.checked attempt.started"
					 : "attempt.started");
		if (rows[i].told) {
			assert_string_equal(newest("environment.checked", "reason"),
					    "the file system of '/proc' cannot sync folders");
			assert_string_equal(newest("environment.checked", "hint"),
					    "a power cut of its server may take away files that "
					    "were written last; checkpoints and graphs are checked "
					    "again before they are used");
			assert_null(newest_value("environment.checked", "node"));
		}
		end();
	}
}

static void the_cache_is_such_a_place_too(void **state)
{
	struct store fake = { .directory = (char[]){ "/proc" } };
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.cache = &fake;
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("environment.checked attempt.started");
	driver.cache = NULL;
	end();
}

#define OTHER "'compiler':{'changed':[{'field':'jax','old':'1','new':'2'}],'pair':'p'}"

static void compilers_and_variables_are_told_before_the_beginning(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, COMPILES, ENGINE_RUNNING);

	(void)state;
	driver.flow.policy.compiles = true;
	report(0, "'host':'a'");
	report(1, "'environment':{'withheld':['A'],'image_known':true}," OTHER);
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("environment.checked compiler.checked attempt.started");
	assert_int_equal(newest_int("environment.checked", "node"), 1);
	assert_int_equal(newest_int("compiler.checked", "node"), 1);
	assert_int_equal(json_array_size(newest_value("compiler.checked", "changed")), 1);
	end();
	/* by the first node that has something to say of each */
	watch = begin_seen(PHASE_TRAIN, COMPILES, ENGINE_RUNNING);
	driver.flow.policy.compiles = true;
	report(0, "'environment':{'withheld':['A'],'image_known':true}");
	report(1, "'environment':{'withheld':['A'],'image_known':true}," OTHER);
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("environment.checked compiler.checked attempt.started");
	assert_int_equal(newest_int("environment.checked", "node"), 0);
	assert_int_equal(newest_int("compiler.checked", "node"), 1);
	end();
}

static void only_a_training_after_a_phase_1_is_compared(void **state)
{
	static const struct {
		const char *plan;
		enum phase phase;
		bool compiles;
		const char *told;
	} rows[] = {
		{ COMPILES, PHASE_PRECOMPILE, true, "environment.checked attempt.started" },
		{ COMPILES, PHASE_TRAIN, false, "environment.checked attempt.started" },
		{ "{'nodes':2,'metrics':[]}", PHASE_TRAIN, true, "attempt.started" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch =
			begin_seen(rows[i].phase, rows[i].plan, ENGINE_RUNNING);
		AUTO(err_freep) struct err *err = NULL;

		driver.flow.policy.compiles = rows[i].compiles;
		report(0, "'environment':{'withheld':['A'],'image_known':true}," OTHER);
		assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
		assert_told(rows[i].told);
		end();
	}
}

static void a_beginning_that_cannot_be_read_or_journalled_is_none(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, COMPILES, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.flow.policy.compiles = true;
	said.away = true;
	assert_away(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	report(0, "'environment':{'withheld':['A'],'image_known':true}");
	driver.stood_down = true;
	assert_taken_over(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	report(0, OTHER);
	driver.stood_down = true;
	assert_taken_over(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	report(0, "'host':'a'");
	json_object_set_new(driver.plan, "checkpoint", json_pack("{s:s}", "url", "/proc"));
	driver.stood_down = true;
	assert_taken_over(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	assert_recorded(0);
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
		cmocka_unit_test(the_beginning_is_told_once_it_is_known),
		cmocka_unit_test(a_place_that_cannot_be_synced_is_named_at_the_first_attempt),
		cmocka_unit_test(the_cache_is_such_a_place_too),
		cmocka_unit_test(compilers_and_variables_are_told_before_the_beginning),
		cmocka_unit_test(only_a_training_after_a_phase_1_is_compared),
		cmocka_unit_test(a_beginning_that_cannot_be_read_or_journalled_is_none),
		cmocka_unit_test(a_look_that_fails_keeps_no_other_from_being_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
