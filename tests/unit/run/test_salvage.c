/* Damage of a run's journal, on every kind: it is found, what is left is read, and once it is set
 * aside the run goes on. See jobs/run/journal/journal.h and damage.h. */
#include "salvage_fixture.h"

/* Returns how many were set aside. */
static int64_t set_aside(int64_t good)
{
	struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 1795000001000 } };
	struct err *err = NULL;

	EVENT_SET_STR(&ev, reason, "by a test");
	journal_set_aside(journal, "r", good, &ev, &err);
	assert_no_error(err);
	assert_int_equal(ev.seq, (good ? good : 1) + 1);
	assert_string_equal(js_str(journal_appended(journal), "event"), "journal.salvaged");
	assert_int_equal(js_int(journal_appended(journal), "put_aside", -1), ev.put_aside);
	return ev.put_aside;
}

/* The first bad event, and what is found in its place. */
static const char *const bad[] = { "", "{", "null", "{}", "\x01\x02" };

static void damage_is_found_and_ends_when_it_is_set_aside(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(bad); i++) {
		AUTO(auto_free) char *name = damage_aside_name(3, bad[i], strlen(bad[i]));
		AUTO(auto_free) char *folder = fs_join(dir, "runs/r");
		AUTO(sb_release) struct sb kept = SB_INIT;

		assert_whole("r", LAST);
		damage(3, bad[i]);
		assert_damaged(3);
		assert_int_equal(set_aside(2), LAST - 2);
		assert_whole("r", 3);
		assert_whole("other", 1);
		kept = get_bytes(folder, name);
		assert_int_equal(kept.len, strlen(bad[i]));
		assert_memory_equal(kept.text ? kept.text : "", bad[i], kept.len);
		for (int64_t seq = 4; seq <= LAST; seq++)
			append("r", seq, "again");
	}
}

/* A gap is damage of the first event that is missing; what lies behind it is kept. */
static void a_gap_is_damage(void **state)
{
	(void)state;
	damage(3, NULL);
	assert_damaged(3);
	assert_int_equal(set_aside(2), LAST - 3);
	assert_whole("r", 3);
}

static void another_text_of_an_event_is_damage(void **state)
{
	struct seen seen = { 0 };
	struct err *err = NULL;

	(void)state;
	damage(3, "{\"v\":1,\"run\":\"r\",\"seq\":3,\"at\":\"2026-11-21T11:36:00.123Z\","
		  "\"event\":\"request.stop\",\"reason\":\"x\",\"sum\":\"00\"}");
	assert_int_equal(journal_read(journal, "r", 1, see, &seen, &err), -1);
	assert_int_equal(seen.count, 2);
	err_freep(&err);
	assert_damaged(3);
}

/* The next event would be chained to it. */
static void nothing_is_appended_behind_a_damaged_event(void **state)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = LAST + 1, .at = { 1795000001000 } };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	damage(LAST, "{");
	assert_int_equal(journal_append(journal, "r", &ev, &err), -1);
	assert_true(err->damage);
	assert_non_null(strstr(err->message, "event 5 of run r"));
	assert_damaged(LAST);
	assert_int_equal(set_aside(LAST - 1), 1);
	assert_whole("r", LAST);
}

static void what_is_left_is_read_without_proof(void **state)
{
	struct seen seen = { 0 }, some = { .stop_at = 2 }, few = { .fail_at = 3 };
	struct err *err = NULL;

	(void)state;
	damage(3, "{");
	assert_int_equal(journal_salvage(journal, "r", see, &seen, &err), 0);
	assert_int_equal(seen.count, LAST - 1);
	for (int i = 0; i < seen.count; i++)
		assert_int_equal(seen.seqs[i], i + 1 + (i >= 2));
	assert_int_equal(journal_salvage(journal, "r", see, &some, &err), 0);
	assert_int_equal(some.count, 2);
	assert_int_equal(journal_salvage(journal, "r", see, &few, &err), -1);
	assert_int_equal(few.count, 3);
	assert_string_equal(err->message, "enough");
	err_freep(&err);
}

/* The copy holds the plan, without which nothing could go on. */
static void event_1_comes_back_from_its_copy(void **state)
{
	(void)state;
	assert_true(journal_first_is_kept(journal, "r"));
	damage(1, "{");
	assert_damaged(1);
	assert_int_equal(set_aside(0), LAST);
	assert_whole("r", 2);
	damage(1, NULL);
	damage(2, NULL);
	assert_damaged(1);
	assert_int_equal(set_aside(0), 0);
	assert_whole("r", 2);
}

static void without_event_1_and_its_copy_nothing_goes_on(void **state)
{
	static const char *const copies[] = { NULL, "{", "{}" };

	(void)state;
	damage(1, "{");
	for (size_t i = 0; i < STK_LENGTH(copies); i++) {
		struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 1795000001000 } };
		AUTO(err_freep) struct err *err = NULL;

		drop(dir, "runs/r/" JOURNAL_FIRST);
		if (copies[i])
			put_text(dir, "runs/r/" JOURNAL_FIRST, copies[i]);
		EVENT_SET_STR(&ev, reason, "by a test");
		assert_int_equal(journal_set_aside(journal, "r", 0, &ev, &err), -1);
		assert_non_null(strstr(err->message, "and so is the copy of it"));
		assert_non_null(strstr(err->hint, "stoker rm r"));
		assert_true(err->damage);
	}
	assert_damaged(1);
}

/* Nothing is removed as long as the bytes cannot be kept. */
static void what_cannot_be_kept_is_not_removed(void **state)
{
	struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 1795000001000 } };
	AUTO(err_freep) struct err *err = NULL;
	struct seen seen = { 0 };

	(void)state;
	damage(3, "{");
	put_text(dir, "runs/r/damaged", "in the way");
	EVENT_SET_STR(&ev, reason, "by a test");
	assert_int_equal(journal_set_aside(journal, "r", 2, &ev, &err), -1);
	assert_non_null(strstr(err->message, "cannot set aside what is damaged of run r"));
	err_freep(&err);
	assert_damaged(3);
	assert_int_equal(journal_salvage(journal, "r", see, &seen, &err), 0);
	assert_int_equal(seen.count, LAST - 1);
	drop(dir, "runs/r/damaged");
	assert_int_equal(set_aside(2), LAST - 2);
	assert_whole("r", 3);
}

/* The file that says what kind of journal it is has no bytes any more, or others. */
static void a_store_that_is_none_any_more_is_set_aside_when_asked(void **state)
{
	const char *name = ops == &journal_sqlite ? JOURNAL_SQLITE_FILE : JOURNAL_DIR_MARK;
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	journal_freep(&journal);
	assert_int_equal(truncate(path, 0), 0);
	assert_null(open_as(JOURNAL_WRITE, &err));
	assert_true(err->damage);
	assert_non_null(strstr(err->message, name));
	err_freep(&err);
	journal = open_as(JOURNAL_SALVAGE, &err);
	assert_no_error(err);
	/* the runs of a directory are there yet; those of a database have their first event */
	if (ops == &journal_objects) {
		assert_whole("r", LAST);
		return;
	}
	assert_bad_from(1);
	set_aside(0);
	assert_whole("r", 2);
}

/* ---- salvage of one kind of journal ---- */

/* The drivers of its other runs write to it. */
static void a_database_is_not_set_aside_under_a_driver(void **state)
{
	AUTO(auto_free) char *path = fs_join(dir, JOURNAL_SQLITE_FILE);
	struct lease *lease = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	assert_int_equal(lease_try(journal, "other", NULL, &lease, &wait_ms, &err), 1);
	assert_int_equal(truncate(path, 0), 0);
	assert_null(open_as(JOURNAL_SALVAGE, &err));
	assert_int_equal(err->code, EXIT_BUSY);
	assert_non_null(strstr(err->message, "while run other is being driven"));
	assert_non_null(err->hint);
	err_freep(&err);
	lease_freep(&lease);
	journal_freep(&journal);
	journal = open_as(JOURNAL_SALVAGE, &err);
	assert_no_error(err);
}

/* Nothing is moved where it cannot be told what it is. */
static void a_file_in_the_place_of_all_events_is_named_and_left(void **state)
{
	AUTO(auto_free) char *events = fs_join(dir, "runs/r/events");
	struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 1795000001000 } };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(fs_remove_tree(events, &err), 0);
	put_text(dir, "runs/r/events", "1");
	EVENT_SET_STR(&ev, reason, "by a test");
	assert_int_equal(journal_set_aside(journal, "r", 0, &ev, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, "runs/r/events"));
	assert_true(fs_exists(events));
}

static void a_folder_in_the_place_of_an_event_is_moved_as_it_is(void **state)
{
	(void)state;
	damage(3, NULL);
	put_text(dir, "runs/r/events/000000000003.json/x", "1");
	assert_damaged(3);
	assert_int_equal(set_aside(2), LAST - 1);
	assert_whole("r", 3);
	{
		AUTO(sb_release)
		struct sb kept = get_bytes(dir, "runs/r/damaged/000000000003-obstacle/x");

		assert_int_equal(kept.len, 1);
	}
}

/* Overwrites the page of the database that holds these words. */
static void wipe_page(const char *words)
{
	AUTO(auto_free) char *path = fs_join(dir, JOURNAL_SQLITE_FILE);
	AUTO(sb_release) struct sb bytes = get_bytes(dir, JOURNAL_SQLITE_FILE);
	const char *at = memmem(bytes.text, bytes.len, words, strlen(words));

	assert_non_null(at);
	memset(bytes.text + (at - bytes.text) / 4096 * 4096, 0xff, 4096);
	put_bytes("/", path + 1, bytes.text, bytes.len);
}

static void a_page_that_cannot_be_read_costs_no_other_run(void **state)
{
	char reason[500];
	struct err *err = NULL;

	(void)state;
	for (int64_t seq = LAST + 1; seq <= 60; seq++) {
		snprintf(reason, sizeof reason, "reason-%02d-%400s", (int)seq, "x");
		append("r", seq, reason);
	}
	journal_freep(&journal);
	wipe_page("reason-40-");
	journal = open_as(JOURNAL_WRITE, &err);
	assert_no_error(err);
	{
		AUTO(err_freep) struct err *found = NULL;
		struct seen seen = { 0 };
		int64_t good = -1;

		assert_int_equal(journal_find_damage(journal, "r", &good, &found, &err), 1);
		assert_true(good > LAST && good < 40);
		seen.stop_at = LAST;
		assert_int_equal(journal_salvage(journal, "r", see, &seen, &err), 0);
		assert_int_equal(seen.seqs[LAST - 1], LAST);
		set_aside(good);
		assert_whole("r", (int)good + 1);
	}
	assert_whole("other", 1);
}

#define OF_ALL                                                                                     \
	OF(damage_is_found_and_ends_when_it_is_set_aside), OF(a_gap_is_damage),                    \
		OF(another_text_of_an_event_is_damage),                                            \
		OF(nothing_is_appended_behind_a_damaged_event),                                    \
		OF(what_is_left_is_read_without_proof), OF(event_1_comes_back_from_its_copy),      \
		OF(without_event_1_and_its_copy_nothing_goes_on),                                  \
		OF(what_cannot_be_kept_is_not_removed),                                            \
		OF(a_store_that_is_none_any_more_is_set_aside_when_asked)

int main(void)
{
	const struct CMUnitTest in_objects[] = {
		OF_ALL, OF(a_folder_in_the_place_of_an_event_is_moved_as_it_is),
		OF(a_file_in_the_place_of_all_events_is_named_and_left)
	};
	const struct CMUnitTest in_a_database[] = {
		OF_ALL, OF(a_page_that_cannot_be_read_costs_no_other_run),
		OF(a_database_is_not_set_aside_under_a_driver)
	};
	int failed = 0;

	ops = &journal_objects;
	failed += cmocka_run_group_tests(in_objects, NULL, NULL);
	ops = &journal_sqlite;
	failed += cmocka_run_group_tests(in_a_database, NULL, NULL);
	return failed;
}
