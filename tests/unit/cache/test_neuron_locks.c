/* The verdict on graphs of a Neuron cache that are locked: by whom cannot be told, so
 * such a lock is named and never removed, and nobody waits for it for ever. */
#include "tests/unit/cache/neuron_world.h"

#include <time.h>
#include <utime.h>

static void age(const char *dir, const char *module, const char *file, time_t seconds)
{
	AUTO(auto_free) char *path = mem_format("%s/" PLACE "/%s/%s", dir, module, file);
	struct utimbuf times = { time(NULL) - seconds, time(NULL) - seconds };

	assert_int_equal(utime(path, &times), 0);
}

static void a_stale_lock_is_named_with_its_age_and_never_removed(void **state)
{
	WORLD(N_WAITING(MOD_A, "90.0"));
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	age(*state, MOD_A, "model.hlo_module.pb.lock", 3 * 3600 + 5 * 60 + 30);
	verdict = verify(&world);
	assert_false(verdict.complete);
	assert_int_equal(verdict.locked, 1);
	assert_false(verdict.retry_helps);
	assert_contains(what(&verdict, 0), "3h 05m");
	assert_contains(what(&verdict, 0), PLACE "/" MOD_A "/model.hlo_module.pb.lock");
	assert_contains(verdict.hint, "rm '");
	assert_contains(verdict.hint, "model.hlo_module.pb.lock'");
	assert_string_equal(js_str(js_path(json_array_get(verdict.problems, 0), "lock"), "key"),
			    PLACE "/" MOD_A "/model.hlo_module.pb.lock");
	cache_repair(&world.request, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 0);
	assert_true(has_part(*state, MOD_A, "model.hlo_module.pb.lock"));
}

static void a_fresh_lock_is_worth_another_try(void **state)
{
	WORLD(N_WAITING(MOD_A, "1.0"));

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	verdict = verify(&world);
	assert_int_equal(verdict.locked, 1);
	assert_true(verdict.retry_helps);
	assert_false(verdict.waits_in_vain);
	assert_contains(verdict.hint, "another job may be compiling it now");
	assert_contains(verdict.hint, "rm '");
}

/* The clock of whoever wrote it is ahead: the waiting itself tells. */
static void a_lock_that_was_waited_for_long_enough_is_stale_whatever_its_age(void **state)
{
	WORLD(N_WAITING(MOD_A, "61.0"));

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	age(*state, MOD_A, "model.hlo_module.pb.lock", -7200);
	verdict = verify(&world);
	assert_false(verdict.retry_helps);
	assert_true(verdict.waits_in_vain);
	assert_contains(verdict.hint, "its lock is 0");
}

static void what_a_stopped_job_waited_for_is_named(void **state)
{
	AUTO(auto_free) char *words = NULL;
	AUTO(auto_free) char *hint = NULL;
	struct err *err = NULL;
	WORLD(N_WAITING(MOD_A, "90.0") N_EXTRACTED(MOD_B));

	put_todo(*state, MOD_A);
	put_todo(*state, MOD_B);
	put_part(*state, MOD_B, "model.hlo_module.pb.lock", 0); /* nobody waited for it */
	assert_int_equal(cache_find_wait(&world.request, &words, &hint, &err), 0);
	assert_null(words);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	age(*state, MOD_A, "model.hlo_module.pb.lock", 3 * 3600 + 5 * 60 + 30);
	assert_int_equal(cache_find_wait(&world.request, &words, &hint, &err), 0);
	assert_no_error(err);
	assert_contains(words, "the job waited for 1h 30m for another process");
	assert_contains(words, PLACE "/" MOD_A "/model.hlo_module.pb.lock' is 3h 05m old");
	assert_contains(hint, "rm '");
	verdict = verify(&world);
}

static void a_lock_that_a_dead_worker_of_this_run_left_is_not_waited_for(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B) "sub-process 0 got exception: A process in the "
						    "process pool was terminated abruptly\n");

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	put_todo(*state, MOD_B);
	verdict = verify(&world);
	assert_int_equal(verdict.locked, 1);
	assert_int_equal(verdict.missing, 1);
	assert_false(verdict.retry_helps); /* it would hang on the lock */
	assert_contains(verdict.hint, "rm '");
}

static void all_locks_of_the_run_are_named_in_one_command(void **state)
{
	WORLD(N_EXTRACTED(MOD_A) N_EXTRACTED(MOD_B));
	AUTO(auto_free)
	char *command =
		mem_format("cd '%s/" PLACE "/' && rm '" MOD_A "/model.hlo_module.pb.lock' '" MOD_B
			   "/model.hlo_module.pb.lock'",
			   (const char *)*state);

	put_todo(*state, MOD_A);
	put_part(*state, MOD_A, "model.hlo_module.pb.lock", 0);
	put_todo(*state, MOD_B);
	put_part(*state, MOD_B, "model.hlo_module.pb.lock", 0);
	age(*state, MOD_B, "model.hlo_module.pb.lock", 3 * 3600 + 5 * 60 + 30);
	verdict = verify(&world);
	assert_contains(verdict.hint, command);
	assert_contains(verdict.hint, "the oldest of their 2 locks is 3h 05m old");
}

static void other_teams_locks_and_half_done_graphs_are_neither_counted_nor_touched(void **state)
{
	WORLD(N_EXTRACTED(MOD_A));
	json_auto_t *removed = NULL;
	struct err *err = NULL;

	put_done(*state, MOD_A);
	put_todo(*state, MOD_B);
	put_part(*state, MOD_B, "model.hlo_module.pb.lock", 0);
	put_failed(*state, MOD_C, "ERROR");
	put_part(*state, MOD_D, "model.neff", 3);
	verdict = verify(&world);
	assert_true(verdict.complete);
	assert_int_equal(verdict.graphs, 1);
	cache_repair(&world.request, &removed, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(removed), 0);
	assert_true(has_part(*state, MOD_B, "model.hlo_module.pb.lock"));
	assert_true(has_part(*state, MOD_C, "model.log"));
	assert_true(has_part(*state, MOD_D, "model.neff"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_stale_lock_is_named_with_its_age_and_never_removed),
		test_in_scratch(a_fresh_lock_is_worth_another_try),
		test_in_scratch(a_lock_that_was_waited_for_long_enough_is_stale_whatever_its_age),
		test_in_scratch(what_a_stopped_job_waited_for_is_named),
		test_in_scratch(a_lock_that_a_dead_worker_of_this_run_left_is_not_waited_for),
		test_in_scratch(all_locks_of_the_run_are_named_in_one_command),
		test_in_scratch(
			other_teams_locks_and_half_done_graphs_are_neither_counted_nor_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
