/* A database of which a page cannot be read, on a disk that may be full: what is salvaged or
 * removed costs no other run anything. See jobs/run/journal/journal_sqlite_damage.c. */
#include "sqlite_fixture.h"

#define LONG 9000 /* bytes of a text that takes pages of its own */

static char *long_text(const char *begin)
{
	return mem_format("%s%*s", begin, LONG, ".");
}

/* Overwrites the first page of the database that holds these words. */
static void wipe_page(const char *words)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	const char *at;

	journal_freep(&journal);
	bytes = get_bytes(dir, JOURNAL_SQLITE_FILE);
	at = memmem(bytes.text, bytes.len, words, strlen(words));
	assert_non_null(at);
	memset(bytes.text + (at - bytes.text) / 4096 * 4096, 0xff, 4096);
	put_bytes(dir, JOURNAL_SQLITE_FILE, bytes.text, bytes.len);
}

/* Two runs, and a third one in between of which a page cannot be read. */
static void make_damage(void)
{
	static const char *const runs[] = { "a", "m", "z" };

	for (size_t i = 0; i < STK_LENGTH(runs); i++) {
		AUTO(auto_free) char *plan = long_text("plan");

		append(runs[i], 1, plan);
		for (int64_t seq = 2; seq <= 60; seq++) {
			AUTO(auto_free)
			char *text = mem_format("event %d of %s%*s", (int)seq, runs[i],
						seq < 6 ? LONG : 400, ".");

			append(runs[i], seq, text);
		}
	}
	wipe_page("event 40 of m");
	open_as(JOURNAL_WRITE);
}

/* The connection is a fresh one then, that no damage has made useless. */
static int64_t good_events(const char *run)
{
	AUTO(err_freep) struct err *damage = NULL;
	struct err *err = NULL;
	int64_t good = -1;

	journal_find_damage(journal, run, &good, &damage, &err);
	assert_no_error(err);
	assert_non_null(damage);
	assert_int_equal(journal_sqlite_heal(journal->store, &err), 0);
	return good;
}

static int64_t value_of(const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int64_t value;

	assert_int_equal(sqlite3_prepare_v2(connection(), sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

/* The file may grow by so many pages; negative: by any number. */
static void leave_room(int64_t pages)
{
	AUTO(auto_free)
	char *sql = mem_format("PRAGMA max_page_count=%lld",
			       pages < 0 ? 1000000LL
					 : (long long)(value_of("PRAGMA page_count") + pages));

	execute(connection(), sql);
}

static void assert_nothing_moved(int64_t good)
{
	assert_int_equal(value_of("SELECT count(*) FROM sqlite_master WHERE name LIKE 'damaged%'"),
			 0);
	assert_int_equal(good_events("m"), good);
	assert_events("a", 60);
	assert_events("z", 60);
}

/* Copies for want of readable pages need room: wherever that ends, all is as before. */
static void a_disk_that_is_full_costs_no_run_while_another_is_salvaged(void **state)
{
	AUTO(auto_free) char *words = long_text("much to say");
	AUTO(err_freep) struct err *err = NULL;
	int64_t good, room = 0;
	int result;

	(void)state;
	make_damage();
	good = good_events("m");
	assert_in_range(good, 20, 39);
	do {
		struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = { 1795000001000 } };

		EVENT_SET_STR(&ev, reason, words);
		leave_room(room++);
		result = journal_set_aside(journal, "m", good, &ev, &err);
		leave_room(-1);
		if (result == 0)
			break;
		assert_contains(err->hint, "free space");
		assert_failed(result, &err, EXIT_REFUSED, "disk is full");
		assert_nothing_moved(good);
	} while (room < 1000);
	assert_in_range(room, 30, 999);
	assert_int_equal(value_of("SELECT count(*) FROM damaged_1 WHERE run='a'"), 60);
	assert_events("m", (int)good + 1);
	assert_events("a", 60);
	assert_events("z", 60);
}

static void a_disk_that_is_full_costs_no_run_while_another_is_removed(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t good;

	(void)state;
	make_damage();
	good = good_events("m");
	for (int64_t room = 0; room < 40; room += 10) {
		int result;

		leave_room(room);
		result = journal_forget(journal, "m", &err);
		leave_room(-1);
		assert_contains(err->hint, "free space");
		assert_failed(result, &err, EXIT_REFUSED, "disk is full");
		assert_nothing_moved(good);
	}
	assert_int_equal(journal_forget(journal, "m", &err), 0);
	assert_events("m", 0);
	assert_events("a", 60);
	assert_events("z", 60);
}

static void a_table_is_set_aside_only_so_often(void **state)
{
	AUTO(sb_release) struct sb sql = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	int64_t good;

	(void)state;
	make_damage();
	good = good_events("m");
	sb_adds(&sql, "BEGIN;");
	for (int i = 1; i <= 1000; i++)
		sb_addf(&sql, "CREATE TABLE damaged_%d(x);", i);
	sb_adds(&sql, "COMMIT");
	execute(connection(), sql.text);
	set_aside_is(-1, "m", good, &err);
	assert_failed(-1, &err, EXIT_REFUSED, "has been damaged too often");
	assert_int_equal(good_events("m"), good);
	execute(connection(), "DROP TABLE damaged_7");
	set_aside_is(0, "m", good, &err);
	assert_events("m", (int)good + 1);
	assert_int_equal(value_of("SELECT count(*) FROM damaged_7 WHERE run='a'"), 60);
}

/* Refuses reads of the old table: the salvage cannot copy it, so it does not go on without it
 * either. */
static int refuse_old_table(void *arg, int action, const char *table, const char *column,
			    const char *of, const char *trigger)
{
	(void)arg, (void)column, (void)of, (void)trigger;
	return action == SQLITE_READ && strcmp(table, "damaged_1") == 0 ? SQLITE_DENY : SQLITE_OK;
}

static void what_cannot_be_copied_stays_where_it_is(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t good;

	(void)state;
	make_damage();
	good = good_events("m");
	sqlite3_set_authorizer(connection(), refuse_old_table, NULL);
	set_aside_is(-1, "m", good, &err);
	assert_failed(-1, &err, EXIT_REFUSED, "access to damaged_1.");
	sqlite3_set_authorizer(connection(), NULL, NULL);
	assert_nothing_moved(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_disk_that_is_full_costs_no_run_while_another_is_salvaged),
		OF(a_disk_that_is_full_costs_no_run_while_another_is_removed),
		OF(a_table_is_set_aside_only_so_often),
		OF(what_cannot_be_copied_stays_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
