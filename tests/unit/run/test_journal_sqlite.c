/* What the journal in SQLite says where the database refuses: what was journalled is still there
 * then, and what was asked works once it refuses no more. See jobs/run/journal/journal.h. */
#include "sqlite_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "jobs/base/process/cancel.h"
#include "jobs/run/request.h"

/* ---- another program ---- */

static int read_all(const char *run, struct err **err)
{
	int events = 0;

	journal->at = (struct journal_position){ 0 };
	return journal_read(journal, run, 1, count_event, &events, err);
}

static void a_database_without_its_events_is_not_taken_for_an_empty_one(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb kept = SB_INIT;
	json_auto_t *runs = json_array();
	int64_t seq;

	(void)state;
	append("r", 1, "x");
	put_text(dir, "runs/r/" LEASE_LOCK, "");
	open_as(JOURNAL_WRITE);
	change_beside("ALTER TABLE event RENAME TO mine");
	assert_int_equal(journal_kept(journal, "s", &seq, &kept, &err), 0); /* reads the tables */
	assert_failed(try_to_append("s", 1, "x", &err), &err, EXIT_REFUSED, "no such table: event");
	/* The database is not a new one either. */
	assert_failed(try_to_append("s", 1, "x", &err), &err, EXIT_REFUSED,
		      "without events, although folders of 1 run lie beside it (r)");
	assert_failed(journal_runs(journal, runs, &err), &err, EXIT_REFUSED,
		      "no such table: event");
	assert_failed(journal_forget(journal, "r", &err), &err, EXIT_REFUSED,
		      "no such table: event");
	change_beside("ALTER TABLE mine RENAME TO event");
	assert_events("r", 1);
}

static void a_reader_of_a_database_without_its_events_says_where_it_stopped(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	append("r", 1, "x");
	change_beside("ALTER TABLE event RENAME TO mine");
	assert_failed(read_all("r", &err), &err, EXIT_REFUSED,
		      "cannot read the journal of run r behind event 0: cannot read");
}

/* The store says that the event is there, and does not return it. */
static void a_stop_that_is_refused_for_an_event_that_is_not_there_is_an_error(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	enum request_result result;

	(void)state;
	append("r", 1, "x");
	change_beside("CREATE TRIGGER no BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'no');"
		      "END");
	assert_int_equal(request_stop(journal, "r", "enough", &result, &err), -1);
	assert_contains(err->message, "event 2 of run r");
	assert_contains(err->message, "can be neither written nor read");
	assert_contains(err->hint, "this store cannot be trusted");
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_events("r", 1);
}

/* A process that was stopped in the middle of a write holds the lock. */
static void while_another_process_writes_nothing_is_changed(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	enum request_result result;
	sqlite3 *other;

	(void)state;
	append("r", 1, "x");
	append("r", 2, "y");
	append("ended", 1, "x");
	assert_int_equal(journal_keep(journal, "ended", 1, "snapshot", 8, &err), 1);
	other = open_beside();
	execute(other, "BEGIN IMMEDIATE");
	sqlite3_busy_timeout(connection(), 0);
	assert_failed(try_to_append("r", 3, "z", &err), &err, EXIT_UNREACHABLE, "is locked");
	assert_failed(journal_keep(journal, "r", 2, "snapshot", 8, &err), &err, EXIT_UNREACHABLE,
		      "is locked");
	assert_int_equal(journal_forget(journal, "ended", &err), -1);
	assert_contains(err->hint, "another process has been writing to the journal");
	err_freep(&err);
	set_aside_is(-1, "r", 1, &err);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	err_freep(&err);
	execute(other, "ROLLBACK");
	sqlite3_close(other);
	assert_events("r", 2);
	assert_events("ended", 1);
	append("r", 3, "z");
	assert_int_equal(journal_forget(journal, "ended", &err), 0);
	assert_events("ended", 0);
	set_aside_is(0, "r", 1, &err);
	assert_events("r", 2);
	/* A stop that did not get in was not requested. */
	append("s", 1, "x");
	other = open_beside();
	execute(other, "BEGIN IMMEDIATE");
	sqlite3_busy_timeout(connection(), 0);
	assert_failed(request_stop(journal, "s", "enough", &result, &err), &err, EXIT_UNREACHABLE,
		      "is locked");
	execute(other, "ROLLBACK");
	sqlite3_close(other);
	assert_int_equal(request_stop(journal, "s", "enough", &result, &err), 0);
	assert_int_equal(result, REQUEST_APPENDED);
}

#define ASKED_MAX 50

static int asked;

/* The database becomes free at last for a process that waits on all the same. */
static bool is_told_to_end(void *other)
{
	if (++asked == ASKED_MAX)
		execute(other, "ROLLBACK");
	return true;
}

static void a_process_that_is_told_to_end_does_not_wait_for_a_database(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	sqlite3 *other;

	(void)state;
	journal_freep(&journal);
	drop(dir, JOURNAL_SQLITE_FILE);
	other = open_beside();
	execute(other, "CREATE TABLE x(y); BEGIN EXCLUSIVE");
	asked = 0;
	cancel_when(is_told_to_end, other);
	assert_failed(journal_open(dir, JOURNAL_WRITE, &journal, &err), &err, EXIT_UNREACHABLE,
		      "database is locked");
	execute(other, "ROLLBACK");
	sqlite3_close(other);
	cancel_when(NULL, NULL);
	open_as(JOURNAL_WRITE);
}

/* ---- files ---- */

static void a_copy_of_event_1_that_cannot_be_read_is_not_called_lost(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(err_freep) struct err *damage = NULL;
	int64_t good;

	(void)state;
	append("r", 1, "x");
	change_beside("DELETE FROM event");
	drop(dir, "runs/r/" JOURNAL_FIRST);
	put_text(dir, "runs/r/" JOURNAL_FIRST "/x", "");
	open_as(JOURNAL_WRITE);
	assert_failed(journal_find_damage(journal, "r", &good, &damage, &err), &err, EXIT_REFUSED,
		      JOURNAL_FIRST);
	assert_null(damage);
	set_aside_is(-1, "r", 0, &err);
	assert_contains(err->message, JOURNAL_FIRST);
	assert_null(strstr(err->message, "lost"));
	assert_false(err->damage);
}

static void a_file_that_cannot_be_moved_aside_is_named_and_moved_the_next_time(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb moved = SB_INIT;

	(void)state;
	append("r", 1, "x");
	journal_freep(&journal);
	put_text(dir, JOURNAL_SQLITE_FILE, "no database any more, whatever it was; long enough");
	put_text(dir, JOURNAL_SQLITE_FILE "-shm", "");
	put_text(dir, JOURNAL_SQLITE_FILE ".damaged-1-shm/x", "");
	assert_failed(journal_open(dir, JOURNAL_SALVAGE, &journal, &err), &err, EXIT_REFUSED,
		      "cannot rename '");
	open_as(JOURNAL_SALVAGE);
	moved = get_bytes(dir, JOURNAL_SQLITE_FILE ".damaged-1");
	assert_memory_equal(moved.text, "no database", 11);
}

static int fail_of_run(void *arg, const char *run, const char *head, struct err **err)
{
	(void)head;
	++*(int *)arg;
	return err_set(err, EXIT_REFUSED, "nothing more after %s", run);
}

static void a_list_of_runs_ends_where_its_reader_fails(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int seen = 0;

	(void)state;
	append("a", 1, "x");
	append("b", 1, "x");
	assert_failed(journal->ops->runs(journal->store, fail_of_run, &seen, &err), &err,
		      EXIT_REFUSED, "nothing more after a");
	assert_int_equal(seen, 1);
}

static void a_folder_that_has_gone_is_named(void **state)
{
	AUTO(auto_free) char *gone = fs_join(dir, "gone");
	AUTO(err_freep) struct err *err = NULL;
	void *store = NULL;

	(void)state;
	for (int mode = JOURNAL_WRITE; mode <= JOURNAL_SALVAGE; mode++) {
		assert_failed(journal_sqlite.open(gone, (enum journal_mode)mode, &store, &err),
			      &err, EXIT_REFUSED, "cannot write to the state directory '");
		assert_null(store);
		assert_false(fs_exists(gone));
	}
}

/* ---- limits of a process ---- */

/* Opens the journal with a limit on this resource; the signal of one is not taken. */
static int open_with_limit(enum __rlimit_resource resource, rlim_t limit, struct err **err)
{
	struct rlimit before, now;
	void (*taken)(int) = signal(SIGXFSZ, SIG_IGN);
	int result;

	assert_int_equal(getrlimit(resource, &before), 0);
	now = (struct rlimit){ limit, before.rlim_max };
	assert_int_equal(setrlimit(resource, &now), 0);
	result = journal_open(dir, JOURNAL_READ, &journal, err);
	assert_int_equal(setrlimit(resource, &before), 0);
	signal(SIGXFSZ, taken);
	return result;
}

static void a_reader_without_descriptors_says_so(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int next;

	(void)state;
	append("r", 1, "x");
	journal_freep(&journal);
	next = open("/", O_RDONLY | O_CLOEXEC);
	close(next);
	assert_failed(open_with_limit(RLIMIT_NOFILE, (rlim_t)next, &err), &err, EXIT_REFUSED,
		      "Too many open files");
	open_as(JOURNAL_READ);
	assert_events("r", 1);
}

/* The newest events of a writer that was killed are in the log alone. If neither its index nor a
 * copy can be made, they are not passed over. */
static void a_reader_without_room_for_a_copy_does_not_pass_events_over(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb log = SB_INIT;

	(void)state;
	append("r", 1, "x");
	open_as(JOURNAL_WRITE);
	append("r", 2, "y");
	log = get_bytes(dir, JOURNAL_SQLITE_FILE "-wal");
	assert_true(log.len > 0);
	{
		AUTO(sb_release) struct sb bytes = get_bytes(dir, JOURNAL_SQLITE_FILE);

		journal_freep(&journal);
		put_bytes(dir, JOURNAL_SQLITE_FILE, bytes.text, bytes.len);
		put_bytes(dir, JOURNAL_SQLITE_FILE "-wal", log.text, log.len);
	}
	assert_int_equal(open_with_limit(RLIMIT_FSIZE, 1024, &err), -1);
	assert_contains(err->message, "cannot copy '");
	assert_contains(err->hint, "set TMPDIR to a folder with free space");
	err_freep(&err);
	open_as(JOURNAL_READ);
	assert_events("r", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_database_without_its_events_is_not_taken_for_an_empty_one),
		OF(a_reader_of_a_database_without_its_events_says_where_it_stopped),
		OF(a_stop_that_is_refused_for_an_event_that_is_not_there_is_an_error),
		OF(while_another_process_writes_nothing_is_changed),
		OF(a_process_that_is_told_to_end_does_not_wait_for_a_database),
		OF(a_copy_of_event_1_that_cannot_be_read_is_not_called_lost),
		OF(a_file_that_cannot_be_moved_aside_is_named_and_moved_the_next_time),
		OF(a_list_of_runs_ends_where_its_reader_fails),
		OF(a_folder_that_has_gone_is_named),
		OF(a_reader_without_descriptors_says_so),
		OF(a_reader_without_room_for_a_copy_does_not_pass_events_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
