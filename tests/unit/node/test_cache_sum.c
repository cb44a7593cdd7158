/* Whether a compile cache has grown: what changes its sum, and what does not. */
#include "tests/unit/node/place.h"

#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/node/cache_sum.h"

static int64_t slow_ms; /* the time that each look at the clock takes */
static int64_t now_ms;

struct mono __wrap_clock_mono_now(void);

struct mono __wrap_clock_mono_now(void)
{
	now_ms += slow_ms;
	return (struct mono){ now_ms };
}

static void put(const struct place *place, const char *name, const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/cache/%s", place->root, name);

	write_file(path, text, 0600);
}

static uint64_t sum_of(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, "cache");

	return cache_sum(path);
}

/* Times as they were, so that only what the test changes is new. */
static void set_times(const struct place *place, const char *name, time_t seconds, long nanoseconds)
{
	AUTO(auto_free) char *path = mem_format("%s/cache/%s", place->root, name);
	const struct timespec times[2] = { { 1000, 0 }, { seconds, nanoseconds } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void what_a_compiler_writes_changes_it(void **state)
{
	uint64_t before, now;

	slow_ms = 0;
	put(*state, "a/b/graph", "12345");
	before = sum_of(*state);
	assert_true(before > 0);
	assert_true(sum_of(*state) == before);
	put(*state, "a/b/other", ""); /* a name */
	now = sum_of(*state);
	assert_true(now != before);
	set_times(*state, "a/b/graph", 2000, 0);
	before = sum_of(*state);
	set_times(*state, "a/b/graph", 2001, 0);
	assert_true(sum_of(*state) != before);
	set_times(*state, "a/b/graph", 2000, 1);
	assert_true(sum_of(*state) != before);
	set_times(*state, "a/b/graph", 2000, 0);
	assert_true(sum_of(*state) == before);
	put(*state, "a/b/graph", "123456"); /* a size */
	set_times(*state, "a/b/graph", 2000, 0);
	set_times(*state, "a/b", 3000, 0);
	now = sum_of(*state);
	put(*state, "a/b/graph", "1234567");
	set_times(*state, "a/b/graph", 2000, 0);
	set_times(*state, "a/b", 3000, 0);
	assert_true(sum_of(*state) != now);
}

/* Claims are renewed by waiting runs, too. */
static void our_own_locks_at_its_top_do_not(void **state)
{
	uint64_t before;

	slow_ms = 0;
	put(*state, LOCK_FOLDER "/lock", "1");
	put(*state, "a/graph", "1");
	before = sum_of(*state);
	put(*state, LOCK_FOLDER "/lock", "12");
	put(*state, LOCK_FOLDER "/claims/other", "12");
	assert_true(sum_of(*state) == before);
	put(*state, "a/" LOCK_FOLDER, "somebody's own file");
	assert_true(sum_of(*state) != before);
}

static void what_lies_deep_or_behind_a_link_is_left_alone(void **state)
{
	AUTO(auto_free) char *link = place_path(*state, "cache/link");
	AUTO(auto_free) char *elsewhere = place_path(*state, "elsewhere/graph");
	AUTO(auto_free) char *folder = place_path(*state, "elsewhere");
	uint64_t before;

	slow_ms = 0;
	write_file(elsewhere, "1", 0600);
	put(*state, "1/2/3/4/5/6/graph", "1");
	put(*state, "1/2/3/4/5/6/7/graph", "1");
	assert_int_equal(symlink(folder, link), 0);
	set_times(*state, "1/2/3/4/5/6", 1000, 0);
	set_times(*state, "1/2/3/4/5/6/7", 1000, 0);
	before = sum_of(*state);
	put(*state, "1/2/3/4/5/6/7/graph", "12345");
	set_times(*state, "1/2/3/4/5/6/7", 1000, 0);
	write_file(elsewhere, "12345", 0600);
	assert_true(sum_of(*state) == before);
	put(*state, "1/2/3/4/5/6/graph", "12345");
	set_times(*state, "1/2/3/4/5/6", 1000, 0);
	assert_true(sum_of(*state) != before);
}

/* Each look holds up the uploader. */
static void a_sum_that_takes_too_long_is_not_known(void **state)
{
	slow_ms = 0;
	put(*state, "a/graph", "1");
	put(*state, "b/graph", "1");
	slow_ms = 100;
	assert_true(sum_of(*state) > 0);
	slow_ms = 124; /* the second folder is looked at after 248 */
	assert_true(sum_of(*state) > 0);
	slow_ms = 125;
	assert_true(sum_of(*state) == 0);
	slow_ms = 250;
	assert_true(sum_of(*state) == 0);
}

static void what_cannot_be_read_is_not_known_and_an_empty_one_is(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "cache");
	AUTO(err_freep) struct err *err = NULL;

	slow_ms = 0;
	assert_true(sum_of(*state) == 0);
	must(fs_mkdirs(path, &err), &err);
	assert_true(sum_of(*state) > 0);
	must(fs_remove_tree(path, &err), &err);
	write_file(path, "no folder", 0600);
	assert_true(sum_of(*state) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_compiler_writes_changes_it),
		TEST(our_own_locks_at_its_top_do_not),
		TEST(what_lies_deep_or_behind_a_link_is_left_alone),
		TEST(a_sum_that_takes_too_long_is_not_known),
		TEST(what_cannot_be_read_is_not_known_and_an_empty_one_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
