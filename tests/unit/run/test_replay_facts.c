/* What a driver keeps of each event beside the flow, what of it is in a snapshot, and when one is
 * kept; by clocks of the test's own. See jobs/run/journal/replay.c. */
#include "jobs/run/driver_internal.h"

#include "jobs/run/notify_queue.h"
#include "tests/unit/run/journal_fixture.h"

#define BEGAN_MS ((int64_t)1795000000000)

static int64_t mono_ms = 500000, utc_ms = BEGAN_MS;

struct mono __wrap_clock_mono_now(void);
struct utc __wrap_clock_utc_now(void);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ mono_ms };
}

struct utc __wrap_clock_utc_now(void)
{
	return (struct utc){ utc_ms };
}

static struct driver driver;
static struct driver_options options;

static struct event event_of(enum event_kind kind)
{
	return (struct event){ .kind = kind, .at = { utc_ms } };
}

static void append(const char *run, struct event *ev, int64_t seq)
{
	struct err *err = NULL;

	ev->seq = seq;
	if (journal_append(journal, run, ev, &err) < 0)
		fail_msg("event %d: %s", (int)seq, err->message);
}

static void append_created(const char *run)
{
	struct event ev = event_of(EV_RUN_CREATED);
	json_auto_t *plan = json_pack("{s:s, s:i, s:{s:i}}", "engine", "local", "nodes", 1,
				      "limits", "attempts", 7);

	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 42);
	append(run, &ev, 1);
}

static void replay(const char *run)
{
	struct err *err = NULL;

	json_decref(driver.plan);
	driver = (struct driver){ .run = run, .journal = journal, .options = &options };
	if (replay_all(&driver, &err) < 0)
		fail_msg("%s", err->message);
}

static int set_up_run(void **state)
{
	mono_ms = 500000;
	utc_ms = BEGAN_MS;
	driver = (struct driver){ 0 };
	if (set_up(state) < 0)
		return -1;
	append_created("r");
	replay("r");
	return 0;
}

static int tear_down_run(void **state)
{
	json_decref(driver.plan);
	return tear_down(state);
}

static void apply(enum event_kind kind)
{
	struct event ev = event_of(kind);

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, attempt, 1);
	replay_apply(&driver, &ev);
}

static void the_end_of_an_attempt_leaves_chores(void **state)
{
	static const struct {
		enum phase phase;
		int64_t exit; /* -1: not known */
		bool due, well;
	} rows[] = {
		{ PHASE_PRECOMPILE, 0, true, false },
		{ PHASE_TRAIN, 0, true, true },
		{ PHASE_TRAIN, 1, true, false },
		{ PHASE_TRAIN, -1, true, false },
	};
	static const enum event_kind ends[] = { EV_ATTEMPT_INTENDED, EV_CHORE_FAILED,
						EV_RUN_ENDED };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct event ev = event_of(EV_ATTEMPT_ENDED);

		driver.facts.owed = (struct owed){ .tries = 3, .went_well = !rows[i].well };
		EVENT_SET(&ev, phase, rows[i].phase);
		EVENT_SET(&ev, attempt, 2);
		if (rows[i].exit >= 0)
			EVENT_SET(&ev, exit, rows[i].exit);
		replay_apply(&driver, &ev);
		assert_int_equal(driver.facts.owed.due, rows[i].due);
		assert_int_equal(driver.facts.owed.phase, rows[i].phase);
		assert_int_equal(driver.facts.owed.attempt, 2);
		assert_int_equal(driver.facts.owed.went_well, rows[i].well);
		assert_int_equal(driver.facts.owed.tries, 0);
	}
	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		driver.facts.owed.due = true;
		apply(EV_DRIVER_LEFT);
		assert_true(driver.facts.owed.due);
		apply(ends[i]);
		assert_false(driver.facts.owed.due);
	}
}

static void a_silence_lasts_until_it_goes_on_or_another_begins(void **state)
{
	struct event ev = event_of(EV_ATTEMPT_STALLED);
	static const enum event_kind ends[] = { EV_ATTEMPT_WENT_ON, EV_ATTEMPT_INTENDED };

	(void)state;
	EVENT_SET(&ev, until, BEGAN_MS + 7);
	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		replay_apply(&driver, &ev);
		assert_int_equal(driver.facts.silent_until, BEGAN_MS + 7);
		apply(EV_DRIVER_LEFT);
		assert_int_equal(driver.facts.silent_until, BEGAN_MS + 7);
		apply(ends[i]);
		assert_int_equal(driver.facts.silent_until, 0);
	}
}

static void checkpoints_that_are_passed_over_are_counted(void **state)
{
	struct event ev = event_of(EV_CHECKPOINT_REJECTED);

	(void)state;
	EVENT_SET(&ev, since, 1234);
	replay_apply(&driver, &ev);
	assert_int_equal(driver.facts.passed_count, 1);
	assert_int_equal(driver.facts.passed_at, 1234);
	apply(EV_CHECKPOINT_REJECTED); /* its time is not known */
	assert_int_equal(driver.facts.passed_count, 2);
	assert_int_equal(driver.facts.passed_at, 1234);
	apply(EV_DRIVER_LEFT);
	assert_int_equal(driver.facts.passed_count, 2);
}

static void a_stop_in_the_damaged_part_is_lost_until_that_is_settled(void **state)
{
	struct event ev = event_of(EV_JOURNAL_SALVAGED);

	(void)state;
	replay_apply(&driver, &ev);
	assert_false(driver.facts.stop_lost);
	EVENT_SET_STR(&ev, requested, "enough");
	replay_apply(&driver, &ev);
	assert_true(driver.facts.stop_lost);
	assert_string_equal(driver.facts.lost_stop, "enough");
	apply(EV_DRIVER_LEFT);
	assert_true(driver.facts.stop_lost);
	apply(EV_JOURNAL_SETTLED);
	assert_false(driver.facts.stop_lost);
}

static void with_an_attempt_all_that_is_known_of_the_one_before_goes(void **state)
{
	struct event ev = event_of(EV_ATTEMPT_INTENDED);

	(void)state;
	apply(EV_TRAIN_CONTINUITY);
	assert_true(driver.facts.continuity_known);
	assert_false(driver.facts.worker_recorded);
	apply(EV_WORKER_LOST);
	assert_true(driver.facts.worker_recorded);
	apply(EV_TRAIN_PROGRESS);
	assert_true(driver.progress_at.ms > 0);
	driver.submitted = true;
	EVENT_SET(&ev, step, 30);
	replay_apply(&driver, &ev);
	assert_int_equal(driver.progress_at.ms, 0);
	assert_int_equal(driver.facts.resume_step, 30);
	assert_false(driver.facts.continuity_known);
	assert_false(driver.facts.worker_recorded);
	assert_false(driver.submitted);
	apply(EV_ATTEMPT_INTENDED); /* from scratch */
	assert_int_equal(driver.facts.resume_step, -1);
	apply(EV_DRIVER_LEFT);
	assert_false(driver.facts.continuity_known);
}

/* Another process may have seen it: its wall clock tells how long ago. */
static void progress_has_its_age_on_the_clock_of_this_process(void **state)
{
	static const int64_t rows[][2] = { { 0, 500000 }, /* just now */
					   { 400, 499600 }, { 499999, 1 },
					   { 500000, 0 },   { 700000, 0 }, /* before the boot */
					   { -400, 500000 } }; /* the other clock is ahead */

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct event ev = event_of(EV_TRAIN_PROGRESS);

		ev.at.ms -= rows[i][0];
		driver.progress_at.ms = -1;
		driver.seq_at.ms = 0;
		replay_apply(&driver, &ev);
		assert_int_equal(driver.progress_at.ms, rows[i][1]);
		assert_int_equal(driver.seq_at.ms, mono_ms);
	}
}

/* ---- snapshots ---- */

static bool is_kept(const char *run)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	struct err *err = NULL;
	int64_t seq = 0;

	return journal_kept(journal, run, &seq, &bytes, &err) > 0;
}

static void a_snapshot_is_kept_each_thousand_events(void **state)
{
	struct notify_message message = { 0 };
	struct notify pending = { .first = &message };

	(void)state;
	driver.seq = 2999;
	driver.kept_seq = 2000;
	replay_keep(&driver);
	assert_false(is_kept("r"));
	assert_int_equal(driver.kept_seq, 2000);
	driver.seq = 3000;
	driver.notify = &pending; /* it has no place in a snapshot */
	replay_keep(&driver);
	assert_false(is_kept("r"));
	assert_int_equal(driver.kept_seq, 2000);
	driver.notify = NULL;
	replay_keep(&driver);
	assert_true(is_kept("r"));
	assert_int_equal(driver.kept_seq, 3000);
}

static void what_a_snapshot_holds_is_there_after_a_boot(void **state)
{
	(void)state;
	for (int64_t seq = 2; seq <= 3; seq++) {
		struct event ev = event_of(EV_DRIVER_LEFT);

		EVENT_SET(&ev, epoch, 1);
		EVENT_SET_STR(&ev, reason, "detached");
		append("r", &ev, seq);
	}
	driver.seq = 3;
	driver.kept_seq = -2000;
	driver.progress_at.ms = mono_ms - 3000;
	driver.facts.passed_count = 5;
	driver.flow.epoch = 9;
	replay_keep(&driver);
	mono_ms = 10000; /* the machine has started anew since */
	utc_ms += 4000;
	replay("r");
	assert_int_equal(driver.seq, 3);
	assert_int_equal(driver.kept_seq, 3);
	assert_int_equal(driver.seq_at.ms, mono_ms);
	assert_int_equal(driver.progress_at.ms, 10000 - 7000);
	assert_int_equal(driver.facts.passed_count, 5);
	assert_int_equal(driver.flow.epoch, 9);
	assert_int_equal(js_int(json_object_get(driver.plan, "limits"), "attempts", -1), 7);
	/* none was recorded: that is kept, too */
	driver.kept_seq = -2000;
	driver.progress_at.ms = 0;
	replay_keep(&driver);
	driver.progress_at.ms = 1;
	replay("r");
	assert_int_equal(driver.progress_at.ms, 0);
	assert_int_equal(driver.facts.passed_count, 5);
}

static void a_snapshot_of_another_run_is_not_used(void **state)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	struct err *err = NULL;
	int64_t seq = 0;

	(void)state;
	append_created("s");
	driver.kept_seq = -2000;
	driver.facts.passed_count = 5;
	replay_keep(&driver);
	assert_int_equal(journal_kept(journal, "r", &seq, &bytes, &err), 1);
	assert_int_equal(journal_keep(journal, "s", 1, bytes.text, bytes.len, &err), 1);
	replay("s");
	assert_int_equal(driver.facts.passed_count, 0);
	assert_int_equal(driver.seq, 1);
	assert_int_equal(driver.kept_seq, 0);
	replay("r");
	assert_int_equal(driver.facts.passed_count, 5);
	/* nor one of no event, or of another size */
	assert_int_equal(journal_keep(journal, "r", 0, bytes.text, bytes.len, &err), 1);
	replay("r");
	assert_int_equal(driver.facts.passed_count, 0);
	assert_int_equal(journal_keep(journal, "r", 1, bytes.text, bytes.len - 1, &err), 1);
	replay("r");
	assert_int_equal(driver.facts.passed_count, 0);
}

/* ---- owner of a takeover ---- */

static int shown;

static void count(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)ev;
	assert_non_null(json_object_get(row, "event"));
	shown++;
}

static void a_takeover_is_our_own_by_process_host_and_epoch(void **state)
{
	char host[256] = "?";
	const struct {
		const char *host;
		int64_t pid, epoch;
		bool took_over, own;
	} rows[] = {
		{ host, getpid(), 1, false, true },        { host, getpid(), 2, false, false },
		{ "far-away", getpid(), 1, false, false }, { host, getpid() + 1, 1, false, false },
		{ host, getpid(), 1, true, false },
	};
	int64_t seq = 1;

	(void)state;
	gethostname(host, sizeof host - 1);
	options.on_event = count;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct event ev = event_of(EV_DRIVER_TOOK_OVER);
		struct err *err = NULL;

		EVENT_SET_STR(&ev, host, rows[i].host);
		EVENT_SET(&ev, pid, rows[i].pid);
		EVENT_SET(&ev, epoch, rows[i].epoch);
		append("r", &ev, ++seq);
		driver.flow.epoch = 0;
		driver.took_over = rows[i].took_over;
		driver.stood_down = false;
		driver.live = true;
		shown = 0;
		assert_int_equal(replay_rest(&driver, &err), 0);
		assert_int_equal(driver.took_over, rows[i].took_over || rows[i].own);
		assert_int_equal(driver.stood_down, !rows[i].own);
		assert_int_equal(shown, 1);
		assert_int_equal(driver.seq, seq);
	}
	/* what is read before it drives is nobody's news */
	shown = 0;
	replay("r");
	assert_false(driver.took_over);
	assert_false(driver.stood_down);
	assert_int_equal(shown, 0);
	assert_int_equal(driver.seq, seq);
	options.on_event = NULL;
}

/* A damaged run keeps nothing before its plan, and nothing of what was known before. */
static void what_is_left_is_applied_from_the_plan_on(void **state)
{
	struct event ev = event_of(EV_CHECKPOINT_REJECTED);
	struct event left = event_of(EV_DRIVER_LEFT);
	struct err *err = NULL;

	(void)state;
	EVENT_SET(&ev, attempt, 1);
	EVENT_SET(&ev, since, 99);
	EVENT_SET_STR(&ev, url, "/c/1");
	EVENT_SET_STR(&ev, reason, "it is torn");
	EVENT_SET(&left, epoch, 1);
	EVENT_SET_STR(&left, reason, "detached");
	append("r", &ev, 2);
	driver.flow.epoch = 9;
	assert_int_equal(replay_salvage(&driver, &err), 0);
	assert_int_equal(driver.facts.passed_count, 1);
	assert_int_equal(driver.flow.epoch, 0);
	assert_non_null(driver.plan);
	/* without it nothing is applied */
	append("t", &left, 1);
	append("t", &ev, 2);
	driver.run = "t";
	assert_int_equal(replay_salvage(&driver, &err), 0);
	assert_int_equal(driver.facts.passed_count, 1);
	assert_null(driver.plan);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up_run, tear_down_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(the_end_of_an_attempt_leaves_chores),
		OF(a_silence_lasts_until_it_goes_on_or_another_begins),
		OF(checkpoints_that_are_passed_over_are_counted),
		OF(a_stop_in_the_damaged_part_is_lost_until_that_is_settled),
		OF(with_an_attempt_all_that_is_known_of_the_one_before_goes),
		OF(progress_has_its_age_on_the_clock_of_this_process),
		OF(a_snapshot_is_kept_each_thousand_events),
		OF(what_a_snapshot_holds_is_there_after_a_boot),
		OF(a_snapshot_of_another_run_is_not_used),
		OF(a_takeover_is_our_own_by_process_host_and_epoch),
		OF(what_is_left_is_applied_from_the_plan_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
