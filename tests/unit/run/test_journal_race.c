/* What another process does during a look at a journal is no damage. The linker leads the second of
 * two looks to this file (tests/CMakeLists.txt), so that the other process is always in time. */
#include "jobs/run/journal/end_mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/journal/journal.h"
#include "jobs/store/store.h"

static char dir[64];
static struct journal *writer;
static int64_t appended, to_append;

int64_t __real_end_mark_read(const char *state_dir, const char *run);
int64_t __wrap_end_mark_read(const char *state_dir, const char *run);

static void append(const char *run)
{
	struct event ev = { .kind = EV_REQUEST_STOP, .seq = ++appended, .at = { 5000 } };
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(journal_append(writer, run, &ev, &err), 1);
}

int64_t __wrap_end_mark_read(const char *state_dir, const char *run)
{

	if (to_append > 0) {
		to_append--;
		append(run);
	}
	return __real_end_mark_read(state_dir, run);
}

static int note_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	*(int64_t *)arg = ev->seq;
	return 0;
}

/* Reads begin where nothing new was, and at the beginning. */
static void what_is_appended_during_a_look_is_read(void **state)
{
	AUTO(journal_freep) struct journal *reader = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *folder = mem_format("%s/runs/r1", dir);
	int64_t seen = 0;

	(void)state;
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &writer, &err), 0);
	assert_int_equal(fs_mkdirs(folder, &err), 0); /* the mark's */
	append("r1");
	append("r1");
	assert_int_equal(journal_open(dir, JOURNAL_READ, &reader, &err), 0);
	assert_int_equal(journal_read(reader, "r1", 1, note_event, &seen, &err), 0);
	to_append = 3;
	assert_int_equal(journal_read(reader, "r1", 3, note_event, &seen, &err), 0);
	assert_int_equal(seen, 5);
	to_append = 3;
	assert_int_equal(journal_read(reader, "r1", 1, note_event, &seen, &err), 0);
	assert_int_equal(seen, 8);
	assert_int_equal(to_append, 0);
	journal_freep(&writer);
}

/* ---- a journal that is begun ---- */

static bool begins;

int __real_store_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
			 struct err **err);
int __wrap_store_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
			 struct err **err);

static void begin_journal(const char *url)
{
	AUTO(err_freep) struct err *err = NULL;

	begins = false;
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &writer, &err), 0);
	appended = 0;
	append("r1");
	journal_freep(&writer);
}

int __wrap_store_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
			 struct err **err)
{
	AUTO(auto_free) char *url = mem_format("dir:%s", dir);

	if (begins)
		begin_journal(url);
	return __real_store_folders(store, prefix, fn, arg, err);
}

static void who_comes_second_does_not_take_the_beginning_for_damage(void **state)
{
	AUTO(auto_free) char *url = mem_format("dir:%s", dir);
	AUTO(journal_freep) struct journal *second = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int64_t seen = 0;

	(void)state;
	begins = true;
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &second, &err), 0);
	assert_false(begins);
	assert_int_equal(journal_read(second, "r1", 1, note_event, &seen, &err), 0);
	assert_int_equal(seen, 1);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-end-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_appended_during_a_look_is_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			who_comes_second_does_not_take_the_beginning_for_damage, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
