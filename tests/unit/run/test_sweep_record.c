/* The record of a sweep: what it holds, what may change, and where it is kept. */
#include "journal_fixture.h"

#include <sys/stat.h>

#include "jobs/run/sweep/sweep_record.h"

static json_t *sweep_of(int64_t repeat, bool on_best, const char *last)
{
	return json_pack("{s:s, s:I, s:I, s:b, s:[{s:s, s:[]}, {s:s, s:[s]}]}", "kind", "ladder",
			 "repeat", (json_int_t)repeat, "parallel", (json_int_t)2, "on_best",
			 (int)on_best, "cells", "name", "the spec as it is", "sets", "name", "b",
			 "sets", last);
}

static json_t *record_of(const char *id, int64_t repeat, bool on_best)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *sweep = sweep_of(repeat, on_best, "env.X=1");
	json_auto_t *plan = json_pack("{s:s, s:s}", "name", "m5", "spec_file", "/x/stoker.yaml");
	json_t *record = NULL;

	assert_int_equal(sweep_record_make(id, sweep, plan, "abc", &record, &err), 0);
	return record;
}

static void test_made(void **state)
{
	json_auto_t *record = record_of("s", 2, false);
	const json_t *cells = json_object_get(record, "cells");
	const json_t *second = json_array_get(cells, 1);
	json_auto_t *ids = json_pack("[s, s]", "s-2-1", "s-2-2");

	(void)state;
	assert_int_equal(json_array_size(cells), 2);
	assert_true(json_equal(json_object_get(second, "runs"), ids));
	assert_true(json_equal(json_object_get(second, "sets"), json_object_get(second, "own")));
	assert_string_equal(js_str(record, "base"), "abc");
	assert_null(json_object_get(record, "cost"));
}

/* Only the first cell on top of the best is known before anything has run. */
static void test_open_cells(void **state)
{
	json_auto_t *record = record_of("s", 1, true);
	const json_t *cells = json_object_get(record, "cells");

	(void)state;
	assert_non_null(json_object_get(json_array_get(cells, 0), "sets"));
	assert_null(json_object_get(json_array_get(cells, 1), "sets"));
}

static void test_long_id(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *sweep = sweep_of(1, false, "env.X=1"), *plan = json_object();
	json_auto_t *record = NULL;
	char id[JOURNAL_RUN_MAX];

	(void)state;
	memset(id, 'x', sizeof id);
	id[36] = '\0'; /* and "-2-1" are 40 */
	assert_int_equal(sweep_record_make(id, sweep, plan, "abc", &record, &err), 0);
	json_decref(TAKE(record));
	id[36] = 'x';
	id[37] = '\0';
	assert_int_equal(sweep_record_make(id, sweep, plan, "abc", &record, &err), -1);
	assert_int_equal(err->code, EXIT_USAGE);
	assert_non_null(err->hint);
}

/* Returns the exit code with which a sweep that is changed so goes on. */
static int goes_on(json_t *record, int64_t repeat, bool on_best, const char *last,
		   const char *digest)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *sweep = sweep_of(repeat, on_best, last);

	return sweep_record_go_on(record, sweep, digest, &err) < 0 ? (int)err->code : 0;
}

static void test_going_on(void **state)
{
	json_auto_t *record = record_of("s", 2, false);
	const json_t *first = json_array_get(json_object_get(record, "cells"), 0);

	(void)state;
	assert_int_equal(goes_on(record, 2, false, "env.X=1", "abc"), 0);
	assert_int_equal(goes_on(record, 2, false, "env.X=2", "abc"), EXIT_SPEC);
	assert_int_equal(goes_on(record, 2, true, "env.X=1", "abc"), EXIT_SPEC);
	assert_int_equal(goes_on(record, 2, false, "env.X=1", "abd"), EXIT_SPEC);
	assert_int_equal(goes_on(record, 1, false, "env.X=1", "abc"), EXIT_SPEC);
	assert_int_equal(goes_on(record, 3, false, "env.X=1", "abc"), 0);
	assert_int_equal(json_array_size(json_object_get(first, "runs")), 3);
}

/* A limit that the spec has no more is none. */
static void test_limits_go(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *record = record_of("s", 1, false), *sweep = sweep_of(1, false, "env.X=1");

	(void)state;
	js_put(sweep, "cost", json_real(3));
	assert_int_equal(sweep_record_go_on(record, sweep, "abc", &err), 0);
	assert_true(js_real(record, "cost", 0) == 3);
	json_object_del(sweep, "cost");
	assert_int_equal(sweep_record_go_on(record, sweep, "abc", &err), 0);
	assert_null(json_object_get(record, "cost"));
}

static void test_kept(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *record = record_of("s", 1, false), *read = NULL;
	AUTO(auto_free) char *path = mem_format("%s/sweeps/s.json", dir);
	struct stat st;

	(void)state;
	assert_int_equal(sweep_record_read(journal, "s", &read, &err), 0);
	assert_int_equal(sweep_record_read(journal, "@last", &read, &err), 0);
	assert_int_equal(sweep_record_read(journal, "../s", &read, &err), 0);
	assert_int_equal(sweep_record_write(journal, record, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(sweep_record_read(journal, "s", &read, &err), 1);
	assert_true(json_equal(record, read));
}

/* A record that is cut, or another's, is told and not taken. */
static void test_damaged(void **state)
{
	static const char *const bad[] = { "", "{\"v\":1,\"swe", "[]",
					   "{\"sweep\":\"t\",\"cells\":[]}", "{\"sweep\":\"s\"}" };
	AUTO(auto_free) char *folder = mem_format("%s/sweeps", dir);
	AUTO(auto_free) char *path = mem_format("%s/sweeps/s.json", dir);
	AUTO(err_freep) struct err *made = NULL;

	(void)state;
	assert_int_equal(fs_mkdirs(folder, &made), 0);
	for (size_t i = 0; i < STK_LENGTH(bad); i++) {
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *read = NULL;

		assert_int_equal(fs_write_atomic(path, bad[i], strlen(bad[i]), 0600, &err), 0);
		assert_int_equal(sweep_record_read(journal, "s", &read, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_true(err->damage);
		assert_null(read);
	}
}

/* The record is an object among the others on a state that machines share. */
static void test_in_a_store(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *url = mem_format("dir:%s/shared", dir);
	AUTO(journal_freep) struct journal *shared = NULL;
	json_auto_t *record = record_of("s", 1, false), *read = NULL, *runs = json_array();

	(void)state;
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &shared, &err), 0);
	assert_int_equal(sweep_record_read(shared, "s", &read, &err), 0);
	assert_int_equal(sweep_record_write(shared, record, &err), 0);
	js_put(record, "repeat", json_integer(2));
	assert_int_equal(sweep_record_write(shared, record, &err), 0);
	assert_int_equal(sweep_record_read(shared, "s", &read, &err), 1);
	assert_true(json_equal(record, read));
	assert_int_equal(journal_runs(shared, runs, &err), 0);
	assert_int_equal(json_array_size(runs), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_open_cells, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_going_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limits_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_in_a_store, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
