/* Where a journal is by what the user wrote or set, of which kind it is then, and what its files
 * may be read by: see jobs/run/journal/journal.h. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "jobs/run/journal/journal_internal.h"
#include "jobs/run/journal/journal_sqlite_internal.h"
#include "jobs/run/journal/lease_internal.h"
#include "tests/unit/checkpoint/trees.h"

static char dir[64];
static const char *const names[] = { "STOKER_STATE", "XDG_STATE_HOME", "HOME" };
static char *before[STK_LENGTH(names)];

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		const char *value = getenv(names[i]);

		before[i] = value ? mem_copy(value) : NULL;
		unsetenv(names[i]);
	}
	snprintf(dir, sizeof dir, "/tmp/stoker-place-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		if (before[i])
			setenv(names[i], before[i], 1);
		else
			unsetenv(names[i]);
		free(before[i]);
	}
	return fs_remove_tree(dir, &err);
}

static struct journal *open_at(const char *url, enum journal_mode mode)
{
	struct journal *journal = NULL;
	struct err *err = NULL;

	journal_open(url, mode, &journal, &err);
	assert_no_error(err);
	assert_non_null(journal);
	return journal;
}

static void assert_refused(const char *url, enum journal_mode mode, const char *words,
			   const char *hint)
{
	AUTO(err_freep) struct err *err = NULL;
	struct journal *journal = NULL;

	assert_int_equal(journal_open(url, mode, &journal, &err), -1);
	assert_null(journal);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_contains(err->message, words);
	if (hint)
		assert_contains(err->hint, hint);
}

/* Opened without a name it lies there. */
static void assert_default(const char *path)
{
	AUTO(journal_freep) struct journal *journal = open_at(NULL, JOURNAL_READ);

	assert_string_equal(journal_dir(journal), path);
	assert_string_equal(journal_url(journal), path);
	assert_false(journal_is_remote(journal));
	assert_null(journal_store(journal));
	assert_false(fs_exists(path)); /* a look makes nothing */
}

static void without_a_name_it_is_where_the_environment_says(void **state)
{
	AUTO(auto_free) char *of_state = fs_join(dir, "of-state");
	AUTO(auto_free) char *of_xdg = fs_join(dir, "xdg/stoker");
	AUTO(auto_free) char *xdg = fs_join(dir, "xdg");
	AUTO(auto_free) char *of_home = fs_join(dir, ".local/state/stoker");

	(void)state;
	setenv("HOME", dir, 1);
	assert_default(of_home);
	setenv("XDG_STATE_HOME", "relative", 1); /* which the standard ignores */
	assert_default(of_home);
	setenv("XDG_STATE_HOME", xdg, 1);
	assert_default(of_xdg);
	setenv("STOKER_STATE", of_state, 1);
	assert_default(of_state);
	{
		AUTO(journal_freep) struct journal *journal = open_at(dir, JOURNAL_READ);

		assert_string_equal(journal_dir(journal), dir);
	}
	unsetenv("STOKER_STATE");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "relative", 1);
	assert_refused(NULL, JOURNAL_WRITE, "no place for state: neither XDG_STATE_HOME nor HOME",
		       "--state DIR");
}

/* ---- kinds ---- */

static void assert_kind(const char *url, const struct journal_ops *ops)
{
	AUTO(journal_freep) struct journal *journal = open_at(url, JOURNAL_WRITE);

	assert_ptr_equal(journal->ops, ops);
	assert_int_equal(journal_store(journal) != NULL, ops == &journal_objects);
	assert_string_equal(journal_url(journal), journal_dir(journal));
}

static void a_name_has_its_kind_in_front_or_what_is_there_decides(void **state)
{
	AUTO(auto_free) char *plain = fs_join(dir, "plain");
	AUTO(auto_free) char *as_sqlite = mem_format("sqlite:%s/plain", dir);
	AUTO(auto_free) char *objects = fs_join(dir, "objects");
	AUTO(auto_free) char *as_dir = mem_format("dir:%s/objects", dir);
	AUTO(auto_free) char *colon = fs_join(dir, "a:b");

	(void)state;
	assert_kind(plain, &journal_sqlite);
	assert_kind(plain, &journal_sqlite);
	assert_kind(as_sqlite, &journal_sqlite);
	assert_kind(as_dir, &journal_objects);
	assert_kind(as_dir, &journal_objects);
	assert_kind(objects, &journal_objects);
	assert_kind(colon, &journal_sqlite); /* behind a slash it is part of a name */
	assert_true(fs_is_dir(colon));
	/* the database would be there before a mark is written beside it */
	put_text(plain, JOURNAL_DIR_MARK, "{\"v\":1,\"kind\":\"dir\"}");
	assert_kind(plain, &journal_sqlite);
}

static void another_kind_than_what_is_there_is_refused_with_a_cure(void **state)
{
	AUTO(auto_free) char *as_sqlite = mem_format("sqlite:%s", dir);
	AUTO(auto_free) char *as_dir = mem_format("dir:%s", dir);

	(void)state;
	assert_kind(as_dir, &journal_objects);
	assert_refused(as_sqlite, JOURNAL_READ, "holds a journal of the kind dir, not sqlite",
		       "omit 'sqlite:', or give another directory");
}

static void what_cannot_be_looked_into_is_not_empty(void **state)
{
	AUTO(auto_free) char *name = mem_zero(NAME_MAX + 2, 1);
	AUTO(auto_free) char *path = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct journal *journal = NULL;

	(void)state;
	memset(name, 'x', NAME_MAX + 1);
	path = fs_join(dir, name);
	for (int mode = JOURNAL_READ; mode <= JOURNAL_SALVAGE; mode++) {
		assert_int_equal(journal_open(path, (enum journal_mode)mode, &journal, &err), -1);
		assert_contains(err->message, "cannot look into the state directory '");
		assert_int_equal(err->os_errno, ENAMETOOLONG);
		err_freep(&err);
	}
	/* nor is a link to itself, of which opening tells more */
	{
		AUTO(auto_free) char *mark = fs_join(dir, JOURNAL_DIR_MARK);

		assert_int_equal(symlink(mark, mark), 0);
		assert_refused(dir, JOURNAL_READ, JOURNAL_DIR_MARK, "move '");
	}
}

/* A file instead of the folder, or of one above it, is no journal yet. */
static void a_file_in_the_way_reads_as_empty_and_is_not_written_to(void **state)
{
	AUTO(auto_free) char *below = fs_join(dir, "file/below");

	(void)state;
	put_text(dir, "file", "x");
	{
		AUTO(journal_freep) struct journal *journal = open_at(below, JOURNAL_READ);
		json_auto_t *runs = json_array();
		AUTO(sb_release) struct sb kept = SB_INIT;
		struct err *err = NULL;
		int64_t seq = 0, good = -1;
		struct err *damage = NULL;

		/* of nothing there is nothing */
		assert_int_equal(journal_runs(journal, runs, &err), 0);
		assert_int_equal(json_array_size(runs), 0);
		assert_int_equal(journal_read(journal, "r", 1, NULL, NULL, &err), 0);
		assert_int_equal(journal_salvage(journal, "r", NULL, NULL, &err), 0);
		assert_int_equal(journal_forget(journal, "r", &err), 0);
		assert_int_equal(journal_keep(journal, "r", 1, "x", 1, &err), 0);
		assert_int_equal(journal_kept(journal, "r", &seq, &kept, &err), 0);
		assert_int_equal(journal_find_damage(journal, "r", &good, &damage, &err), 0);
		assert_false(journal_first_is_kept(journal, "r"));
		assert_null(journal_appended(journal));
		assert_no_error(err);
	}
	assert_refused(below, JOURNAL_WRITE, "cannot make the state directory: ", "--state");
	assert_refused(below, JOURNAL_SALVAGE, "cannot make the state directory: ", "--state");
}

static void what_is_no_journal_is_freed(void **state)
{
	struct journal *none = NULL;

	(void)state;
	journal_freep(&none);
	assert_null(none);
}

/* ---- rights ---- */

static unsigned rights(const char *root, const char *name)
{
	AUTO(auto_free) char *path = fs_join(root, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void set_rights(const char *root, const char *name, mode_t mode)
{
	AUTO(auto_free) char *path = fs_join(root, name);

	assert_int_equal(chmod(path, mode), 0);
}

static void make_open_journal(const char *scheme)
{
	AUTO(auto_free) char *url = mem_format("%s:%s", scheme, dir);
	struct journal *journal = open_at(url, JOURNAL_WRITE);

	journal_freep(&journal);
	put_text(dir, "runs/r/x", "1");
	put_text(dir, "digests", "1");
	set_rights(dir, "", 0755);
	set_rights(dir, "runs", 0755);
	set_rights(dir, "digests", 0644);
	if (strcmp(scheme, "sqlite") == 0)
		set_rights(dir, JOURNAL_SQLITE_FILE, 0644);
}

static void whoever_writes_takes_the_rights_of_others_away(void **state)
{
	struct journal *journal;

	(void)state;
	make_open_journal("sqlite");
	journal = open_at(dir, JOURNAL_READ);
	journal_freep(&journal);
	assert_int_equal(rights(dir, ""), 0755);
	assert_int_equal(rights(dir, "runs"), 0755);
	journal = open_at(dir, JOURNAL_WRITE);
	journal_freep(&journal);
	assert_int_equal(rights(dir, ""), 0700);
	assert_int_equal(rights(dir, "runs"), 0700);
	assert_int_equal(rights(dir, "digests"), 0600);
	assert_int_equal(rights(dir, JOURNAL_SQLITE_FILE), 0600);
	/* a folder with foreign files keeps its own */
	set_rights(dir, "", 0755);
	set_rights(dir, "digests", 0640);
	put_text(dir, "foreign", "1");
	set_rights(dir, "foreign", 0644);
	journal = open_at(dir, JOURNAL_SALVAGE);
	journal_freep(&journal);
	assert_int_equal(rights(dir, ""), 0755);
	assert_int_equal(rights(dir, "digests"), 0600);
	assert_int_equal(rights(dir, "foreign"), 0644);
}

static void what_is_not_this_users_or_is_a_link_keeps_its_rights(void **state)
{
	AUTO(auto_free) char *link = fs_join(dir, "workspace");
	AUTO(auto_free) char *theirs = fs_join(dir, "digests");
	AUTO(auto_free) char *target = fs_join(dir, "runs/target");
	struct journal *journal;

	(void)state;
	make_open_journal("sqlite");
	put_text(dir, "runs/target", "1");
	set_rights(dir, "runs/target", 0644);
	assert_int_equal(symlink(target, link), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(theirs, 12345, 12345), 0);
	journal = open_at(dir, JOURNAL_WRITE);
	journal_freep(&journal);
	assert_int_equal(rights(dir, "runs/target"), 0644);
	if (geteuid() == 0)
		assert_int_equal(rights(dir, "digests"), 0644);
	assert_int_equal(rights(dir, ""), 0700);
}

/* Other machines and users may share it. */
static void a_folder_of_objects_keeps_its_rights(void **state)
{
	struct journal *journal;

	(void)state;
	make_open_journal("dir");
	journal = open_at(dir, JOURNAL_WRITE);
	journal_freep(&journal);
	assert_int_equal(rights(dir, ""), 0755);
	assert_int_equal(rights(dir, "runs"), 0755);
}

static void what_is_made_is_this_users_alone(void **state)
{
	AUTO(auto_free) char *new = fs_join(dir, "a/b");
	struct journal *journal;
	mode_t mask = umask(0);

	(void)state;
	journal = open_at(new, JOURNAL_WRITE);
	umask(mask);
	journal_freep(&journal);
	assert_int_equal(rights(dir, "a/b"), 0700);
	assert_int_equal(rights(new, JOURNAL_SQLITE_FILE), 0600);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(without_a_name_it_is_where_the_environment_says),
		OF(a_name_has_its_kind_in_front_or_what_is_there_decides),
		OF(another_kind_than_what_is_there_is_refused_with_a_cure),
		OF(what_cannot_be_looked_into_is_not_empty),
		OF(a_file_in_the_way_reads_as_empty_and_is_not_written_to),
		OF(what_is_no_journal_is_freed),
		OF(whoever_writes_takes_the_rights_of_others_away),
		OF(what_is_not_this_users_or_is_a_link_keeps_its_rights),
		OF(a_folder_of_objects_keeps_its_rights),
		OF(what_is_made_is_this_users_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
