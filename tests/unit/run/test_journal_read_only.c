/* The journal in SQLite on a file system that cannot be written to: it is read as it is, with what
 * is only in its log. Needs root, for a mount of its own. See
 * jobs/run/journal/journal_sqlite_open.c. */
#include "sqlite_fixture.h"

#include <sched.h>
#include <sys/mount.h>

#include "jobs/run/journal/end_mark.h"

static char place[80], temp[80]; /* the folder of the journal, with signs of a URL in its name */

static void open_place(enum journal_mode mode)
{
	struct err *err = NULL;

	journal_freep(&journal);
	journal_open(place, mode, &journal, &err);
	assert_no_error(err);
}

static int set_up_place(void **state)
{
	if (set_up(state) < 0)
		return -1;
	snprintf(place, sizeof place, "%s/a?b#c%%41 d", dir);
	snprintf(temp, sizeof temp, "%s/temp", dir);
	if (mkdir(temp, 0700) < 0)
		return -1;
	open_place(JOURNAL_WRITE);
	put_text(place, "runs/r/" LEASE_LOCK, "");
	append("r", 1, "x");
	append("r", 2, "y");
	return 0;
}

/* Leaves the database as a killed writer does: event 3 is in the log alone, without its index. */
static void leave_log(void)
{
	AUTO(sb_release) struct sb log = SB_INIT;
	AUTO(sb_release) struct sb bytes = SB_INIT;

	open_place(JOURNAL_WRITE);
	append("r", 3, "z");
	log = get_bytes(place, JOURNAL_SQLITE_FILE "-wal");
	bytes = get_bytes(place, JOURNAL_SQLITE_FILE);
	journal_freep(&journal);
	put_bytes(place, JOURNAL_SQLITE_FILE, bytes.text, bytes.len);
	put_bytes(place, JOURNAL_SQLITE_FILE "-wal", log.text, log.len);
}

static int count_from(int64_t from, struct err **err)
{
	int events = 0;

	return journal_read(journal, "r", from, count_event, &events, err) < 0 ? -1 : events;
}

static bool is_copy(void)
{
	return ((struct sqlite_store *)journal->store)->is_copy;
}

#define CANNOT_MOUNT 77

/* Looks at it in a process of its own, where its file system can be read alone; 0: as it should
 * be. */
static void look(int (*fn)(void))
{
	pid_t child;
	int status;

	journal_freep(&journal);
	child = fork();
	if (child == 0) {
		struct err *err = NULL;

		setenv("TMPDIR", temp, 1);
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(place, place, NULL, MS_BIND, NULL) < 0 ||
		    mount(NULL, place, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
			_exit(CANNOT_MOUNT);
		if (journal_open(place, JOURNAL_READ, &journal, &err) < 0 && !journal) {
			fprintf(stderr, "%s\n", err->message);
			_exit(1);
		}
		_exit(fn());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MOUNT)
		skip();
	assert_int_equal(status, 0);
}

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "not so: %s\n", #condition);                               \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int has_two(void)
{
	struct err *err = NULL;
	json_t *runs = json_array();

	MUST(count_from(1, &err) == 2);
	MUST(is_copy());
	MUST(journal_runs(journal, runs, &err) == 0 && json_array_size(runs) == 1);
	return 0;
}

static void what_has_no_log_is_read_in_its_place(void **state)
{
	(void)state;
	look(has_two);
	put_text(place, JOURNAL_SQLITE_FILE "-wal", ""); /* empty, it holds nothing */
	look(has_two);
	assert_true(fs_is_dir(temp));
}

static int has_three(void)
{
	struct err *err = NULL;

	MUST(count_from(1, &err) == 3);
	MUST(is_copy());
	MUST(rmdir(temp) == 0); /* the copy has gone already */
	MUST(mkdir(temp, 0700) == 0);
	return 0;
}

static void what_is_in_the_log_is_read_from_a_copy(void **state)
{
	(void)state;
	leave_log();
	look(has_three);
}

/* More was written since the copy was made: only whoever reads from the start can tell that events
 * are missing. */
static int lacks_events(void)
{
	struct err *err = NULL;

	MUST(count_from(3, &err) == 0 && !err);
	journal->at = (struct journal_position){ 0 };
	MUST(count_from(1, &err) == -1);
	MUST(err->damage);
	MUST(strstr(err->message, "missing, like all later events, although 7 were written"));
	MUST(strstr(err->message, "event 3 of run r"));
	MUST(strstr(err->hint, "the file and its '-wal'"));
	return 0;
}

static void what_the_mark_knows_of_is_missed_from_the_start_alone(void **state)
{
	(void)state;
	end_mark_write(place, "r", 7);
	look(lacks_events);
}

static int without_temp(const char *value, const char *words)
{
	struct err *err = NULL;

	setenv("TMPDIR", value, 1);
	journal_freep(&journal);
	MUST(journal_open(place, JOURNAL_READ, &journal, &err) == -1);
	MUST(err->code == EXIT_REFUSED);
	MUST(strstr(err->message, words));
	MUST(strstr(err->hint, "set TMPDIR to a folder with free space"));
	return 0;
}

static int has_no_temp(void)
{
	struct err *err = NULL;

	MUST(without_temp("/proc/none", "cannot make a temporary folder '/proc/none/") == 0);
	/* A path that depends on where one stands is not meant. */
	setenv("TMPDIR", "none", 1);
	MUST(journal_open(place, JOURNAL_READ, &journal, &err) == 0);
	MUST(count_from(1, &err) == 3);
	return 0;
}

static void a_copy_needs_a_folder(void **state)
{
	(void)state;
	leave_log();
	look(has_no_temp);
}

#define PLACE(test) cmocka_unit_test_setup_teardown(test, set_up_place, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE(what_has_no_log_is_read_in_its_place),
		PLACE(what_is_in_the_log_is_read_from_a_copy),
		PLACE(what_the_mark_knows_of_is_missed_from_the_start_alone),
		PLACE(a_copy_needs_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
