/* The state of a driver from the events of a run: all of them, or the newest after a snapshot, with
 * the same result. See jobs/run/journal/replay.c. */
#include "jobs/run/driver_internal.h"

#include <sqlite3.h>

#include "tests/unit/run/journal_fixture.h"

#define EVENTS 1100 /* more than are read without a snapshot */

static void append(struct event *ev, int64_t seq)
{
	struct err *err = NULL;

	ev->seq = seq;
	ev->at = clock_utc_now();
	if (journal_append(journal, "r", ev, &err) < 0)
		fail_msg("event %d: %s", (int)seq, err->message);
}

/* Each kind of event of which a driver keeps something beside the flow. */
static void append_kind(int64_t seq)
{
	struct event ev = { .kind = EV_DRIVER_LEFT };

	if (seq == 1) {
		json_auto_t *plan = json_pack("{s:s, s:i, s:{s:i}}", "engine", "local", "nodes", 1,
					      "limits", "attempts", 7);

		ev.kind = EV_RUN_CREATED;
		EVENT_SET_STR(&ev, name, "n");
		EVENT_SET_STR(&ev, engine, "local");
		EVENT_SET(&ev, plan, plan);
		EVENT_SET_STR(&ev, plan_digest, "00");
		EVENT_SET(&ev, seed, 42);
		append(&ev, seq);
		return;
	}
	switch (seq) {
	case 2:
		ev.kind = EV_CHECKPOINT_REJECTED;
		EVENT_SET(&ev, attempt, 1);
		EVENT_SET(&ev, since, 1234);
		EVENT_SET_STR(&ev, url, "/c/1");
		EVENT_SET_STR(&ev, reason, "it is torn");
		break;
	case 3:
		ev.kind = EV_WORKER_LOST;
		EVENT_SET(&ev, phase, PHASE_TRAIN);
		EVENT_SET(&ev, attempt, 1);
		EVENT_SET(&ev, node, 0);
		EVENT_SET_STR(&ev, reason, "it died");
		break;
	case 4:
		ev.kind = EV_TRAIN_PROGRESS;
		EVENT_SET(&ev, attempt, 1);
		EVENT_SET(&ev, step, 5);
		break;
	case 5:
		ev.kind = EV_JOURNAL_SALVAGED;
		EVENT_SET_STR(&ev, requested, "enough");
		EVENT_SET_STR(&ev, reason, "event 6 is damaged");
		break;
	default:
		EVENT_SET(&ev, epoch, 1);
		EVENT_SET_STR(&ev, reason, "detached");
		break;
	}
	append(&ev, seq);
}

static void replay(struct driver *driver)
{
	struct err *err = NULL;

	*driver = (struct driver){ .run = "r", .journal = journal };
	if (replay_all(driver, &err) < 0)
		fail_msg("%s", err->message);
}

static void drop(struct driver *driver)
{
	json_decref(driver->plan);
}

static void assert_told(const struct driver *driver, int64_t seq)
{
	assert_int_equal(driver->seq, seq);
	assert_int_equal(driver->flow.seed, 42);
	assert_int_equal(driver->flow.policy.attempts, 7);
	assert_int_equal(js_int(json_object_get(driver->plan, "limits"), "attempts", 0), 7);
	assert_int_equal(driver->facts.passed_count, 1);
	assert_int_equal(driver->facts.passed_at, 1234);
	assert_true(driver->facts.worker_recorded);
	assert_true(driver->facts.stop_lost);
	assert_string_equal(driver->facts.lost_stop, "enough");
	assert_true(driver->progress_at.ms > 0);
}

/* The snapshot beside the journal, with one byte of it as it should not be; `at` from its end if
 * negative. */
static void damage_snapshot(ptrdiff_t at)
{
	AUTO(sb_release) struct sb kept = SB_INIT;
	struct err *err = NULL;
	int64_t seq;

	assert_int_equal(journal_kept(journal, "r", &seq, &kept, &err), 1);
	assert_true(seq > 0);
	kept.text[at < 0 ? (ptrdiff_t)kept.len + at : at] ^= 1;
	assert_true(journal_keep(journal, "r", seq, kept.text, kept.len, &err) >= 0);
}

static void a_snapshot_stands_for_the_events_before_it(void **state)
{
	struct driver driver;

	(void)state;
	for (int64_t seq = 1; seq <= EVENTS; seq++)
		append_kind(seq);
	replay(&driver); /* reads all, and keeps a snapshot */
	assert_told(&driver, EVENTS);
	assert_int_equal(driver.kept_seq, EVENTS);
	drop(&driver);
	append_kind(EVENTS + 1);
	append_kind(EVENTS + 2);
	replay(&driver); /* from the snapshot on, and too few to keep another one */
	assert_told(&driver, EVENTS + 2);
	assert_int_equal(driver.kept_seq, EVENTS);
	drop(&driver);
}

static void a_snapshot_that_is_not_whole_or_of_another_program_is_not_used(void **state)
{
	static const ptrdiff_t places[] = { 0, 8, 100, -1 };
	struct driver driver;

	(void)state;
	for (int64_t seq = 1; seq <= EVENTS; seq++)
		append_kind(seq);
	replay(&driver);
	drop(&driver);
	append_kind(EVENTS + 1);
	for (size_t i = 0; i < STK_LENGTH(places); i++) {
		damage_snapshot(places[i]);
		replay(&driver); /* reads all of it, so that a new snapshot is due */
		assert_told(&driver, EVENTS + 1);
		assert_int_equal(driver.kept_seq, EVENTS + 1);
		drop(&driver);
	}
}

/* The plan is in that event alone: a snapshot does not stand for it. */
static void event_1_that_is_damaged_is_not_replaced_by_a_snapshot(void **state)
{
	AUTO(auto_free) char *path = fs_join(dir, JOURNAL_SQLITE_FILE);
	AUTO(err_freep) struct err *err = NULL;
	struct driver driver;
	sqlite3 *db = NULL;

	(void)state;
	for (int64_t seq = 1; seq <= EVENTS; seq++)
		append_kind(seq);
	replay(&driver);
	drop(&driver);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "UPDATE event SET body='{' WHERE seq=1", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	driver = (struct driver){ .run = "r", .journal = journal };
	assert_int_equal(replay_all(&driver, &err), -1);
	assert_true(err->damage);
	assert_non_null(strstr(err->message, "event 1 of run r"));
	assert_null(driver.plan);
	assert_int_equal(driver.seq, 0);
}

static void a_snapshot_of_an_earlier_run_of_that_name_is_not_used(void **state)
{
	AUTO(sb_release) struct sb kept = SB_INIT;
	struct err *err = NULL;
	struct driver driver;
	struct event ev = { .kind = EV_RUN_CREATED };
	json_auto_t *plan = json_pack("{s:s}", "engine", "local");
	int64_t seq;

	for (seq = 1; seq <= EVENTS; seq++)
		append_kind(seq);
	replay(&driver);
	drop(&driver);
	assert_int_equal(journal_kept(journal, "r", &seq, &kept, &err), 1);
	tear_down(state);
	assert_int_equal(set_up(state), 0);
	EVENT_SET_STR(&ev, name, "n");
	EVENT_SET_STR(&ev, engine, "local");
	EVENT_SET(&ev, plan, plan);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 43);
	append(&ev, 1);
	assert_true(journal_keep(journal, "r", seq, kept.text, kept.len, &err) >= 0);
	replay(&driver);
	assert_int_equal(driver.seq, 1);
	assert_int_equal(driver.flow.seed, 43);
	assert_false(driver.facts.stop_lost);
	drop(&driver);
}

static void count(void *arg, const struct event *ev, json_t *row)
{
	(void)ev, (void)row;
	++*(int *)arg;
}

static void take_over(struct driver *driver, int64_t pid, int64_t seq)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER };
	struct err *err = NULL;
	char host[256] = "?";

	gethostname(host, sizeof host - 1);
	EVENT_SET_STR(&ev, host, host);
	EVENT_SET(&ev, pid, pid);
	EVENT_SET(&ev, epoch, driver->flow.epoch + 1);
	append(&ev, seq);
	assert_int_equal(replay_rest(driver, &err), 0);
}

static void a_live_driver_tells_its_own_takeover_from_that_of_another(void **state)
{
	int shown = 0;
	struct driver_options options = { .on_event = count, .arg = &shown };
	struct driver driver;

	(void)state;
	append_kind(1);
	replay(&driver);
	driver.options = &options;
	driver.live = true;
	take_over(&driver, getpid(), 2);
	assert_true(driver.took_over);
	assert_false(driver.stood_down);
	take_over(&driver, getpid() + 1, 3);
	assert_true(driver.stood_down);
	assert_int_equal(shown, 2);
	drop(&driver);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_snapshot_stands_for_the_events_before_it),
		TEST(a_snapshot_that_is_not_whole_or_of_another_program_is_not_used),
		TEST(event_1_that_is_damaged_is_not_replaced_by_a_snapshot),
		TEST(a_snapshot_of_an_earlier_run_of_that_name_is_not_used),
		TEST(a_live_driver_tells_its_own_takeover_from_that_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
