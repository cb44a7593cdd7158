/* What a cache holds, beside its locks: cache ls and cache verify. */
#include "tests/unit/cache/support.h"

#include "jobs/cache/verdict/listing.h"

static json_t *row_of(const json_t *rows, const char *graph)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);
		const char *name = js_str(row, "graph");

		if (name && strcmp(name, graph) == 0)
			return row;
	}
	return NULL;
}

static json_t *check(struct store *store, struct cache_check_options options,
		     struct cache_check *sum)
{
	json_t *rows = json_array();
	struct err *err = NULL;

	cache_check(store, &options, keep_row, rows, sum, &err);
	assert_no_error(err);
	return rows;
}

/* f in two locks, g in one, h in none; things that are no entries. */
static struct store *three_graphs(const char *dir)
{
	struct store *store = open_cache(dir);

	write_entry(dir, KEY_F, "f");
	write_entry(dir, KEY_G, "g");
	write_entry(dir, KEY_H, "h");
	write_text(dir, KEY_F "-atime", "12345678");
	write_text(dir, ".lockfile", "");
	write_text(dir, "other/thing", "");
	manifest_graphs(store, "vit", 1, HIT("jit_f", KEY_F) HIT("jit_g", KEY_G));
	manifest_graphs(store, "gpt", 2, HIT("jit_f", KEY_F));
	return store;
}

static void ls_shows_entries_with_the_locks_that_name_them(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	json_auto_t *rows = json_array();
	struct err *err = NULL;
	json_t *row;

	cut_entry(*state, KEY_H, 0);
	cache_list(store, keep_row, rows, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(rows), 3);
	row = row_of(rows, KEY_F);
	assert_int_equal(json_array_size(json_object_get(row, "locks")), 2);
	assert_string_equal(js_str(row, "kind"), "jax");
	assert_string_equal(js_str(row, "state"), "done");
	assert_string_equal(js_str(row, "path"), KEY_F "-cache");
	assert_int_equal(js_int(row, "size_bytes", 0), 2462);
	assert_non_null(js_str(row, "modified"));
	row = row_of(rows, KEY_H);
	assert_int_equal(json_array_size(json_object_get(row, "locks")), 0);
	assert_string_equal(js_str(row, "state"), "empty");
}

static void a_missing_cache_is_an_empty_one(void **state)
{
	AUTO(auto_free) char *dir = fs_join(*state, "none/yet");
	AUTO(store_freep) struct store *store = open_cache(dir);
	json_auto_t *rows = json_array();
	struct err *err = NULL;

	cache_list(store, keep_row, rows, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(rows), 0);
	assert_false(fs_exists(dir));
}

static void a_good_cache_checks_without_a_word(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct cache_check sum;
	json_auto_t *rows = check(store, (struct cache_check_options){ 0 }, &sum);
	json_auto_t *all = check(store, (struct cache_check_options){ .all = true }, &sum);

	assert_int_equal(json_array_size(rows), 0);
	assert_int_equal(sum.locks, 2);
	assert_int_equal(sum.graphs, 2); /* f once, though in both */
	assert_int_equal(sum.ok, 2);
	assert_int_equal(sum.others, 1);
	assert_int_equal(sum.others_bad, 0);
	assert_int_equal(json_array_size(all), 3);
	assert_string_equal(js_str(row_of(all, KEY_F), "state"), "ok");
}

static void check_names_what_is_not_as_the_locks_say(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct cache_check sum;
	json_auto_t *rows = NULL;

	remove_entry(*state, KEY_F);
	write_entry(*state, KEY_G, "x");
	cut_entry(*state, KEY_H, 0);
	write_text(*state, "stoker/" HEX_C ".json", "[]");
	rows = check(store, (struct cache_check_options){ 0 }, &sum);
	assert_int_equal(json_array_size(rows), 4);
	assert_string_equal(js_str(row_of(rows, KEY_F), "state"), "missing");
	assert_int_equal(json_array_size(json_object_get(row_of(rows, KEY_F), "locks")), 2);
	assert_string_equal(js_str(row_of(rows, KEY_G), "state"), "changed");
	assert_string_equal(js_str(row_of(rows, KEY_H), "state"), "empty");
	assert_int_equal(sum.missing, 1);
	assert_int_equal(sum.changed, 1);
	assert_int_equal(sum.others_bad, 1);
	assert_int_equal(sum.damaged_locks, 1);
	assert_string_equal(js_str(json_array_get(rows, 0), "state"), "damaged");
}

static void only_a_deep_check_reads_entries_that_no_lock_names(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct cache_check shallow, deep;
	json_auto_t *first = NULL;
	json_auto_t *second = NULL;

	cut_entry(*state, KEY_H, 100);
	first = check(store, (struct cache_check_options){ 0 }, &shallow);
	second = check(store, (struct cache_check_options){ .deep = true }, &deep);
	assert_int_equal(shallow.others_bad, 0);
	assert_int_equal(deep.others_bad, 1);
	assert_int_equal(json_array_size(first), 0);
	assert_string_equal(js_str(row_of(second, KEY_H), "state"), "partial");
}

static void one_lock_can_be_checked_alone(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	json_auto_t *ingredients = json_pack("{si}", "batch_size", 2);
	struct cache_check sum;
	json_auto_t *rows = NULL;
	char key[SHA256_HEX];

	graph_key_of(ingredients, key);
	remove_entry(*state, KEY_G); /* only in the other lock */
	rows = check(store, (struct cache_check_options){ .only = key }, &sum);
	assert_int_equal(json_array_size(rows), 0);
	assert_int_equal(sum.locks, 1);
	assert_int_equal(sum.graphs, 1);
	assert_int_equal(sum.others, 0);
}

static int stop_at_second(void *arg, const struct listing_graph *graph, struct err **err)
{
	(void)graph;
	(void)err;
	return ++*(int *)arg == 2;
}

static void a_listing_can_be_stopped(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct err *err = NULL;
	int seen = 0;

	assert_int_equal(listing_each(store, NULL, stop_at_second, &seen, &err), 0);
	assert_int_equal(seen, 2);
}

static int fail_at_once(void *arg, const struct listing_graph *graph, struct err **err)
{
	(void)arg;
	return err_set(err, EXIT_DEFECT, "stop at '%s'", graph->key);
}

static void a_listing_passes_on_the_error_of_its_reader(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(listing_each(store, jax(), fail_at_once, NULL, &err), -1);
	assert_contains(err->message, KEY_F);
}

static void kinds_find_their_own_objects_only(void **state)
{
	static const char *const others[] = {
		"",
		"-cache",
		HEX_A "-cache",
		"jit_f-cache",
		KEY_F,
		KEY_F "-atime",
		KEY_F "-cache.tmp",
		"sub/" KEY_F "-cache",
		"." KEY_F "-cache",
		"jit_f-" HEX_A "0-cache",
		"jit_f-ZZaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-cache",
	};
	struct entry_object object;

	(void)state;
	assert_true(jax()->object(KEY_F "-cache", &object));
	assert_int_equal(object.role, ROLE_COMPILED);
	assert_int_equal(object.graph.len, strlen(KEY_F));
	for (size_t i = 0; i < STK_LENGTH(others); i++)
		if (jax()->object(others[i], &object))
			fail_msg("'%s' was taken for an entry", others[i]);
	assert_false(compile_kind_find("none")->object(KEY_F "-cache", &object));
}

/* More than are judged at once, by however many threads: none is lost or told twice, and
 * they come in the order of the listing. */
static void many_entries_in_no_lock_are_judged_in_order(void **state)
{
	struct cache_check_options options = { .deep = true };
	AUTO(store_freep) struct store *store = open_cache(*state);
	json_auto_t *rows = NULL;
	struct cache_check sum;
	const char *before = "";
	size_t damaged = 0;

	for (int i = 0; i < 1500; i++) {
		AUTO(auto_free) char *key = mem_format("jit_f%04d-" HEX_A, i);

		write_entry(*state, key, "x");
		if (i % 7 == 3) {
			cut_entry(*state, key, 1000);
			damaged++;
		}
	}
	rows = check(store, options, &sum);
	assert_int_equal(sum.others, 1500);
	assert_int_equal(sum.others_bad, damaged);
	assert_int_equal(json_array_size(rows), damaged);
	for (size_t i = 0; i < damaged; i++) {
		const json_t *row = json_array_get(rows, i);
		AUTO(auto_free) char *wanted = mem_format("jit_f%04zu-" HEX_A, i * 7 + 3);

		assert_string_equal(js_str(row, "graph"), wanted);
		assert_string_equal(js_str(row, "state"), "partial");
		assert_true(strcmp(before, js_str(row, "graph")) < 0);
		before = js_str(row, "graph");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(many_entries_in_no_lock_are_judged_in_order),
		test_in_scratch(ls_shows_entries_with_the_locks_that_name_them),
		test_in_scratch(a_missing_cache_is_an_empty_one),
		test_in_scratch(a_good_cache_checks_without_a_word),
		test_in_scratch(check_names_what_is_not_as_the_locks_say),
		test_in_scratch(only_a_deep_check_reads_entries_that_no_lock_names),
		test_in_scratch(one_lock_can_be_checked_alone),
		test_in_scratch(a_listing_can_be_stopped),
		test_in_scratch(a_listing_passes_on_the_error_of_its_reader),
		cmocka_unit_test(kinds_find_their_own_objects_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
