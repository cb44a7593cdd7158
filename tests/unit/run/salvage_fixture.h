/*
 * A run of five events and another one, on every kind of journal, and ways to damage the first. For
 * one file of tests each.
 */
#ifndef TEST_RUN_SALVAGE_FIXTURE_H
#define TEST_RUN_SALVAGE_FIXTURE_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease_internal.h"
#include "tests/unit/checkpoint/trees.h"

#define LAST 5

static const struct journal_ops *ops;
static char dir[64];
static struct journal *journal;

static inline struct journal *open_as(enum journal_mode mode, struct err **err)
{
	AUTO(auto_free) char *url = mem_format("%s:%s", ops->scheme, dir);
	struct journal *ret = NULL;

	return journal_open(url, mode, &ret, err) < 0 ? NULL : ret;
}

static inline void append(const char *run, int64_t seq, const char *reason)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = seq, .at = { 1795000000000 + seq } };
	json_auto_t *plan = json_object();
	struct err *err = NULL;

	EVENT_SET_STR(&ev, reason, reason);
	if (seq == 1) {
		ev = (struct event){ .kind = EV_RUN_CREATED, .seq = 1, .at = ev.at };
		EVENT_SET_STR(&ev, name, "n");
		EVENT_SET_STR(&ev, engine, "local");
		EVENT_SET(&ev, plan, plan);
		EVENT_SET_STR(&ev, plan_digest, "00");
		EVENT_SET(&ev, seed, 1);
	}
	journal_append(journal, run, &ev, &err);
	assert_no_error(err);
}

/* A run of five events, and another one. */
static inline int set_up(void **state)
{
	struct err *err = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-salvage-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	journal = open_as(JOURNAL_WRITE, &err);
	assert_no_error(err);
	put_text(dir, "runs/r/" LEASE_LOCK, ""); /* as its driver leaves it */
	for (int64_t seq = 1; seq <= LAST; seq++)
		append("r", seq, "a reason");
	append("other", 1, NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	journal_freep(&journal);
	return fs_remove_tree(dir, &err);
}

static inline void change_row(int64_t seq, const char *text)
{
	AUTO(auto_free) char *path = fs_join(dir, JOURNAL_SQLITE_FILE);
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db,
			   text ? "UPDATE event SET body=?2 WHERE run='r' AND seq=?1"
				: "DELETE FROM event WHERE run='r' AND seq=?1",
			   -1, &stmt, NULL);
	sqlite3_bind_int64(stmt, 1, seq);
	if (text)
		sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	assert_int_equal(sqlite3_changes(db), 1);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/* Writes the text in the place of an event; NULL: removes it. */
static inline void damage(int64_t seq, const char *text)
{
	AUTO(auto_free)
	char *path = mem_format("%s/runs/r/events/%012lld.json", dir, (long long)seq);

	if (ops == &journal_sqlite)
		change_row(seq, text);
	else if (!text)
		assert_int_equal(unlink(path), 0);
	else
		put_text("/", path + 1, text);
	/* what this process has read is proved no more */
	journal_freep(&journal);
	journal = open_as(JOURNAL_WRITE, &(struct err *){ NULL });
}

struct seen {
	int64_t seqs[64];
	int count, stop_at, fail_at; /* 0: never */
};

static inline int see(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct seen *seen = arg;

	(void)ev;
	seen->seqs[seen->count++] = js_int(row, "seq", -1);
	if (seen->count == seen->fail_at)
		return err_set(err, EXIT_REFUSED, "enough");
	return seen->count == seen->stop_at;
}

static inline void assert_whole(const char *run, int count)
{
	AUTO(err_freep) struct err *found = NULL;
	struct err *err = NULL;
	struct seen seen = { 0 };
	int64_t good = -1;

	assert_int_equal(journal_find_damage(journal, run, &good, &found, &err), 0);
	assert_no_error(err);
	journal_read(journal, run, 1, see, &seen, &err);
	assert_no_error(err);
	assert_int_equal(seen.count, count);
}

static inline void assert_bad_from(int64_t first_bad)
{
	AUTO(err_freep) struct err *found = NULL;
	AUTO(auto_free) char *words = mem_format("event %lld of run r", (long long)first_bad);
	struct err *err = NULL;
	int64_t good = -1;

	assert_int_equal(journal_find_damage(journal, "r", &good, &found, &err), 1);
	assert_no_error(err);
	assert_int_equal(good, first_bad - 1);
	assert_true(found->damage);
	assert_int_equal(found->code, EXIT_REFUSED);
	assert_non_null(strstr(found->message, words));
	assert_non_null(strstr(found->hint, "stoker resume r --salvage"));
}

static inline void assert_damaged(int64_t first_bad)
{
	assert_bad_from(first_bad);
	assert_whole("other", 1);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
