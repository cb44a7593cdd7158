/* What may go from a cache and what may not, and that only that goes. */
#include "tests/unit/cache/gc_support.h"

#define KEY_I "jit_i-" HEX_A

static const char *action_of(const json_t *rows, const char *graph)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (strcmp(js_str(row, "graph"), graph) == 0)
			return js_str(row, "action");
	}
	return "none";
}

static void old_entry(const char *dir, const char *key, int64_t age)
{
	AUTO(auto_free) char *name = mem_format("%s-cache", key);

	write_entry(dir, key, key);
	set_age(dir, name, age);
}

/* f is in a lock, g and h are in none, h is young; things that are no entries. */
static struct store *three_graphs(const char *dir)
{
	struct store *store = open_cache(dir);

	old_entry(dir, KEY_F, 30 * DAY);
	old_entry(dir, KEY_G, 30 * DAY);
	old_entry(dir, KEY_H, DAY - HOUR);
	write_text(dir, KEY_G "-atime", "12345678");
	set_age(dir, KEY_G "-atime", 30 * DAY);
	write_text(dir, "other/thing", "");
	set_age(dir, "other/thing", 30 * DAY);
	manifest_graphs(store, "vit", 1, HIT("jit_f", KEY_F));
	return store;
}

static void without_remove_it_only_tells(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct gc_sum sum;
	json_auto_t *rows = gc(store, false, &sum);

	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(action_of(rows, KEY_G), "remove");
	assert_int_equal(sum.graphs[GC_GOES], 1);
	assert_int_equal(sum.graphs[GC_NAMED], 1);
	assert_int_equal(sum.graphs[GC_YOUNG], 1);
	assert_int_equal(sum.locks, 1);
	assert_int_equal(sum.bytes, js_int(json_array_get(rows, 0), "size_bytes", 0));
	assert_true(has_entry(*state, KEY_F) && has_entry(*state, KEY_G) &&
		    has_entry(*state, KEY_H));
}

static void only_what_is_old_and_in_no_lock_goes(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	AUTO(auto_free) char *atime = fs_join(*state, KEY_G "-atime");
	AUTO(auto_free) char *other = fs_join(*state, "other/thing");
	struct gc_sum sum;
	json_auto_t *rows = gc(store, true, &sum);

	assert_string_equal(action_of(rows, KEY_G), "removed");
	assert_false(has_entry(*state, KEY_G));
	assert_true(has_entry(*state, KEY_F) && has_entry(*state, KEY_H));
	assert_true(fs_exists(atime) && fs_exists(other));
}

static void a_graph_whose_pin_is_outdated_is_named_all_the_same(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct gc_sum sum;
	json_auto_t *rows = NULL;

	cut_entry(*state, KEY_F, 0);
	set_age(*state, KEY_F "-cache", 30 * DAY);
	rows = gc(store, true, &sum);
	assert_true(has_entry(*state, KEY_F));
	assert_int_equal(sum.graphs[GC_NAMED], 1);
}

static void failed_and_empty_entries_go_too(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct gc_sum sum;
	json_auto_t *rows = NULL;

	cut_entry(*state, KEY_G, 0);
	set_age(*state, KEY_G "-cache", 30 * DAY);
	rows = gc(store, true, &sum);
	assert_string_equal(js_str(json_array_get(rows, 0), "state"), "empty");
	assert_false(has_entry(*state, KEY_G));
}

static void refused(struct store *store, const char *name)
{
	struct gc_options options = { .now = clock_utc_now(), .older_ms = DAY, .remove = true };
	json_auto_t *rows = json_array();
	AUTO(err_freep) struct err *err = NULL;
	struct gc_sum sum;

	assert_int_equal(cache_gc(store, &options, keep_row, rows, &sum, &err), -1);
	assert_int_equal(err->code, EXIT_GATE);
	assert_contains(err->message, name);
	assert_non_null(err->hint);
	assert_int_equal(json_array_size(rows), 0);
}

static void nothing_goes_while_a_lock_cannot_be_read(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);

	write_text(*state, "stoker/" HEX_C ".json", "{");
	refused(store, "stoker/" HEX_C ".json");
	assert_true(has_entry(*state, KEY_G));
}

static void nothing_goes_while_something_stands_where_locks_do(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);

	write_text(*state, "stoker/lock.json", "{}");
	refused(store, "stoker/lock.json");
	write_text(*state, "stoker/" HEX_C ".json", "{");
	refused(store, "2 compile manifests");
	assert_true(has_entry(*state, KEY_G));
}

/* Something that happens when the row of one graph is told. */
struct meanwhile {
	struct store *store;
	const char *dir;
	const char *graph;
	void (*act)(const struct meanwhile *what);
	int rows;
};

static int act_at_row(void *arg, json_t *row, struct err **err)
{
	struct meanwhile *what = arg;
	json_auto_t *owned = row;

	(void)err;
	what->rows++;
	if (strcmp(js_str(owned, "graph"), what->graph) == 0)
		what->act(what);
	return 0;
}

/* f, g, h and i, all old and in no lock; i is the last in the order of names. */
static int gc_while(const char *dir, struct meanwhile *what, struct gc_sum *sum, struct err **err)
{
	AUTO(store_freep) struct store *store = open_cache(dir);
	struct gc_options options = { .now = clock_utc_now(), .older_ms = DAY, .remove = true };
	static const char *const keys[] = { KEY_F, KEY_G, KEY_H, KEY_I };

	for (size_t i = 0; i < STK_LENGTH(keys); i++)
		old_entry(dir, keys[i], 30 * DAY);
	what->store = store;
	what->dir = dir;
	return cache_gc(store, &options, act_at_row, what, sum, err);
}

static void lock_h_and_i(const struct meanwhile *what)
{
	manifest_graphs(what->store, "vit", 3, HIT("jit_h", KEY_H) HIT("jit_i", KEY_I));
}

static void a_lock_that_is_written_meanwhile_protects(void **state)
{
	struct meanwhile what = { .graph = KEY_G, .act = lock_h_and_i };
	struct err *err = NULL;
	struct gc_sum sum;

	gc_while(*state, &what, &sum, &err);
	assert_no_error(err);
	assert_true(has_entry(*state, KEY_H) && has_entry(*state, KEY_I));
	assert_false(has_entry(*state, KEY_F) || has_entry(*state, KEY_G));
	assert_int_equal(sum.graphs[GC_GOES], 2);
	assert_int_equal(sum.graphs[GC_NAMED], 2);
	assert_int_equal(sum.locks, 1);
}

static void damage_a_lock(const struct meanwhile *what)
{
	write_text(what->dir, "stoker/" HEX_C ".json", "{");
}

static void a_lock_that_is_damaged_meanwhile_ends_it(void **state)
{
	struct meanwhile what = { .graph = KEY_F, .act = damage_a_lock };
	AUTO(err_freep) struct err *err = NULL;
	struct gc_sum sum;

	assert_int_equal(gc_while(*state, &what, &sum, &err), -1);
	assert_contains(err->message, HEX_C);
	assert_false(has_entry(*state, KEY_F));
	assert_true(has_entry(*state, KEY_G) && has_entry(*state, KEY_H));
	assert_int_equal(sum.graphs[GC_GOES], 1); /* is told all the same */
}

/* The second look alone can tell what has become of h: the listing has seen it already when g is
 * told of. */
static void renew_h(const struct meanwhile *what)
{
	set_age(what->dir, KEY_H "-cache", 0);
}

static void a_graph_that_is_written_again_meanwhile_stays(void **state)
{
	struct meanwhile what = { .graph = KEY_G, .act = renew_h };
	struct err *err = NULL;
	struct gc_sum sum;

	gc_while(*state, &what, &sum, &err);
	assert_no_error(err);
	assert_true(has_entry(*state, KEY_H));
	assert_int_equal(sum.graphs[GC_YOUNG], 1);
	assert_int_equal(sum.graphs[GC_GOES], 3);
}

static void remove_h(const struct meanwhile *what)
{
	remove_entry(what->dir, KEY_H);
}

static void a_graph_that_somebody_else_removes_is_not_counted(void **state)
{
	struct meanwhile what = { .graph = KEY_G, .act = remove_h };
	struct err *err = NULL;
	struct gc_sum sum;

	gc_while(*state, &what, &sum, &err);
	assert_no_error(err);
	assert_int_equal(sum.graphs[GC_VANISHED], 1);
	assert_int_equal(sum.graphs[GC_GOES], 3);
	assert_int_equal(what.rows, 3);
}

static void a_time_in_the_future_is_young(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	struct gc_sum sum;
	json_auto_t *rows = NULL;

	old_entry(*state, KEY_G, -30 * DAY);
	rows = gc(store, true, &sum);
	assert_int_equal(sum.graphs[GC_YOUNG], 1);
	assert_true(has_entry(*state, KEY_G));
}

static void a_missing_cache_has_nothing_to_give(void **state)
{
	AUTO(auto_free) char *dir = fs_join(*state, "none/yet");
	AUTO(store_freep) struct store *store = open_cache(dir);
	struct gc_sum sum;
	json_auto_t *rows = gc(store, true, &sum);

	assert_int_equal(json_array_size(rows), 0);
	assert_false(fs_exists(dir));
}

static void what_is_younger_than_a_day_stays_whatever_is_asked_for(void **state)
{
	AUTO(store_freep) struct store *store = three_graphs(*state);
	struct gc_options options = { .now = clock_utc_now(), .older_ms = HOUR, .remove = true };
	json_auto_t *rows = json_array();
	struct err *err = NULL;
	struct gc_sum sum;

	cache_gc(store, &options, keep_row, rows, &sum, &err);
	assert_no_error(err);
	assert_int_equal(sum.graphs[GC_YOUNG], 1);
	assert_true(has_entry(*state, KEY_H));
	assert_false(has_entry(*state, KEY_G));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(without_remove_it_only_tells),
		test_in_scratch(what_is_younger_than_a_day_stays_whatever_is_asked_for),
		test_in_scratch(only_what_is_old_and_in_no_lock_goes),
		test_in_scratch(a_graph_whose_pin_is_outdated_is_named_all_the_same),
		test_in_scratch(failed_and_empty_entries_go_too),
		test_in_scratch(nothing_goes_while_a_lock_cannot_be_read),
		test_in_scratch(nothing_goes_while_something_stands_where_locks_do),
		test_in_scratch(a_lock_that_is_written_meanwhile_protects),
		test_in_scratch(a_lock_that_is_damaged_meanwhile_ends_it),
		test_in_scratch(a_graph_that_is_written_again_meanwhile_stays),
		test_in_scratch(a_graph_that_somebody_else_removes_is_not_counted),
		test_in_scratch(a_time_in_the_future_is_young),
		test_in_scratch(a_missing_cache_has_nothing_to_give),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
