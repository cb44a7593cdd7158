/* Which locks are taken for an attempt's own, and that no other ever goes. */
#include "tests/unit/cache/neuron_world.h"

#include <time.h>
#include <utime.h>

#include "jobs/cache/manifest/orphaned_own_locks.h"

#define LOCK "model.hlo_module.pb.lock"

/* A lock on a graph that is not compiled, `age` seconds old. */
static void put_lock(const char *dir, const char *module, time_t age)
{
	AUTO(auto_free) char *path = mem_format("%s/" PLACE "/%s/" LOCK, dir, module);
	struct utimbuf times = { time(NULL) - age, time(NULL) - age };

	put_todo(dir, module);
	put_part(dir, module, LOCK, 0);
	assert_int_equal(utime(path, &times), 0);
}

/* Returns the locks that are removed for a command that ran from 60 s to 10 s ago. */
static json_t *clear(const struct world *world)
{
	struct orphaned_own_locks request = {
		.kind = world->request.kind,
		.store = world->store,
		.tally = world->tally,
		.began_ms = clock_utc_now().ms - 60000,
		.ended_ms = clock_utc_now().ms - 10000,
	};
	struct err *err = NULL;
	json_t *removed = NULL;

	orphaned_own_locks_clear(&request, &removed, &err);
	assert_no_error(err);
	return removed;
}

static void stays(void **state, const char *log, time_t age)
{
	AUTO(world_clear) struct world world = world_of(*state, log);
	json_auto_t *removed = NULL;

	put_lock(*state, MOD_A, age);
	removed = clear(&world);
	assert_int_equal(json_array_size(removed), 0);
	assert_true(has_part(*state, MOD_A, LOCK));
}

static void the_lock_of_a_graph_that_was_being_compiled_goes(void **state)
{
	AUTO(world_clear)
	struct world world = world_of(*state, N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B) N_MISS(MOD_A));
	json_auto_t *removed = NULL;
	const json_t *row;

	put_lock(*state, MOD_A, 30);
	put_lock(*state, MOD_B, 30);
	removed = clear(&world);
	assert_int_equal(json_array_size(removed), 1);
	row = json_array_get(removed, 0);
	assert_string_equal(js_str(row, "graph"), PLACE "/" MOD_A);
	assert_string_equal(js_str(row, "path"), PLACE "/" MOD_A "/" LOCK);
	assert_string_equal(js_str(row, "state"), "locked");
	assert_false(has_part(*state, MOD_A, LOCK));
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb"));
	assert_true(has_part(*state, MOD_B, LOCK));
}

static void that_a_graph_was_extracted_proves_nothing(void **state)
{
	stays(state, N_EXTRACTED(MOD_A), 30);
}

static void a_compiler_that_has_ended_holds_nothing(void **state)
{
	stays(state, N_MISS(MOD_A) N_DONE(MOD_A), 30);
}

static void nor_does_one_that_has_failed(void **state)
{
	stays(state, N_MISS(MOD_A) N_FAILED(MOD_A, "no"), 30);
}

static void who_waited_for_another_process_has_not_made_the_lock(void **state)
{
	stays(state, N_WAITING(MOD_A, "1.0") N_MISS(MOD_A), 30);
}

static void a_lock_from_before_the_attempt_is_anothers(void **state)
{
	stays(state, N_MISS(MOD_A), 3600);
}

static void a_lock_from_after_it_is_too(void **state)
{
	stays(state, N_MISS(MOD_A), 5);
}

static void that_nothing_was_found_calls_no_compiler(void **state)
{
	stays(state, "No candidate found under /cache/" PLACE "/" MOD_A "/.\n", 30);
}

static void without_times_nothing_goes(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, N_MISS(MOD_A));
	struct orphaned_own_locks request = {
		.kind = world.request.kind,
		.store = world.store,
		.tally = world.tally,
		.ended_ms = clock_utc_now().ms,
	};
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	put_lock(*state, MOD_A, 0);
	orphaned_own_locks_clear(&request, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 0);
	assert_true(has_part(*state, MOD_A, LOCK));
}

static void a_graph_that_is_done_is_not_looked_at(void **state)
{
	AUTO(world_clear) struct world world = world_of(*state, N_MISS(MOD_A));
	json_auto_t *removed = NULL;

	put_done(*state, MOD_A);
	removed = clear(&world);
	assert_int_equal(json_array_size(removed), 0);
	assert_true(has_part(*state, MOD_A, "model.done"));
}

static void only_what_was_compiled_to_its_end_is_made(void **state)
{
	AUTO(graph_tally_freep)
	struct graph_tally *tally = neuron_book_of(N_MISS(MOD_A) N_DONE(MOD_A) N_MISS(
		MOD_B) N_FAILED(MOD_B, "no") N_MISS(MOD_C) N_HIT(MOD_D));
	struct graph_tally_counts counts;

	(void)state;
	graph_tally_counts(tally, &counts);
	assert_int_equal(counts.misses, 3);
	assert_int_equal(counts.made, 1);
	assert_true(graph_tally_find(tally, MOD_C)->compiling);
	assert_false(graph_tally_find(tally, MOD_A)->compiling);
	assert_false(graph_tally_find(tally, MOD_B)->compiling);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_compiled_to_its_end_is_made),
		test_in_scratch(the_lock_of_a_graph_that_was_being_compiled_goes),
		test_in_scratch(that_a_graph_was_extracted_proves_nothing),
		test_in_scratch(a_compiler_that_has_ended_holds_nothing),
		test_in_scratch(nor_does_one_that_has_failed),
		test_in_scratch(who_waited_for_another_process_has_not_made_the_lock),
		test_in_scratch(a_lock_from_before_the_attempt_is_anothers),
		test_in_scratch(a_lock_from_after_it_is_too),
		test_in_scratch(that_nothing_was_found_calls_no_compiler),
		test_in_scratch(without_times_nothing_goes),
		test_in_scratch(a_graph_that_is_done_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
