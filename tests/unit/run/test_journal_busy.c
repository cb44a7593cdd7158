/* How long whoever writes to a database waits for a process that holds its lock, by a clock of the
 * test's own. See jobs/run/journal/journal_sqlite_open.c. */
#include "sqlite_fixture.h"

static int64_t clock_ms;
static int pauses;

struct mono __wrap_clock_mono_now(void);
bool __wrap_cancel_pause(int64_t ms);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ clock_ms };
}

bool __wrap_cancel_pause(int64_t ms)
{
	assert_int_equal(ms, 20);
	pauses++;
	clock_ms += ms;
	return true;
}

static sqlite3 *hold_lock(const char *how)
{
	sqlite3 *other = open_beside();

	execute(other, how);
	pauses = 0;
	return other;
}

static void release(sqlite3 *other)
{
	execute(other, "ROLLBACK");
	sqlite3_close(other);
}

static void assert_busy(int result, struct err **err)
{
	assert_int_equal(result, -1);
	assert_int_equal((*err)->code, EXIT_UNREACHABLE);
	assert_int_equal((*err)->os_errno, 0);
	assert_contains((*err)->message, "cannot ");
	assert_contains((*err)->message, "is locked");
	assert_contains((*err)->hint, "writing to the journal for 10 seconds");
	err_freep(err);
}

/* Once for long; then briefly, until it was free in between. */
static void a_lock_that_is_held_is_waited_for_once(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct sqlite_store *store = journal->store;
	sqlite3 *other;

	(void)state;
	append("r", 1, "x");
	other = hold_lock("BEGIN IMMEDIATE");
	assert_busy(try_to_append("r", 2, "y", &err), &err);
	assert_int_equal(pauses, 500);
	assert_true(store->was_busy);
	assert_false(store->sick);
	pauses = 0;
	assert_busy(try_to_append("r", 2, "y", &err), &err);
	assert_int_equal(pauses, 50);
	release(other);
	append("r", 2, "y");
	assert_false(store->was_busy);
	other = hold_lock("BEGIN IMMEDIATE");
	assert_busy(try_to_append("r", 3, "z", &err), &err);
	assert_int_equal(pauses, 500);
	release(other);
	/* a taken number is no lock */
	journal->at = (struct journal_position){ 0 };
	assert_int_equal(try_to_append("r", 2, "z", &err), 0);
	assert_false(store->was_busy);
}

static void a_new_database_is_waited_for_as_long(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	sqlite3 *other;

	(void)state;
	journal_freep(&journal);
	drop(dir, JOURNAL_SQLITE_FILE);
	other = hold_lock("CREATE TABLE x(y); BEGIN EXCLUSIVE");
	assert_busy(journal_open(dir, JOURNAL_WRITE, &journal, &err), &err);
	assert_int_equal(pauses, 500);
	release(other);
	open_as(JOURNAL_WRITE);
	append("r", 1, "x");
}

/* A reader waits as well, before it reads what is there. */
static void a_reader_waits_for_whoever_writes_it_anew(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	sqlite3 *other;

	(void)state;
	append("r", 1, "x");
	journal_freep(&journal);
	other = open_beside();
	execute(other, "PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE");
	pauses = 0;
	journal_open(dir, JOURNAL_READ, &journal, &err);
	assert_int_equal(pauses, 500);
	release(other);
	open_as(JOURNAL_READ);
	assert_events("r", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_lock_that_is_held_is_waited_for_once),
		OF(a_new_database_is_waited_for_as_long),
		OF(a_reader_waits_for_whoever_writes_it_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
