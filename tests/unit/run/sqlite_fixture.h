/*
 * The journal of journal_fixture.h with the connection to its database, runs of long and short
 * texts, and another program that changes the database. For one file of tests each.
 */
#ifndef TEST_RUN_SQLITE_FIXTURE_H
#define TEST_RUN_SQLITE_FIXTURE_H

#include <sqlite3.h>

#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/journal_sqlite_internal.h"
#include "jobs/run/journal/lease_internal.h"
#include "tests/unit/checkpoint/trees.h"

#include "journal_fixture.h"

static inline char *database(void)
{
	return fs_join(dir, JOURNAL_SQLITE_FILE);
}

static inline sqlite3 *connection(void)
{
	return ((struct sqlite_store *)journal->store)->db;
}

static inline void open_as(enum journal_mode mode)
{
	struct err *err = NULL;

	journal_freep(&journal);
	journal_open(dir, mode, &journal, &err);
	assert_no_error(err);
}

/* `text`: of the plan in event 1, else the reason of a stop. */
static inline int try_to_append(const char *run, int64_t seq, const char *text, struct err **err)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = seq, .at = { 1795000000000 + seq } };
	json_auto_t *plan = json_pack("{s:s}", "engine", text);

	EVENT_SET_STR(&ev, reason, text);
	if (seq == 1) {
		ev = (struct event){ .kind = EV_RUN_CREATED, .seq = 1, .at = ev.at };
		EVENT_SET_STR(&ev, name, "n");
		EVENT_SET_STR(&ev, engine, "local");
		EVENT_SET(&ev, plan, plan);
		EVENT_SET_STR(&ev, plan_digest, "00");
		EVENT_SET(&ev, seed, 1);
	}
	return journal_append(journal, run, &ev, err);
}

static inline void append(const char *run, int64_t seq, const char *text)
{
	struct err *err = NULL;

	try_to_append(run, seq, text, &err);
	assert_no_error(err);
}

static inline int count_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev, (void)row, (void)err;
	++*(int *)arg;
	return 0;
}

/* All of its events can be read, and are so many. */
static inline void assert_events(const char *run, int count)
{
	struct err *err = NULL;
	int events = 0;

	journal_read(journal, run, 1, count_event, &events, &err);
	assert_no_error(err);
	assert_int_equal(events, count);
}

static inline void assert_failed(int result, struct err **err, enum exit_code code,
				 const char *words)
{
	assert_int_equal(result, -1);
	assert_contains((*err)->message, words);
	assert_int_equal((*err)->code, code);
	err_freep(err);
}

static inline void execute(sqlite3 *db, const char *sql)
{
	char *words = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
		fail_msg("%s: %s", sql, words);
}

static inline sqlite3 *open_beside(void)
{
	AUTO(auto_free) char *path = database();
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	return db;
}

static inline void change_beside(const char *sql)
{
	sqlite3 *db = open_beside();

	execute(db, sql);
	sqlite3_close(db);
}

static inline void set_aside_is(int want, const char *run, int64_t good, struct err **err)
{
	struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 1795000001000 } };

	EVENT_SET_STR(&ev, reason, "by a test");
	assert_int_equal(journal_set_aside(journal, run, good, &ev, err), want);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
