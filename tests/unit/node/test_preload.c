/* Which entries of a compile cache that is larger than a node wants are fetched without a manifest.
 * The cache is told, and what would be copied is heard: nobody copies 32 GiB in a test. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/checkpoints/fetch.h"
#include "jobs/store/sync.h"

#define X4(letter)  letter letter letter letter
#define X16(letter) X4(letter) X4(letter) X4(letter) X4(letter)
#define KEY(letter) "jit_" letter "-" X16(letter) X16(letter) X16(letter) X16(letter) "-cache"
#define GIB         ((uint64_t)1 << 30)

/* An entry by its letter, with its size and the time when it was made. */
struct entry {
	const char *key;
	uint64_t size;
	int64_t at;
};

static const struct entry *told;
static size_t told_count;
static char fetched[16]; /* letters */

int __wrap_store_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		      struct err **err);
int __wrap_sync_run(struct store *from, struct store *to, const struct sync_options *options,
		    struct sync_sum *ret, struct err **err);

int __wrap_store_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		      struct err **err)
{
	(void)store, (void)prefix;
	for (size_t i = 0; i < told_count; i++) {
		const struct store_object object = { .key = told[i].key,
						     .size = told[i].size,
						     .modified = { told[i].at } };

		if (fn(arg, &object, err) != 0)
			return -1;
	}
	return 0;
}

int __wrap_sync_run(struct store *from, struct store *to, const struct sync_options *options,
		    struct sync_sum *ret, struct err **err)
{
	size_t count = 0;

	(void)from, (void)to, (void)err;
	*ret = (struct sync_sum){ 0 };
	for (size_t i = 0; i < told_count; i++)
		if (options->stage(options->arg, told[i].key) == SYNC_AT_ONCE)
			fetched[count++] = told[i].key[4];
	fetched[count] = '\0';
	return 0;
}

static const char *fetch(const struct place *place, const struct entry *entries, size_t count)
{
	AUTO(auto_free) char *cache = mem_format("dir:%s/cache", place->root);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = order_for(place, "true");

	js_put(order, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", cache));
	load(&config, place, order, "0");
	told = entries;
	told_count = count;
	fetched[0] = '\0';
	must(fetch_all(&config, &err), &err);
	return fetched;
}

static void what_fits_is_fetched_whole(void **state)
{
	static const struct entry entries[] = {
		{ KEY("a"), 10 * GIB, 1 },
		{ KEY("b"), 10 * GIB, 3 },
		{ KEY("c"), 12 * GIB, 2 },
	};

	assert_string_equal(fetch(*state, entries, STK_LENGTH(entries)), "abc");
	assert_string_equal(fetch(*state, entries, 0), "");
}

/* The last one may lead beyond it. */
static void of_more_than_32_gib_the_newest_are_fetched(void **state)
{
	static const struct entry entries[] = {
		{ KEY("a"), 1, 1 },        { KEY("b"), 20 * GIB, 5 }, { KEY("c"), 1, 2 },
		{ KEY("d"), 20 * GIB, 3 }, { KEY("e"), 1, 4 },
	};

	assert_string_equal(fetch(*state, entries, STK_LENGTH(entries)), "bde");
}

static void what_fills_32_gib_leaves_no_room(void **state)
{
	static const struct entry entries[] = {
		{ KEY("a"), 1, 1 },
		{ KEY("b"), 32 * GIB - 1, 3 },
		{ KEY("c"), 1, 2 },
	};

	assert_string_equal(fetch(*state, entries, STK_LENGTH(entries)), "bc");
}

/* The choice by name makes all nodes fetch the same. */
static void of_equally_new_ones_the_first_by_name_is_fetched(void **state)
{
	static const struct entry entries[] = {
		{ KEY("c"), 32 * GIB, 7 },
		{ KEY("a"), 32 * GIB, 7 },
		{ KEY("b"), 32 * GIB, 7 },
	};

	assert_string_equal(fetch(*state, entries, STK_LENGTH(entries)), "a");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_fits_is_fetched_whole),
		TEST(of_more_than_32_gib_the_newest_are_fetched),
		TEST(what_fills_32_gib_leaves_no_room),
		TEST(of_equally_new_ones_the_first_by_name_is_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
