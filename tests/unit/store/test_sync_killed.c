/* A sync that is stopped or killed at any moment, and what it finds of itself later. */
#include "sync_support.h"

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
	hash_sha256_hex(store_url(f->source), strlen(store_url(f->source)), sum);
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
		TEST(test_what_arrived_before_a_stop_is_not_moved_again),
		TEST(test_a_kill_at_any_moment_leaves_nothing_half),
		TEST(test_a_torn_or_foreign_manifest_is_none),
		TEST(test_what_is_being_written_by_a_dead_sync_goes_in_time),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
