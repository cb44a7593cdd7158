/* Several locks that name one graph: an entry that had to be compiled again has
 * other bytes, and what one job has proved of it holds for all of them. */
#include "tests/unit/cache/support.h"

#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/verdict/listing.h"

#define LOG_FG MISS("jit_f", KEY_F) MISS("jit_g", KEY_G)
#define LOG_FH HIT("jit_f", KEY_F) MISS("jit_h", KEY_H)

static json_t *ingredients_of(const char *comment)
{
	return json_pack("{s:s, s:s}", "source", comment, "kind", "jax");
}

/* Writes what a run of this source writes when its precompile job is proved. */
static struct compile_manifest *prove(struct store *store, const char *comment, const char *run,
				      const char *log, json_t **ret_refreshed)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(log);
	json_auto_t *compiler = json_pack("{s:s}", "jax", "0.10.2");
	json_auto_t *ingredients = ingredients_of(comment);
	struct lock_facts facts = { .kind = jax(),
				    .store = store,
				    .name = comment,
				    .run = run,
				    .now = { 5000 },
				    .compiler = compiler,
				    .ingredients = ingredients };
	struct compile_manifest *lock = NULL;
	struct err *err = NULL;

	compile_manifest_write(&facts, tally, &lock, ret_refreshed, &err);
	assert_no_error(err);
	return lock;
}

static struct compile_manifest *load(struct store *store, const char *key)
{
	struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *damage = NULL;
	struct err *err = NULL;

	assert_int_equal(compile_manifest_load(store, key, &lock, &damage, &err), 1);
	assert_no_error(err);
	return lock;
}

static struct lock_report check(struct store *store, const char *key)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = load(store, key);
	struct lock_report report = { 0 };
	struct err *err = NULL;

	compile_manifest_check(store, lock, &report, &err);
	assert_no_error(err);
	return report;
}

static bool is_warm(struct store *store, const char *key)
{
	AUTO(compile_manifest_report_clear) struct lock_report report = check(store, key);

	return report.warm;
}

/* Removes damage as the driver does when it begins a run. Returns how many entries were removed. */
static size_t repair(struct store *store, const char *key)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = load(store, key);
	AUTO(compile_manifest_report_clear) struct lock_report report = check(store, key);
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	compile_manifest_repair(store, lock, &report, &removed, &err);
	assert_no_error(err);
	return json_array_size(removed);
}

/* Put a lock's file back as it was before others refreshed it: as if that had
 * been cut short. */
static void put_back(struct store *store, const struct compile_manifest *lock)
{
	char tag[STORE_TAG];
	struct err *err = NULL;

	assert_int_equal(compile_manifest_tag(store, lock->graph_key, tag, &err), 1);
	assert_int_equal(compile_manifest_file_replace(store, lock, tag, &err), 1);
}

static struct cache_check verify(struct store *store, const char *only)
{
	struct cache_check_options options = { .only = only, .deep = true };
	json_auto_t *rows = json_array();
	struct cache_check sum = { 0 };
	struct err *err = NULL;

	cache_check(store, &options, keep_row, rows, &sum, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(rows), sum.missing + sum.truncated + sum.changed);
	return sum;
}

static void other_locks_take_over_what_was_compiled_again_and_proved(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *one = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *two = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *again = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *other = NULL;
	json_auto_t *none = NULL;
	json_auto_t *refreshed = NULL;

	write_entry(*state, KEY_F, "f");
	write_entry(*state, KEY_G, "g");
	write_entry(*state, KEY_H, "h");
	one = prove(store, "one", "run1", LOG_FG, NULL);
	two = prove(store, "two", "run2", LOG_FH, &none);
	assert_int_equal(json_array_size(none), 0);
	cut_entry(*state, KEY_F, 100);
	assert_int_equal(repair(store, two->graph_key), 1);
	write_entry(*state, KEY_F, "compiled once more");
	again = prove(store, "two", "run3", LOG_FH, &refreshed);
	assert_int_equal(json_array_size(refreshed), 1);
	assert_string_equal(js_str(json_array_get(refreshed, 0), "graph_key"), one->graph_key);
	assert_int_equal(js_int(json_array_get(refreshed, 0), "graphs", 0), 1);
	assert_true(is_warm(store, one->graph_key));
	assert_true(is_warm(store, two->graph_key));
	other = load(store, one->graph_key);
	assert_string_equal(other->graphs[0].proved_by, "run3");
	assert_int_equal(other->graphs[0].proved_at.ms, 5000);
	assert_string_equal(other->graphs[0].digest, again->graphs[0].digest);
	assert_null(other->graphs[1].proved_by);
	assert_string_equal(other->run, "run1");
	assert_int_equal(verify(store, NULL).graphs, 3);
	assert_int_equal(verify(store, NULL).ok, 3);
}

/* The refresh was cut short: the outdated lock has only its own word left. */
static void an_entry_that_another_lock_proves_is_behind_but_never_removed(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *one = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *two = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	struct err *err = NULL;
	int64_t taken = -1;

	write_entry(*state, KEY_F, "f");
	write_entry(*state, KEY_G, "g");
	one = prove(store, "one", "run1", LOG_FG, NULL);
	write_entry(*state, KEY_F, "compiled once more");
	two = prove(store, "two", "run2", HIT("jit_f", KEY_F), NULL);
	put_back(store, one);
	report = check(store, one->graph_key);
	assert_false(report.warm); /* that is what the lock says, to the byte */
	assert_int_equal(report.count, 0);
	assert_int_equal(report.behind, 1);
	assert_int_equal(verify(store, NULL).behind, 1);
	assert_int_equal(verify(store, NULL).ok, 2);
	assert_int_equal(verify(store, one->graph_key).ok, 2);
	assert_int_equal(repair(store, one->graph_key), 0);
	assert_true(has_entry(*state, KEY_F));
	compile_manifest_refresh(store, one->graph_key, &taken, &err);
	assert_no_error(err);
	assert_int_equal(taken, 1);
	assert_true(is_warm(store, one->graph_key));
	assert_true(is_warm(store, two->graph_key));
	compile_manifest_refresh(store, one->graph_key, &taken, &err);
	assert_no_error(err);
	assert_int_equal(taken, 0);
}

/* Two runs have found the same damage; the first has compiled and proved anew
 * before the second gets to remove it. */
static void what_was_proved_since_a_look_is_not_removed_for_what_was_seen(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *one = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *two = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	write_entry(*state, KEY_F, "f");
	write_entry(*state, KEY_G, "g");
	one = prove(store, "one", "run1", LOG_FG, NULL);
	cut_entry(*state, KEY_F, 100);
	report = check(store, one->graph_key);
	assert_int_equal(report.count, 1);
	write_entry(*state, KEY_F, "compiled once more");
	two = prove(store, "two", "run2", MISS("jit_f", KEY_F), NULL);
	compile_manifest_repair(store, one, &report, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 0);
	assert_true(is_warm(store, two->graph_key));
	assert_true(is_warm(store, one->graph_key));
}

static void bytes_that_no_job_has_proved_are_taken_over_by_nobody(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *one = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *two = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	struct err *err = NULL;
	int64_t taken = -1;

	write_entry(*state, KEY_F, "f");
	write_entry(*state, KEY_G, "g");
	one = prove(store, "one", "run1", LOG_FG, NULL);
	two = prove(store, "two", "run2", HIT("jit_f", KEY_F), NULL);
	write_entry(*state, KEY_F, "whole, and from somewhere");
	compile_manifest_refresh(store, one->graph_key, &taken, &err);
	assert_no_error(err);
	assert_int_equal(taken, 0);
	report = check(store, one->graph_key);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.behind, 0);
	assert_int_equal(verify(store, NULL).ok, 1);
	assert_int_equal(verify(store, NULL).graphs, 2);
	/* The proof of another graph makes nobody believe in this one. */
	compile_manifest_freep(&two);
	two = prove(store, "three", "run3", HIT("jit_g", KEY_G), NULL);
	assert_false(is_warm(store, one->graph_key));
	assert_int_equal(repair(store, one->graph_key), 1);
	assert_false(has_entry(*state, KEY_F));
}

/* A pin that still holds is not given up for a newer one that does not. */
static void a_pin_that_holds_stays(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(compile_manifest_freep) struct compile_manifest *one = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *two = NULL;
	json_auto_t *refreshed = NULL;
	struct err *err = NULL;

	write_entry(*state, KEY_F, "f");
	one = prove(store, "one", "run1", MISS("jit_f", KEY_F), NULL);
	two = prove(store, "two", "run2", HIT("jit_f", KEY_F), NULL);
	two->graphs[0].size++; /* as if it had been proved a moment before */
	compile_manifest_refresh_others(store, two, &refreshed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(refreshed), 0);
	assert_true(is_warm(store, one->graph_key));
}

static void a_graph_of_the_lock_that_training_had_to_compile_is_pinned_anew(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_of(MISS("jit_f", KEY_F));
	AUTO(compile_manifest_freep) struct compile_manifest *one = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *two = NULL;
	AUTO(compile_manifest_freep) struct compile_manifest *joined = NULL;
	struct lock_facts facts = {
		.kind = jax(), .store = store, .run = "trainer", .now = { 9000 }
	};
	struct err *err = NULL;
	int64_t count = -1;

	write_entry(*state, KEY_F, "f");
	write_entry(*state, KEY_G, "g");
	one = prove(store, "one", "run1", LOG_FG, NULL);
	two = prove(store, "two", "run2", HIT("jit_f", KEY_F), NULL);
	write_entry(*state, KEY_F, "compiled in training");
	compile_manifest_join_late(&facts, one->graph_key, tally, &count, &err);
	assert_no_error(err);
	assert_int_equal(count, 1);
	joined = load(store, one->graph_key);
	assert_int_equal(joined->count, 2);
	assert_false(joined->graphs[0].late);
	assert_string_equal(joined->graphs[0].proved_by, "trainer");
	assert_true(is_warm(store, one->graph_key));
	assert_true(is_warm(store, two->graph_key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(other_locks_take_over_what_was_compiled_again_and_proved),
		test_in_scratch(an_entry_that_another_lock_proves_is_behind_but_never_removed),
		test_in_scratch(what_was_proved_since_a_look_is_not_removed_for_what_was_seen),
		test_in_scratch(bytes_that_no_job_has_proved_are_taken_over_by_nobody),
		test_in_scratch(a_pin_that_holds_stays),
		test_in_scratch(a_graph_of_the_lock_that_training_had_to_compile_is_pinned_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
