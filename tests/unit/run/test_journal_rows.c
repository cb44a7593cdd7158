/* The rows of the journal in SQLite: which are found, copied, kept and deleted, and what a failure
 * of the database is taken for. See jobs/run/journal/journal_sqlite_internal.h. */
#include "sqlite_fixture.h"

#include <errno.h>

#include "jobs/run/journal/end_mark.h"

static struct sqlite_store *store(void)
{
	return journal->store;
}

static int64_t value_of(const char *sql)
{
	char text[64];

	journal_sqlite_query(connection(), sql, text, sizeof text);
	return text[0] ? strtoll(text, NULL, 10) : -1;
}

static void make_folder_of(const char *run)
{
	AUTO(auto_free) char *lock = mem_format("runs/%s/" LEASE_LOCK, run);

	put_text(dir, lock, ""); /* as its driver leaves it */
}

static void the_next_event_is_the_first_from_a_number_on(void **state)
{
	static const int64_t rows[][2] = { { 1, 1 }, { 2, 2 }, { 3, 5 }, { 5, 5 }, { 6, 0 } };
	struct err *err = NULL;

	(void)state;
	for (int64_t seq = 1; seq <= 5; seq++)
		append("r", seq, "x");
	append("s", 1, "x");
	change_beside("DELETE FROM event WHERE seq IN (3, 4)");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		int64_t next = -7;

		assert_int_equal(journal->ops->next(store(), "r", rows[i][0], &next, &err),
				 rows[i][1] > 0);
		assert_no_error(err);
		assert_int_equal(next, rows[i][1] > 0 ? rows[i][1] : -7);
	}
}

static void a_copy_of_event_1_is_there_or_not(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	struct err *err = NULL;

	(void)state;
	assert_int_equal(journal->ops->first_kept(store(), "r", &text, &err), 0);
	make_folder_of("r");
	append("r", 1, "x");
	assert_int_equal(journal->ops->first_kept(store(), "r", &text, &err), 1);
	assert_no_error(err);
	assert_contains(text.text, "\"event\":\"run.created\"");
	assert_true(journal_first_is_kept(journal, "r"));
}

static void snapshots_are_bytes_and_events_are_text(void **state)
{
	AUTO(sb_release) struct sb kept = SB_INIT;
	struct err *err = NULL;
	int64_t seq = -7;

	(void)state;
	append("r", 1, "x");
	assert_int_equal(journal_kept(journal, "r", &seq, &kept, &err), 0);
	assert_int_equal(journal_keep(journal, "s", 4, "bytes", 5, &err), 1);
	assert_int_equal(journal_kept(journal, "r", &seq, &kept, &err), 0);
	assert_int_equal(seq, -7);
	assert_int_equal(kept.len, 0);
	assert_int_equal(journal_kept(journal, "s", &seq, &kept, &err), 1);
	assert_int_equal(seq, 4);
	assert_int_equal(value_of("SELECT count(*) FROM kept WHERE typeof(state)='blob'"), 1);
	assert_int_equal(value_of("SELECT count(*) FROM event WHERE typeof(body)='text'"), 1);
	assert_no_error(err);
}

/* ---- the mark of the end ---- */

static int read_run(const char *run, struct err **err)
{
	int events = 0;

	journal->at = (struct journal_position){ 0 };
	return journal_read(journal, run, 1, count_event, &events, err) < 0 ? -1 : events;
}

/* The event may be of before the salvage. */
static void behind_a_salvage_the_mark_of_the_end_does_not_count(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	make_folder_of("r");
	for (int64_t seq = 1; seq <= 4; seq++)
		append("r", seq, "x");
	assert_int_equal(end_mark_read(dir, "r"), 4);
	change_beside("UPDATE event SET body='{' WHERE seq=3");
	set_aside_is(0, "r", 2, &err);
	assert_int_equal(end_mark_read(dir, "r"), 3);
	end_mark_write(dir, "r", 9);
	assert_int_equal(read_run("r", &err), 3);
	append("r", 4, "x");
	end_mark_write(dir, "r", 9);
	assert_int_equal(read_run("r", &err), -1);
	assert_true(err->damage);
	assert_contains(err->message, "event 5 of run r");
	assert_contains(err->message, "missing, like all later events, although 9 were written");
	assert_contains(err->hint, "restore the file and its '-wal' from a copy");
	err_freep(&err);
	end_mark_write(dir, "r", 4);
	assert_int_equal(read_run("r", &err), 4);
	end_mark_write(dir, "r", 5);
	assert_int_equal(read_run("r", &err), -1);
}

static void a_run_without_rows_is_known_by_the_mark_of_its_end(void **state)
{
	json_auto_t *runs = json_array();
	struct err *err = NULL;

	(void)state;
	append("a", 1, "x");
	make_folder_of("lost");
	end_mark_write(dir, "lost", 3);
	make_folder_of("never-begun");
	journal_runs(journal, runs, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(runs), 2);
	assert_string_equal(json_string_value(json_array_get(runs, 0)), "lost"); /* of no time */
	assert_string_equal(json_string_value(json_array_get(runs, 1)), "a");
	/* with its mark its last trace goes */
	assert_int_equal(journal_forget(journal, "lost", &err), 0);
	assert_int_equal(end_mark_read(dir, "lost"), 0);
}

/* ---- failures ---- */

static void a_disk_that_is_full_makes_no_connection_useless(void **state)
{
	AUTO(auto_free) char *text = mem_format("%*s", 90000, ".");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	append("r", 1, "x");
	execute(connection(), "PRAGMA max_page_count=4");
	assert_int_equal(try_to_append("r", 2, text, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(err->os_errno, ENOSPC);
	assert_false(err->damage);
	assert_contains(err->hint, "free space on that file system");
	assert_false(store()->sick);
	assert_false(store()->was_busy);
}

static void a_reader_cannot_write(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	append("r", 1, "x");
	open_as(JOURNAL_READ);
	assert_int_equal(try_to_append("r", 2, "y", &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_contains(err->message, "readonly");
	assert_contains(err->hint, "make the folder writable, or choose another with --state");
	assert_true(store()->sick);
	/* and makes no new connection for it, which could */
	err_freep(&err);
	assert_int_equal(try_to_append("r", 2, "y", &err), -1);
	assert_contains(err->message, "readonly");
	assert_events("r", 1);
}

static void what_is_no_damage_has_no_such_cure(void **state)
{
	struct sqlite_store none = { .path = store()->path };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_null(journal_sqlite_prepare(store(), "SELECT * FROM nothing", "r", "read", &err));
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_false(err->damage);
	assert_contains(err->message, "cannot read '");
	assert_null(err->hint);
	assert_true(store()->sick);
	err_freep(&err);
	assert_int_equal(journal_sqlite_fail(&err, &none, "open"), -1);
	assert_contains(err->message, "out of memory");
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(err->os_errno, 0);
}

/* A connection that met an error is replaced by the next call; a database that has gone is not. */
static void a_sick_connection_is_replaced(void **state)
{
	AUTO(auto_free) char *path = database();
	AUTO(auto_free) char *aside = fs_join(dir, "aside");
	AUTO(err_freep) struct err *err = NULL;
	const sqlite3 *before = connection();

	(void)state;
	append("r", 1, "x");
	assert_int_equal(journal_sqlite_heal(store(), &err), 0);
	assert_ptr_equal(connection(), before);
	store()->sick = true;
	append("r", 2, "y");
	assert_false(store()->sick);
	store()->sick = true;
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(journal_sqlite_heal(store(), &err), -1);
	assert_contains(err->message, "cannot look at '");
	assert_int_equal(err->os_errno, ENOENT);
	assert_true(store()->sick);
	assert_false(fs_exists(path));
	err_freep(&err);
	put_text(dir, JOURNAL_SQLITE_FILE, "this is no database, and it is long enough to see so");
	assert_int_equal(journal_sqlite_heal(store(), &err), -1);
	assert_true(err->damage);
	assert_contains(err->hint, "stoker resume RUN --salvage");
	assert_true(store()->sick);
	err_freep(&err);
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(journal_sqlite_heal(store(), &err), 0);
	assert_false(store()->sick);
	assert_events("r", 2);
}

/* ---- tables that are set aside ---- */

static void a_run_that_is_set_aside_leaves_the_others_as_they_are(void **state)
{
	struct err *err = NULL;

	(void)state;
	make_folder_of("lost");
	end_mark_write(dir, "lost", 3); /* of which no row is there */
	for (int64_t seq = 1; seq <= 3; seq++) {
		append("a", seq, "x");
		append("b", seq, "x");
	}
	change_beside("UPDATE event SET body=CAST('x' AS BLOB) WHERE run='b' AND seq=2");
	assert_int_equal(journal_sqlite_set_aside(store(), "a", &err), 0);
	assert_no_error(err);
	assert_int_equal(value_of("SELECT count(*) FROM event WHERE run='a'"), 0);
	assert_int_equal(value_of("SELECT count(*) FROM damaged_1 WHERE run='a'"), 3);
	assert_int_equal(value_of("SELECT count(*) FROM event WHERE run='b'"), 3);
	assert_int_equal(value_of("SELECT count(*) FROM event WHERE typeof(body)='text'"), 4);
	/* it stays as damaged as it was */
	assert_int_equal(value_of("SELECT count(*) FROM event WHERE run='lost'"), 1);
	assert_int_equal(value_of("SELECT seq FROM event WHERE run='lost' AND body=''"), 1);
	/* the connection goes on */
	append("c", 1, "x");
	assert_int_equal(journal_sqlite_set_aside(store(), "b", &err), 0);
	assert_int_equal(value_of("SELECT count(*) FROM damaged_2 WHERE run='b'"), 3);
	assert_events("c", 1);
}

static void a_snapshot_goes_with_the_events_that_are_set_aside(void **state)
{
	AUTO(sb_release) struct sb kept = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	int64_t seq;

	(void)state;
	make_folder_of("r");
	for (int64_t n = 1; n <= 4; n++)
		append("r", n, "x");
	assert_int_equal(journal_keep(journal, "r", 4, "bytes", 5, &err), 1);
	assert_int_equal(journal_keep(journal, "s", 4, "bytes", 5, &err), 1);
	change_beside("UPDATE event SET body='{' WHERE seq=3");
	set_aside_is(0, "r", 2, &err);
	assert_int_equal(journal_kept(journal, "r", &seq, &kept, &err), 0);
	assert_int_equal(journal_kept(journal, "s", &seq, &kept, &err), 1);
	assert_events("r", 3);
	assert_int_equal(value_of("SELECT count(*) FROM sqlite_master WHERE name='damaged_1'"), 0);
}

static void what_is_set_aside_is_this_users_alone(void **state)
{
	AUTO(auto_free) char *name = damage_aside_name(3, "{", 1);
	AUTO(auto_free) char *path = mem_format("%s/runs/r/%s", dir, name);
	AUTO(auto_free) char *first = mem_format("%s/runs/r/" JOURNAL_FIRST, dir);
	AUTO(err_freep) struct err *err = NULL;
	mode_t mask = umask(0);
	int64_t count = -7;
	struct stat st;

	(void)state;
	make_folder_of("r");
	for (int64_t n = 1; n <= 5; n++)
		append("r", n, "x");
	change_beside("UPDATE event SET body='{' WHERE seq=3");
	assert_int_equal(journal->ops->put_aside(store(), "r", 2, &count, &err), 0);
	umask(mask);
	assert_int_equal(count, 3);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(first, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(journal->ops->put_aside(store(), "r", 5, &count, &err), 0);
	assert_int_equal(count, 0);
}

/* ---- files that are set aside ---- */

static bool is_lost_now;
static int asked;

static bool lost(struct sqlite_store *of)
{
	(void)of;
	asked++;
	return is_lost_now;
}

static void a_file_is_set_aside_under_the_first_free_name(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = database();

	(void)state;
	append("r", 1, "x");
	put_text(dir, JOURNAL_SQLITE_FILE ".damaged-1", "1");
	put_text(dir, JOURNAL_SQLITE_FILE ".damaged-2-wal", "1");
	is_lost_now = false; /* another process was first */
	assert_int_equal(journal_sqlite_move_aside(store(), lost, &err), 0);
	assert_true(fs_exists(path));
	is_lost_now = true;
	assert_int_equal(journal_sqlite_move_aside(store(), lost, &err), 1);
	assert_int_equal(asked, 2);
	assert_false(fs_exists(path));
	{
		AUTO(auto_free) char *moved = mem_format("%s.damaged-3", path);
		AUTO(auto_free) char *log = mem_format("%s.damaged-3-wal", path);
		AUTO(auto_free) char *own = mem_format("%s-wal", path);

		assert_true(fs_exists(moved));
		assert_true(fs_exists(log));
		assert_false(fs_exists(own));
	}
	/* where nothing is there any more nothing is moved */
	assert_int_equal(journal_sqlite_move_aside(store(), lost, &err), 1);
	free(store()->dir);
	store()->dir = mem_copy("/proc/none");
	assert_int_equal(journal_sqlite_move_aside(store(), lost, &err), -1);
	assert_contains(err->message, "cannot lock '/proc/none'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(the_next_event_is_the_first_from_a_number_on),
		OF(a_copy_of_event_1_is_there_or_not),
		OF(snapshots_are_bytes_and_events_are_text),
		OF(behind_a_salvage_the_mark_of_the_end_does_not_count),
		OF(a_run_without_rows_is_known_by_the_mark_of_its_end),
		OF(a_disk_that_is_full_makes_no_connection_useless),
		OF(a_reader_cannot_write),
		OF(what_is_no_damage_has_no_such_cure),
		OF(a_sick_connection_is_replaced),
		OF(a_run_that_is_set_aside_leaves_the_others_as_they_are),
		OF(a_snapshot_goes_with_the_events_that_are_set_aside),
		OF(what_is_set_aside_is_this_users_alone),
		OF(a_file_is_set_aside_under_the_first_free_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
