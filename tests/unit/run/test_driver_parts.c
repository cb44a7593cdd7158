/* The services of a driver, each by itself: its clock, its waits, what it tells a job, a stop that
 * cannot be journalled. The clocks are the test's. See jobs/run/driver_core.c, beside_driver.c and
 * interrupt.c. */
#include "faulty_store.h"

#include "attempt_clock.h"
#include "attempt_fixture.h"

#include <unistd.h>

#include "jobs/base/process/loop.h"
#include "jobs/run/journal/lease.h"
#include "jobs/store/order.h"

static struct utc utc_now;

struct utc __real_clock_utc_now(void);
struct utc __wrap_clock_utc_now(void);
struct watch *__real_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);
struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg);

struct utc __wrap_clock_utc_now(void)
{
	return utc_now.ms > 0 ? utc_now : __real_clock_utc_now();
}

static int64_t newest_wait;

struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg),
				void *arg)
{
	newest_wait = delay_ms;
	return __real_loop_after(loop, delay_ms, fn, arg);
}

static int64_t grace_asked;

static int stop_within(struct engine *of, const char *name, const char *prefix, int64_t grace_ms,
		       struct err **err)
{
	(void)of, (void)err;
	assert_string_equal(name, "stk-r1-train-1");
	assert_string_equal(prefix, "runs/r1/train-1/");
	if (said.away)
		return no_answer(err);
	grace_asked = grace_ms;
	said.stops++;
	return 0;
}

#define PLAN "{'nodes':1,'metrics':[]}"

static void begin_part(void)
{
	AUTO(err_freep) struct err *err = NULL;

	now.ms = utc_now.ms = 0;
	(void)begin(PHASE_TRAIN, PLAN);
	ops.stop = stop_within;
	driver.flow.state = FLOW_TRAIN;
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	snprintf(driver.flow.job, sizeof driver.flow.job, "stk-r1-train-1");
	assert_int_equal(loop_new(&driver.loop, &err), 0);
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
}

static void end_part(void)
{
	now.ms = utc_now.ms = 0;
	loop_freep(&driver.loop);
	lease_freep(&driver.lease);
	free(driver.stop_words);
	again_forget(&driver);
	err_freep(&driver.failure);
	end();
}

/* ---- the driver's clock ---- */

static void a_clock_that_is_set_moves_nothing_once_the_run_is_taken_over(void **state)
{
	(void)state;
	begin_part();
	now.ms = 5000;
	utc_now.ms = 900000;
	driver.live = false;
	driver.flow.at.ms = 1000;
	assert_int_equal(driver_now(&driver).ms, 900000);
	driver.flow.at.ms = 900001; /* of another machine */
	assert_int_equal(driver_now(&driver).ms, 900001);
	driver.live = true;
	driver.live_at.ms = 700000;
	driver.live_since.ms = 4000;
	driver.flow.at.ms = 1000;
	assert_int_equal(driver_now(&driver).ms, 701000);
	/* never behind the newest event, and what has passed since */
	driver.flow.at.ms = 702000;
	driver.seq_at.ms = 4700;
	assert_int_equal(driver_now(&driver).ms, 702300);
	driver.flow.at.ms = 700700;
	assert_int_equal(driver_now(&driver).ms, 701000);
	end_part();
}

static void no_wait_is_longer_than_until_the_next_limit(void **state)
{
	(void)state;
	begin_part();
	now.ms = 5000;
	driver.live_at.ms = 100000;
	driver.live_since.ms = 5000;
	driver.flow.created.ms = 90000;
	driver_wake_in(&driver, 50000);
	assert_int_equal(newest_wait, 50000); /* there is none */
	driver.flow.policy.deadline_ms = 20000;
	driver_wake_in(&driver, 50000);
	assert_int_equal(newest_wait, 10000);
	driver_wake_in(&driver, 9999);
	assert_int_equal(newest_wait, 9999);
	driver_wake_in(&driver, 10000);
	assert_int_equal(newest_wait, 10000);
	driver.flow.policy.deadline_ms = 10001;
	driver_wake_in(&driver, 50000);
	assert_int_equal(newest_wait, 1);
	/* one that is due already ends no wait */
	driver.flow.policy.deadline_ms = 10000;
	driver_wake_in(&driver, 50000);
	assert_int_equal(newest_wait, 50000);
	driver.flow.policy.deadline_ms = 9000;
	driver_wake_in(&driver, 50000);
	assert_int_equal(newest_wait, 50000);
	driver_wake_in(&driver, 0);
	assert_int_equal(newest_wait, 1);
	driver_wake_in(&driver, -5);
	assert_int_equal(newest_wait, 1);
	driver_wake_in(&driver, 2);
	assert_int_equal(newest_wait, 2);
	driver_wake(&driver);
	assert_int_equal(newest_wait, 1);
	end_part();
}

static int turns;

static void count_turn(struct driver *of)
{
	(void)of;
	turns++;
}

static void quit(void *arg)
{
	loop_quit(arg);
}

static void a_later_wake_takes_the_place_of_an_earlier_one(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_part();
	turns = 0;
	driver.turn = count_turn;
	for (int i = 0; i < 3; i++)
		driver_wake(&driver);
	__real_loop_after(driver.loop, 20, quit, driver.loop);
	assert_int_equal(loop_run(driver.loop, &err), 0);
	assert_int_equal(turns, 1);
	assert_null(driver.timer);
	end_part();
}

/* ---- messages to a job ---- */

static void a_job_is_stopped_within_the_grace_of_the_plan(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_part();
	assert_int_equal(driver_stop_job(&driver, PHASE_TRAIN, 1, "stk-r1-train-1", &err), 0);
	assert_int_equal(grace_asked, 60000);
	js_put(driver.plan, "grace_ms", json_integer(7));
	assert_int_equal(driver_stop_job(&driver, PHASE_TRAIN, 1, "stk-r1-train-1", &err), 0);
	assert_int_equal(grace_asked, 7);
	end_part();
}

static void a_job_that_was_told_to_save_is_not_told_otherwise(void **state)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *drain = NULL;

	(void)state;
	begin_part();
	snprintf(driver.flow.stop_reason, sizeof driver.flow.stop_reason, "first");
	assert_int_equal(driver_write_drain(&driver, PHASE_TRAIN, 1, &err), 0);
	snprintf(driver.flow.stop_reason, sizeof driver.flow.stop_reason, "second");
	assert_int_equal(driver_write_drain(&driver, PHASE_TRAIN, 1, &err), 0);
	path = mem_format("%s/ws/runs/r1/train-1/" DRAIN_FILE, dir);
	assert_int_equal(js_load(path, 4096, &drain, &err), 0);
	assert_int_equal(js_int(drain, "v", 0), 1);
	assert_string_equal(js_str(drain, "reason"), "first");
	end_part();
}

/* ---- events of the driver ---- */

/* Events that another process has appended meanwhile are read, and an event that was decided by the
 * old state alone is not appended behind them. */
static void an_event_is_numbered_behind_those_of_others(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event ev = { .kind = EV_CHORE_FAILED };
	struct event other = { .kind = EV_REQUEST_STOP, .at = { INT64_C(1795000000000) } };

	(void)state;
	begin_part();
	EVENT_SET_STR(&ev, reason, "x");
	EVENT_SET_STR(&other, reason, "enough");
	other.seq = 1;
	assert_int_equal(journal_append(driver.journal, "r1", &other, &err), 1);
	assert_int_equal(driver_try_record(&driver, &ev, &err), 0);
	assert_int_equal(driver.seq, 1);
	other.seq = 2;
	assert_int_equal(journal_append(driver.journal, "r1", &other, &err), 1);
	assert_int_equal(driver_record(&driver, &ev, &err), 0);
	assert_int_equal(driver.seq, 3);
	assert_int_equal(newest_int("chore.failed", "seq"), 3);
	assert_recorded(3); /* those of others are shown too */
	assert_false(driver.journal_fails);
	end_part();
}

static char *event_place(int seq)
{
	return mem_format("%s/state/runs/r1/events/%012d.json", dir, seq);
}

/* A folder where the next event would be. */
static void obstruct(int seq)
{
	AUTO(auto_free) char *place = event_place(seq);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(place, &err), 0);
}

static void clear(int seq)
{
	AUTO(auto_free) char *place = event_place(seq);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_remove_tree(place, &err), 0);
	assert_int_equal(driver_absorb(&driver, &err), 0); /* the journal can be read */
	assert_false(driver.journal_fails);
}

static void a_journal_that_fails_is_known_to(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event ev = { .kind = EV_CHORE_FAILED };

	(void)state;
	begin_part();
	EVENT_SET_STR(&ev, reason, "x");
	obstruct(1);
	assert_int_equal(driver_record(&driver, &ev, &err), -1);
	assert_true(driver.journal_fails);
	assert_int_equal(driver.seq, 0);
	assert_recorded(0);
	err_freep(&err);
	clear(1);
	assert_int_equal(driver_record(&driver, &ev, &err), 0);
	assert_false(driver.journal_fails);
	end_part();
}

/* ---- a stop that lies in the workspace ---- */

static char *stop_path(void)
{
	return mem_format("%s/ws/runs/r1/" STOP_FILE, dir);
}

static void leave(const char *text, size_t len)
{
	AUTO(auto_free) char *path = stop_path();
	AUTO(auto_free) char *folder = fs_dirname(path);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(folder, &err), 0);
	assert_int_equal(fs_write_atomic(path, text, len, 0600, &err), 0);
}

static void a_request_is_read_once_whatever_is_in_it(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "{\"reason\":\"no room\"}", "no room" },
		{ "", NULL },
		{ "x", NULL },
		{ "{", NULL },
		{ "{}", NULL },
		{ "{\"reason\":1}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_part();
		assert_false(beside_stop_file_read(&driver));
		assert_false(driver.stop_pending);
		driver.stop_words = mem_copy("of before");
		leave(rows[i].text, strlen(rows[i].text));
		assert_true(beside_stop_file_read(&driver));
		assert_true(driver.stop_pending);
		if (rows[i].words)
			assert_string_equal(driver.stop_words, rows[i].words);
		else
			assert_null(driver.stop_words);
		assert_false(beside_stop_file_read(&driver)); /* it is known */
		end_part();
	}
}

static void a_request_is_no_longer_than_64_kib(void **state)
{
	AUTO(auto_free) char *text = mem_zero((64 << 10) + 2, 1);

	(void)state;
	memset(text, ' ', (64 << 10) + 1);
	memcpy(text, "{\"reason\":\"x\"}", 14);
	begin_part();
	leave(text, (64 << 10) + 1);
	assert_false(beside_stop_file_read(&driver));
	leave(text, 64 << 10);
	assert_true(beside_stop_file_read(&driver));
	assert_string_equal(driver.stop_words, "x");
	end_part();
}

static void where_a_stop_is_known_or_late_nobody_looks(void **state)
{
	struct store *workspace;

	(void)state;
	begin_part();
	leave("{}", 2);
	driver.flow.state = FLOW_ENDED;
	assert_false(beside_stop_file_read(&driver));
	driver.flow.state = FLOW_TRAIN;
	driver.flow.stop_requested = true;
	assert_false(beside_stop_file_read(&driver));
	driver.flow.stop_requested = false;
	workspace = driver.workspace;
	driver.workspace = NULL;
	assert_false(beside_stop_file_read(&driver));
	beside_stop_file_clear(&driver); /* of nothing */
	driver.workspace = workspace;
	assert_false(driver.stop_pending);
	assert_true(beside_stop_file_read(&driver));
	end_part();
}

/* A look at a service is a request. */
static void a_service_is_looked_at_once_a_minute(void **state)
{
	AUTO(auto_free) char *folder = NULL;
	struct faulty_store *store;

	(void)state;
	begin_part();
	folder = mem_format("%s/far", dir);
	store = faulty_new(folder);
	store_freep(&driver.workspace);
	driver.workspace = &store->base;
	now.ms = 500000;
	assert_false(beside_stop_file_read(&driver)); /* the first time at once */
	{
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(store_put(driver.workspace, "runs/r1/" STOP_FILE, "{}", 2, &err),
				 0);
	}
	assert_false(beside_stop_file_read(&driver));
	now.ms = 559999;
	assert_false(beside_stop_file_read(&driver));
	now.ms = 560000;
	assert_true(beside_stop_file_read(&driver));
	/* and at any time where the journal fails: a stop could not be journalled */
	driver.stop_pending = false;
	assert_false(beside_stop_file_read(&driver));
	driver.journal_fails = true;
	assert_true(beside_stop_file_read(&driver));
	end_part();
}

/* ---- a stop that cannot be journalled ---- */

static void it_reaches_the_job_all_the_same(void **state)
{
	static const struct {
		enum attempt_state attempt;
		bool requested, engine;
		int stops;
	} rows[] = {
		{ ATTEMPT_RUNNING, false, true, 1 },   { ATTEMPT_RUNNING, true, true, 0 },
		{ ATTEMPT_RUNNING, false, false, 0 },  { ATTEMPT_INTENDED, false, true, 1 },
		{ ATTEMPT_NONE, false, true, 0 },      { ATTEMPT_BACKOFF, false, true, 0 },
		{ ATTEMPT_UNCERTAIN, false, true, 1 }, { ATTEMPT_LOST, false, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_part();
		driver.flow.attempt_state = rows[i].attempt;
		driver.flow.stop_requested = rows[i].requested;
		if (!rows[i].engine)
			driver.engine = NULL;
		beside_stop_unrecorded(&driver);
		assert_int_equal(said.stops, rows[i].stops);
		driver.engine = &engine;
		end_part();
	}
	begin_part();
	said.away = true;
	beside_stop_unrecorded(&driver); /* it is tried again */
	assert_int_equal(said.stops, 0);
	end_part();
}

static bool is_drained(void)
{
	AUTO(auto_free) char *path = mem_format("%s/ws/runs/r1/train-1/" DRAIN_FILE, dir);

	return fs_exists(path);
}

static void a_training_that_can_save_gets_the_time_first(void **state)
{
	(void)state;
	begin_part();
	driver.flow.policy.drain_ms = 1000;
	now.ms = 70000;
	beside_stop_unrecorded(&driver);
	assert_true(is_drained());
	assert_int_equal(said.stops, 0);
	now.ms = 70999;
	beside_stop_unrecorded(&driver);
	assert_int_equal(said.stops, 0);
	now.ms = 71000;
	beside_stop_unrecorded(&driver);
	assert_int_equal(said.stops, 1);
	end_part();
}

static void what_cannot_save_is_stopped_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		begin_part();
		driver.flow.policy.drain_ms = i == 0 ? 0 : 1000;
		driver.flow.claimed = i != 1;
		if (i == 2)
			driver.flow.phase = PHASE_PRECOMPILE;
		if (i == 3) { /* it cannot be told */
			AUTO(auto_free) char *folder = mem_format("%s/ws", dir);
			AUTO(auto_free) char *path = fs_join(folder, "runs");
			AUTO(err_freep) struct err *err = NULL;

			assert_int_equal(fs_mkdirs(folder, &err), 0);
			assert_int_equal(fs_write_atomic(path, "", 0, 0600, &err), 0);
		}
		if (i == 2)
			ops.stop = take_stop;
		beside_stop_unrecorded(&driver);
		assert_int_equal(said.stops, 1);
		assert_false(is_drained());
		end_part();
	}
}

/* ---- the request itself ---- */

static void a_stop_is_journalled_with_its_reason(void **state)
{
	AUTO(auto_free) char *path = NULL;

	(void)state;
	begin_part();
	path = stop_path();
	leave("{}", 2);
	driver.stop_pending = true;
	driver.stop_words = mem_copy("no room");
	newest_wait = -1;
	assert_true(interrupt_request_stop(&driver));
	assert_string_equal(newest("request.stop", "reason"), "no room");
	assert_int_equal(newest_int("request.stop", "pid"), getpid());
	assert_false(driver.stop_pending);
	assert_false(fs_exists(path));
	assert_int_equal(newest_wait, 1); /* the effects are looked at */
	assert_int_equal(said.stops, 0);
	end_part();
	/* once */
	begin_part();
	driver.stop_pending = true;
	driver.flow.stop_requested = true;
	assert_true(interrupt_request_stop(&driver));
	assert_false(driver.stop_pending);
	assert_recorded(0);
	end_part();
	begin_part();
	assert_true(interrupt_request_stop(&driver));
	assert_string_equal(newest("request.stop", "reason"), "interrupted");
	end_part();
}

static void a_stop_that_cannot_be_journalled_is_tried_again(void **state)
{
	(void)state;
	begin_part();
	obstruct(1);
	assert_false(interrupt_request_stop(&driver));
	assert_true(driver.stop_pending);
	assert_int_equal(said.stops, 1);
	assert_null(driver.failure); /* it is waited for */
	assert_non_null(driver.timer);
	/* the job is told at each try, also before one that works */
	assert_true(driver.journal_fails);
	assert_false(interrupt_request_stop(&driver));
	assert_int_equal(said.stops, 3);
	clear(1);
	driver.journal_fails = true;
	assert_true(interrupt_request_stop(&driver));
	assert_int_equal(said.stops, 4);
	assert_false(driver.stop_pending);
	end_part();
}

static void who_was_taken_over_requests_nothing(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_part();
	driver.stood_down = true;
	assert_false(interrupt_request_stop(&driver));
	assert_non_null(driver.failure);
	assert_int_equal(driver.failure->code, EXIT_BUSY);
	assert_int_equal(loop_run(driver.loop, &err), 0); /* it was left */
	end_part();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_is_set_moves_nothing_once_the_run_is_taken_over),
		cmocka_unit_test(no_wait_is_longer_than_until_the_next_limit),
		cmocka_unit_test(a_later_wake_takes_the_place_of_an_earlier_one),
		cmocka_unit_test(a_job_is_stopped_within_the_grace_of_the_plan),
		cmocka_unit_test(a_job_that_was_told_to_save_is_not_told_otherwise),
		cmocka_unit_test(an_event_is_numbered_behind_those_of_others),
		cmocka_unit_test(a_journal_that_fails_is_known_to),
		cmocka_unit_test(a_request_is_read_once_whatever_is_in_it),
		cmocka_unit_test(a_request_is_no_longer_than_64_kib),
		cmocka_unit_test(where_a_stop_is_known_or_late_nobody_looks),
		cmocka_unit_test(a_service_is_looked_at_once_a_minute),
		cmocka_unit_test(it_reaches_the_job_all_the_same),
		cmocka_unit_test(a_training_that_can_save_gets_the_time_first),
		cmocka_unit_test(what_cannot_save_is_stopped_at_once),
		cmocka_unit_test(a_stop_is_journalled_with_its_reason),
		cmocka_unit_test(a_stop_that_cannot_be_journalled_is_tried_again),
		cmocka_unit_test(who_was_taken_over_requests_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
