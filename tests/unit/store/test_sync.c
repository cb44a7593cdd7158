/* Bringing one directory up to another: what moves, what does not, in which order, and what
 * a kill at any moment leaves. */
#include "sync_support.h"

static void test_what_is_missing_arrives(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "a/b/c", "deep");
	write_at(f->from, "empty", "");
	write_at(f->from, "top", "top");
	run(f);
	assert_counts(f, 0, 3, 0, 0);
	assert_int_equal(f->sum.bytes[SYNC_MOVED], 7);
	assert_true(f->sum.listed);
	assert_file(f->to, "a/b/c", "deep");
	assert_file(f->to, "empty", "");
	assert_file(f->to, "top", "top");
}

static void test_a_second_run_moves_nothing(void **state)
{
	struct fixture *f = *state;
	ino_t before;

	write_at(f->from, "a/b", "1");
	write_at(f->from, "c", "22");
	run(f);
	before = inode_of(f->to, "c");
	run(f);
	assert_counts(f, 2, 0, 0, 0);
	assert_int_equal(inode_of(f->to, "c"), before);
}

static void test_what_differs_is_replaced_and_nothing_is_deleted(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "same", "x");
	write_at(f->from, "size", "longer");
	write_at(f->from, "bytes", "abcd");
	write_at(f->to, "same", "x");
	write_at(f->to, "size", "long");
	write_at(f->to, "bytes", "abce");
	write_at(f->to, "own", "stays");
	run(f);
	assert_counts(f, 1, 2, 0, 0);
	assert_file(f->to, "size", "longer");
	assert_file(f->to, "bytes", "abcd");
	assert_file(f->to, "own", "stays");
}

static void test_a_change_of_equal_size_is_seen_on_either_side(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "k", "aaaa");
	age(f->from, "k");
	run(f);
	write_at(f->to, "k", "bbbb"); /* somebody writes into ours */
	run(f);
	assert_counts(f, 0, 1, 0, 0);
	assert_file(f->to, "k", "aaaa");
	write_at(f->from, "k", "cccc");
	age(f->from, "k"); /* as if it had not been touched */
	run(f);
	assert_counts(f, 0, 1, 0, 0);
	assert_file(f->to, "k", "cccc");
}

/* Returns how many bytes this process has read so far. */
static int64_t bytes_read(void)
{
	AUTO(auto_fclose) FILE *file = fopen("/proc/self/io", "re");
	char line[64];

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof line, file));
	assert_true(text_starts(line, "rchar: "));
	return strtoll(line + strlen("rchar: "), NULL, 10);
}

static void test_what_is_remembered_is_not_read(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *content = mem_zero(1, 1000001);
	int64_t before;

	memset(content, 'x', 1000000);
	write_at(f->from, "k", content);
	write_at(f->to, "k", content); /* the first run must compare them */
	settle();
	before = bytes_read();
	run(f);
	assert_counts(f, 1, 0, 0, 0);
	assert_true(bytes_read() - before >= 2000000);
	for (int i = 0; i < 2; i++) {
		before = bytes_read();
		run(f);
		assert_counts(f, 1, 0, 0, 0);
		assert_true(bytes_read() - before < 10000);
	}
}

/* The new content is of equal size, and dated back. */
static void test_what_is_remembered_is_not_believed_of_another_content(void **state)
{
	struct fixture *f = *state;
	const char *const sides[] = { f->to, f->from };

	write_at(f->from, "k", "aaaa");
	write_at(f->to, "k", "aaaa");
	age(f->from, "k");
	age(f->to, "k");
	settle();
	run(f);
	assert_counts(f, 1, 0, 0, 0);
	for (size_t i = 0; i < STK_LENGTH(sides); i++) {
		write_at(sides[i], "k", i == 0 ? "bbbb" : "cccc");
		age(sides[i], "k");
		run(f);
		assert_counts(f, 0, 1, 0, 0);
		assert_file(f->to, "k", i == 0 ? "aaaa" : "cccc");
	}
}

/* Moved objects are remembered too, with the rows of a run before around them. */
static void test_what_has_moved_is_remembered(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *content = mem_zero(1, 1000001);
	int64_t before;

	memset(content, 'x', 1000000);
	write_at(f->from, "b", content);
	write_at(f->from, "d", content);
	settle();
	run(f);
	write_at(f->from, "a", "1");
	write_at(f->from, "c", content);
	settle();
	run(f);
	assert_counts(f, 2, 2, 0, 0);
	before = bytes_read();
	run(f);
	assert_counts(f, 4, 0, 0, 0);
	assert_true(bytes_read() - before < 10000);
}

static void test_keys_come_in_the_order_of_their_bytes(void **state)
{
	struct fixture *f = *state;
	static const char *const keys[] = { "a-b", "a.b", "a/b",  "a/b-c", "a/b/c",
					    "a0",  "ab",  "a/b.", "a/b0",  "a+/x" };

	/* A walk by names would give "a" before "a-b", and its folder with it. */
	for (size_t i = 0; i < STK_LENGTH(keys); i++)
		if (strcmp(keys[i], "a/b") != 0)
			write_at(f->from, keys[i], keys[i]);
	write_at(f->to, "a.b", "a.b");
	write_at(f->to, "a/b/c", "a/b/c");
	write_at(f->to, "a0", "a0");
	run(f);
	assert_counts(f, 3, 6, 0, 0);
	run(f);
	assert_counts(f, 9, 0, 0, 0);
	assert_string_equal(f->told.text, "same a+/x\nsame a-b\nsame a.b\nsame a/b-c\nsame a/b.\n"
					  "same a/b/c\nsame a/b0\nsame a0\nsame ab\n");
}

static void test_only_a_prefix(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "a/1", "1");
	write_at(f->from, "b/2", "2");
	write_at(f->from, "b/3", "3");
	write_at(f->from, "c/4", "4");
	run(f);
	f->options.only = "b/";
	write_at(f->from, "b/2", "22");
	write_at(f->from, "c/4", "44");
	run(f);
	assert_counts(f, 1, 1, 0, 0);
	assert_file(f->to, "c/4", "4");
	f->options.only = NULL;
	run(f);
	assert_counts(f, 3, 1, 0, 0);
}

static void test_a_prefix_that_leads_out_is_no_prefix(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;

	f->options.only = "../from/";
	write_at(f->from, "a", "1");
	assert_int_equal(sync_run(f->source, f->target, &f->options, &f->sum, &err), -1);
}

static void test_a_dry_run_changes_nothing(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "a", "1");
	f->options.dry_run = true;
	run(f);
	assert_counts(f, 0, 1, 0, 0);
	assert_false(fs_exists(f->to));
	f->options.dry_run = false;
	run(f);
	write_at(f->from, "b", "2");
	f->options.dry_run = true;
	run(f);
	assert_counts(f, 1, 1, 0, 0);
	assert_false(is_there(f->to, "b"));
}

static void test_nothing_is_written_through_links(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *outside = mem_format("%s/outside", f->scratch);
	AUTO(auto_free) char *folder = mem_format("%s/dir", f->to);
	AUTO(auto_free) char *file = mem_format("%s/file", f->to);
	AUTO(auto_free) char *target = mem_format("%s/file", outside);

	write_at(f->from, "dir/x", "new");
	write_at(f->from, "file", "new");
	write_at(f->from, "good", "new");
	write_at(outside, "file", "old");
	write_at(f->to, "own", "1");
	assert_int_equal(symlink(outside, folder), 0);
	assert_int_equal(symlink(target, file), 0);
	run(f);
	assert_counts(f, 0, 2, 1, 0);
	assert_non_null(strstr(f->told.text, "refused dir/x: has a file or a link where"));
	assert_file(outside, "file", "old");
	assert_false(is_there(outside, "x"));
	assert_file(f->to, "file", "new");
	assert_file(f->to, "good", "new");
}

static void test_files_and_folders_in_each_others_place_are_refused(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "a/b", "1");
	write_at(f->from, "c", "2");
	write_at(f->from, "z", "3");
	write_at(f->to, "a", "file");
	write_at(f->to, "c/d", "folder");
	run(f);
	assert_counts(f, 0, 1, 2, 0);
	assert_file(f->to, "a", "file");
	assert_file(f->to, "c/d", "folder");
	assert_file(f->to, "z", "3");
}

static void test_a_directory_and_what_lies_in_it_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const places[] = { "from", "from/a", "from/new/er", "." };

	write_at(f->from, "a/b", "1");
	for (size_t i = 0; i < STK_LENGTH(places); i++) {
		AUTO(err_freep) struct err *err = NULL;
		AUTO(auto_free) char *url = mem_format("%s/%s", f->scratch, places[i]);
		AUTO(store_freep) struct store *store = NULL;

		must(store_open(url, &store, &err), err);
		assert_int_equal(sync_run(f->source, store, &f->options, &f->sum, &err), -1);
		assert_non_null(strstr(err->message, "one lies in the other"));
	}
	assert_false(is_there(f->from, "new"));
}

/* --- stages --- */

static enum sync_stage stage(void *arg, const char *key)
{
	(void)arg;
	if (text_starts(key, "last/"))
		return SYNC_LAST;
	if (strstr(key, ".lock"))
		return SYNC_NOT;
	return strcmp(fs_basename(key), "done") == 0 ? SYNC_BEHIND_FOLDER : SYNC_AT_ONCE;
}

static const char *place_of(const struct fixture *f, const char *line)
{
	const char *at = strstr(f->told.text, line);

	if (!at)
		fail_msg("'%s' is not in: %s", line, f->told.text);
	return at;
}

static void test_markers_arrive_behind_what_they_speak_for(void **state)
{
	struct fixture *f = *state;

	f->options.stage = stage;
	f->options.connections = 1;
	write_at(f->from, "a/one/done", "");
	write_at(f->from, "a/one/neff", "1");
	write_at(f->from, "a/one/x/deeper", "1");
	write_at(f->from, "a/one/y.lock", "1");
	write_at(f->from, "a/two/done", "");
	write_at(f->from, "a/two/neff", "2");
	write_at(f->from, "last/1.json", "{}");
	write_at(f->from, "z/three/done", "");
	write_at(f->from, "z/three/neff", "3");
	run(f);
	assert_counts(f, 0, 8, 0, 0);
	assert_false(is_there(f->to, "a/one/y.lock"));
	assert_true(place_of(f, "moved a/one/done") > place_of(f, "moved a/one/neff"));
	assert_true(place_of(f, "moved a/one/done") > place_of(f, "moved a/one/x/deeper"));
	assert_true(place_of(f, "moved a/two/done") > place_of(f, "moved a/two/neff"));
	assert_true(place_of(f, "moved z/three/done") > place_of(f, "moved z/three/neff"));
	assert_true(place_of(f, "moved last/1.json") > place_of(f, "moved z/three/done"));
	run(f);
	assert_counts(f, 8, 0, 0, 0);
}

static void test_a_marker_stays_behind_if_what_it_speaks_for_did_not_arrive(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *way = mem_format("%s/a/one/neff", f->to);
	AUTO(err_freep) struct err *err = NULL;

	f->options.stage = stage;
	write_at(f->from, "a/one/done", "");
	write_at(f->from, "a/one/neff", "1");
	write_at(f->from, "a/two/done", "");
	write_at(f->from, "a/two/neff", "2");
	must(fs_mkdirs(way, &err), err); /* so that the file cannot be */
	run(f);
	assert_counts(f, 0, 2, 1, 1);
	assert_false(is_there(f->to, "a/one/done"));
	assert_true(is_there(f->to, "a/two/done"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_what_is_missing_arrives),
		TEST(test_a_second_run_moves_nothing),
		TEST(test_what_differs_is_replaced_and_nothing_is_deleted),
		TEST(test_a_change_of_equal_size_is_seen_on_either_side),
		TEST(test_what_is_remembered_is_not_read),
		TEST(test_what_is_remembered_is_not_believed_of_another_content),
		TEST(test_what_has_moved_is_remembered),
		TEST(test_keys_come_in_the_order_of_their_bytes),
		TEST(test_only_a_prefix),
		TEST(test_a_prefix_that_leads_out_is_no_prefix),
		TEST(test_a_dry_run_changes_nothing),
		TEST(test_nothing_is_written_through_links),
		TEST(test_files_and_folders_in_each_others_place_are_refused),
		TEST(test_a_directory_and_what_lies_in_it_are_refused),
		TEST(test_markers_arrive_behind_what_they_speak_for),
		TEST(test_a_marker_stays_behind_if_what_it_speaks_for_did_not_arrive),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
