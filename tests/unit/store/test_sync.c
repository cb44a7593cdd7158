/* Bringing one directory up to another: what moves, what does not, in which order, and what
 * a kill at any moment leaves. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text.h"
#include "jobs/store/landing.h"
#include "jobs/store/sync.h"

struct fixture {
	char scratch[64];
	char *from, *to;
	struct store *source, *target;
	struct sync_options options;
	struct sync_sum sum;
	struct sb told; /* "fate key[: why]\n" */
	int calls_left; /* of progress until it says stop; -1: never */
};

static void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static void tell(void *arg, enum sync_fate fate, const char *key, uint64_t size, const char *why)
{
	static const char *const names[] = { "same", "moved", "refused", "failed" };
	struct fixture *f = arg;

	(void)size;
	sb_addf(&f->told, "%s %s%s%s\n", names[fate], key, why ? ": " : "", why ? why : "");
}

static int setup(void **state)
{
	struct fixture *f = mem_zero(1, sizeof *f);
	struct err *err = NULL;

	snprintf(f->scratch, sizeof f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	f->from = mem_format("%s/from", f->scratch);
	f->to = mem_format("%s/to", f->scratch);
	must(store_open(f->from, &f->source, &err), err);
	must(store_open(f->to, &f->target, &err), err);
	f->told = SB_INIT;
	f->options.tell = tell;
	f->options.arg = f;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	store_freep(&f->source);
	store_freep(&f->target);
	must(fs_remove_tree(f->scratch, &err), err);
	sb_release(&f->told);
	free(f->from);
	free(f->to);
	free(f);
	return 0;
}

static void write_at(const char *root, const char *key, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);
	AUTO(auto_free) char *dir = fs_dirname(path);
	FILE *file;

	must(fs_mkdirs(dir, &err), err);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

/* As long ago as lets its times speak for it. */
static void age(const char *root, const char *key)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);
	struct timespec times[2] = { { .tv_sec = 1700000000, .tv_nsec = 5 },
				     { .tv_sec = 1700000000, .tv_nsec = 5 } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void assert_file(const char *root, const char *key, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);

	must(fs_read(path, 1 << 20, &got, &err), err);
	assert_string_equal(got.text, text);
}

static bool is_there(const char *root, const char *key)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);

	return fs_exists(path);
}

static void run(struct fixture *f)
{
	AUTO(err_freep) struct err *err = NULL;

	sb_clear(&f->told);
	must(sync_run(f->source, f->target, &f->options, &f->sum, &err), err);
}

static void assert_counts(struct fixture *f, int64_t same, int64_t moved, int64_t refused,
			  int64_t failed)
{
	assert_int_equal(f->sum.objects[SYNC_SAME], same);
	assert_int_equal(f->sum.objects[SYNC_MOVED], moved);
	assert_int_equal(f->sum.objects[SYNC_REFUSED], refused);
	assert_int_equal(f->sum.objects[SYNC_FAILED], failed);
}

static ino_t inode_of(const char *root, const char *key)
{
	AUTO(auto_free) char *path = mem_format("%s/%s", root, key);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

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

/* Until what was just made is old enough to be remembered. */
static void settle(void)
{
	nanosleep(&(struct timespec){ .tv_sec = 2, .tv_nsec = 100000000 }, NULL);
}

/* How many bytes this process has read so far. */
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

/* What was moved is remembered too, with the rows of a run before around it. */
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

	/* In a walk by names "a" would come before "a-b", and its folder with it. */
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

/* --- interrupted --- */

static void make_many(struct fixture *f, int count)
{
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *key = mem_format("f%03d/x", i);

		write_at(f->from, key, key);
		age(f->from, key);
	}
}

static bool stop_soon(void *arg, const struct sync_sum *sum)
{
	struct fixture *f = arg;

	(void)sum;
	return f->calls_left < 0 || f->calls_left-- > 0;
}

static void test_what_arrived_before_a_stop_is_not_moved_again(void **state)
{
	struct fixture *f = *state;

	make_many(f, 300);
	f->options.progress = stop_soon;
	run(f);
	assert_true(f->sum.stopped);
	assert_true(f->sum.objects[SYNC_MOVED] < 300);
	for (int i = 0; i < 299 && f->sum.stopped; i++) {
		int64_t before = f->sum.objects[SYNC_MOVED] + f->sum.objects[SYNC_SAME];

		f->calls_left = i;
		run(f);
		assert_true(f->sum.objects[SYNC_SAME] <= before || !f->sum.stopped);
	}
	f->calls_left = -1;
	run(f);
	assert_counts(f, 300, 0, 0, 0);
}

/* Killed by the kernel after so many microseconds: whatever it was doing. */
static void test_a_kill_at_any_moment_leaves_nothing_half(void **state)
{
	struct fixture *f = *state;

	make_many(f, 200);
	for (long us = 200; us < 400000; us += us / 3) {
		AUTO(err_freep) struct err *err = NULL;
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0) {
			sync_run(f->source, f->target, &f->options, &f->sum, &err);
			_exit(0);
		}
		nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		for (int i = 0; i < 200; i++) {
			AUTO(auto_free) char *key = mem_format("f%03d/x", i);

			if (is_there(f->to, key))
				assert_file(f->to, key, key);
		}
		if (WIFEXITED(status))
			break;
	}
	run(f);
	assert_int_equal(f->sum.objects[SYNC_MOVED] + f->sum.objects[SYNC_SAME], 200);
	run(f);
	assert_counts(f, 200, 0, 0, 0);
}

static void test_a_torn_or_foreign_manifest_is_none(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *path = NULL;
	char sum[SHA256_HEX];
	struct stat st;

	make_many(f, 20);
	settle();
	run(f);
	sha256_hex(store_url(f->source), strlen(store_url(f->source)), sum);
	path = mem_format("%s/" STORE_RESERVED "manifest-%.16s", f->to, sum);
	for (int round = 0; round < 3; round++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(stat(path, &st), 0);
		if (round == 1)
			must(fs_write_atomic(path, "junk", 4, 0600, &err), err);
		else
			assert_int_equal(truncate(path, round == 0 ? st.st_size - 5 : 0), 0);
		run(f);
		assert_counts(f, 20, 0, 0, 0);
	}
}

static void test_what_is_being_written_by_a_dead_sync_goes_in_time(void **state)
{
	struct fixture *f = *state;

	write_at(f->from, "a/x", "1");
	write_at(f->to, "a/" STORE_RESERVED "pull-0123", "left");
	write_at(f->to, "a/" STORE_RESERVED "0123", "somebody's");
	run(f);
	/* Young ones may be somebody's who is about to lock it. */
	assert_true(is_there(f->to, "a/" STORE_RESERVED "pull-0123"));
	assert_true(is_there(f->to, "a/" STORE_RESERVED "0123"));
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
		TEST(test_what_arrived_before_a_stop_is_not_moved_again),
		TEST(test_a_kill_at_any_moment_leaves_nothing_half),
		TEST(test_a_torn_or_foreign_manifest_is_none),
		TEST(test_what_is_being_written_by_a_dead_sync_goes_in_time),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
