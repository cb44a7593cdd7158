/* What is said of a place that holds no journal of this program, in each mode of opening: never is
 * it taken for an empty one, and nothing is changed. See jobs/run/journal/journal.h. */
#include <sqlite3.h>
#include <sys/stat.h>

#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease_internal.h"
#include "tests/unit/checkpoint/trees.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-open-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static void assert_refused(const char *url, enum journal_mode mode, enum exit_code code,
			   const char *words)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(journal_open(url, mode, &journal, &err), -1);
	assert_null(journal);
	if (!strstr(err->message, words))
		fail_msg("%s", err->message);
	assert_int_equal(err->code, code);
}

/* Opens the place in every mode. */
static void assert_never(const char *url, enum exit_code code, const char *words)
{
	for (int mode = JOURNAL_READ; mode <= JOURNAL_SALVAGE; mode++)
		assert_refused(url, (enum journal_mode)mode, code, words);
}

static void make_journal(const char *scheme)
{
	AUTO(auto_free) char *url = mem_format("%s:%s", scheme, dir);
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = 1, .at = { 1 } };
	struct journal *journal = NULL;
	struct err *err = NULL;

	journal_open(url, JOURNAL_WRITE, &journal, &err);
	assert_no_error(err);
	assert_int_equal(journal_append(journal, "r", &ev, &err), 1);
	journal_freep(&journal);
}

static void a_name_that_names_no_place_is_misuse(void **state)
{
	AUTO(auto_free) char *unknown = mem_format("moon:%s", dir);

	(void)state;
	assert_never("", EXIT_USAGE, "--state or STOKER_STATE is empty");
	assert_never(unknown, EXIT_USAGE, "no such kind of state");
	assert_never("sqlite:", EXIT_USAGE, "no such kind of state");
}

static void a_bucket_that_has_no_name_is_named(void **state)
{
	(void)state;
	assert_never("s3://b/state", EXIT_REFUSED, "'s3://b/state' names no bucket");
}

static void without_a_home_a_name_is_asked_for(void **state)
{
	static const char *const names[] = { "STOKER_STATE", "XDG_STATE_HOME", "HOME" };
	char *before[STK_LENGTH(names)];

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		const char *value = getenv(names[i]);

		before[i] = value ? mem_copy(value) : NULL;
		unsetenv(names[i]);
	}
	assert_never(NULL, EXIT_REFUSED, "no place for state");
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		if (before[i])
			setenv(names[i], before[i], 1);
		free(before[i]);
	}
}

static void a_journal_of_another_kind_is_not_opened(void **state)
{
	static const char *const kinds[] = { "sqlite", "dir" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		AUTO(auto_free) char *url = mem_format("%s:%s", kinds[!i], dir);
		AUTO(auto_free)
		char *words = mem_format("a journal of the kind %s, not %s", kinds[i], kinds[!i]);

		make_journal(kinds[i]);
		assert_never(url, EXIT_REFUSED, words);
		drop(dir, "");
		assert_int_equal(mkdir(dir, 0700), 0);
	}
}

static void a_file_in_the_place_of_the_folder_is_named(void **state)
{
	AUTO(auto_free) char *file = fs_join(dir, "file");
	AUTO(auto_free) char *below = fs_join(file, "state");

	(void)state;
	put_text(dir, "file", "x");
	assert_refused(below, JOURNAL_WRITE, EXIT_REFUSED, "cannot make the state directory");
	assert_refused(file, JOURNAL_WRITE, EXIT_REFUSED, file);
}

/* ---- databases that are none ---- */

static char *database(void)
{
	return fs_join(dir, JOURNAL_SQLITE_FILE);
}

static void assert_damaged(const char *words)
{
	AUTO(auto_free) char *url = mem_format("sqlite:%s", dir);

	for (int mode = JOURNAL_READ; mode <= JOURNAL_WRITE; mode++) {
		AUTO(journal_freep) struct journal *journal = NULL;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(journal_open(url, (enum journal_mode)mode, &journal, &err), -1);
		if (!strstr(err->message, words))
			fail_msg("%s", err->message);
		assert_true(err->damage);
		assert_int_equal(err->code, EXIT_REFUSED);
	}
}

static void what_is_no_file_is_no_database(void **state)
{
	AUTO(auto_free) char *path = database();

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_damaged("not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0); /* opening it would wait */
	assert_damaged("not a regular file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(path, path), 0);
	assert_damaged("a link to itself");
}

static void what_is_no_file_is_no_log_of_a_database(void **state)
{
	static const char *const ends[] = { "-wal", "-shm" };

	(void)state;
	make_journal("sqlite");
	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		AUTO(auto_free) char *path = database();
		AUTO(auto_free) char *log = mem_format("%s%s", path, ends[i]);
		AUTO(auto_free) char *url = mem_format("sqlite:%s", dir);

		unlink(log);
		assert_int_equal(mkfifo(log, 0600), 0);
		assert_damaged("not a regular file");
		/* nor is it moved: it is somebody's */
		assert_refused(url, JOURNAL_SALVAGE, EXIT_REFUSED, "not a regular file");
		assert_int_equal(unlink(log), 0);
	}
}

static void a_database_that_lost_its_bytes_is_no_new_one(void **state)
{
	(void)state;
	put_text(dir, JOURNAL_SQLITE_FILE, "");
	put_text(dir, JOURNAL_SQLITE_FILE "-wal", "x");
	assert_damaged("empty, although its log is not");
	drop(dir, JOURNAL_SQLITE_FILE "-wal");
	put_text(dir, "runs/r/" LEASE_LOCK, "");
	assert_damaged("empty, although folders of 1 run lie beside it (r)");
	drop(dir, JOURNAL_SQLITE_FILE);
	put_text(dir, "runs/s/" LEASE_LOCK, "");
	{
		AUTO(auto_free) char *url = mem_format("sqlite:%s", dir);

		assert_refused(url, JOURNAL_READ, EXIT_REFUSED,
			       "not there, although folders of 2 runs lie beside it");
	}
}

static void foreign_bytes_are_no_database(void **state)
{
	char bytes[8192];

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	put_bytes(dir, JOURNAL_SQLITE_FILE, bytes, sizeof bytes);
	assert_damaged("file is not a database");
}

static void a_database_of_a_later_version_is_left_alone(void **state)
{
	AUTO(auto_free) char *path = database();
	AUTO(auto_free) char *url = mem_format("sqlite:%s", dir);
	sqlite3 *db = NULL;

	(void)state;
	make_journal("sqlite");
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_never(url, EXIT_REFUSED, "was written by a newer stoker (format 99)");
}

/* ---- runs by name ---- */

static void a_run_that_is_not_there_is_not_found(void **state)
{
	static const char *const refs[] = { "x", "", "@last", "../r" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(refs); i++) {
		AUTO(journal_freep) struct journal *journal = NULL;
		AUTO(err_freep) struct err *err = NULL;
		char run[JOURNAL_RUN_MAX];

		assert_int_equal(journal_open(dir, JOURNAL_WRITE, &journal, &err), 0);
		assert_int_equal(journal_resolve(journal, refs[i], run, &err), -1);
		assert_int_equal(err->code, EXIT_NOT_FOUND);
	}
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_name_that_names_no_place_is_misuse),
		OF(a_bucket_that_has_no_name_is_named),
		OF(without_a_home_a_name_is_asked_for),
		OF(a_journal_of_another_kind_is_not_opened),
		OF(a_file_in_the_place_of_the_folder_is_named),
		OF(what_is_no_file_is_no_database),
		OF(what_is_no_file_is_no_log_of_a_database),
		OF(a_database_that_lost_its_bytes_is_no_new_one),
		OF(foreign_bytes_are_no_database),
		OF(a_database_of_a_later_version_is_left_alone),
		OF(a_run_that_is_not_there_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
