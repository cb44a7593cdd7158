/* Which locks are cleared after an attempt, and what joins the manifest then. The cache is the
 * test's. See jobs/run/chores.c. */
#include "attempt_fixture.h"

static int clears, joins;
static int64_t cleared_from, cleared_to;
static bool clear_fails, join_fails;
static struct engine_status status;
static bool describe_fails;

int __wrap_cache_gate_clear_own_locks(struct driver *of, int64_t began_ms, int64_t ended_ms,
				      struct err **err);
int __wrap_cache_gate_join_late(struct driver *of, enum phase phase, const char *key,
				struct err **err);

int __wrap_cache_gate_clear_own_locks(struct driver *of, int64_t began_ms, int64_t ended_ms,
				      struct err **err)
{
	(void)of;
	clears++;
	cleared_from = began_ms;
	cleared_to = ended_ms;
	return clear_fails ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : 0;
}

int __wrap_cache_gate_join_late(struct driver *of, enum phase phase, const char *key,
				struct err **err)
{
	(void)of, (void)phase, (void)key;
	joins++;
	return join_fails ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : 0;
}

static int describe(struct engine *of, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	(void)of;
	assert_string_equal(name, "stk-r1-1");
	assert_string_equal(prefix, "runs/r1/train-1/");
	if (describe_fails)
		return no_answer(err);
	*ret = status;
	return 0;
}

/* Attempt 1 of two nodes has ended, and its chores are due. */
static void owe(bool went_well)
{
	AUTO(auto_free) char *cache = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)begin(PHASE_TRAIN, "{'nodes':2,'compile':{'kind':'neuron'},'metrics':[]}");
	ops.describe = describe;
	cache = mem_format("%s/cache", dir);
	assert_int_equal(store_open(cache, &driver.cache, &err), 0);
	driver.facts.owed = (struct owed){
		.due = true, .went_well = went_well, .phase = PHASE_TRAIN, .attempt = 1
	};
	status = (struct engine_status){ .state = ENGINE_ENDED,
					 .started = { 1000 },
					 .last_seen = { 5000 } };
	clears = joins = 0;
	clear_fails = join_fails = describe_fails = false;
}

static int64_t work(void)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = -1;

	assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
	return wait_ms;
}

static void locks_are_cleared_once_all_agents_have_ended(void **state)
{
	(void)state;
	owe(false);
	report(0, "'state':'ended','ended':3000");
	report(1, "'state':'ended','ended':4000");
	assert_int_equal(work(), 0);
	assert_int_equal(clears, 1);
	assert_int_equal(cleared_from, 1000);
	assert_int_equal(cleared_to, 4000); /* the last of them */
	assert_false(driver.facts.owed.due);
	assert_int_equal(joins, 0);
	end();
	owe(false);
	report(0, "'state':'ended','ended':4000");
	report(1, "'state':'ended','ended':3000");
	work();
	assert_int_equal(cleared_to, 4000);
	end();
	owe(true);
	report(0, "'state':'ended','ended':3000");
	report(1, "'state':'running'");
	assert_int_equal(work(), 0);
	assert_int_equal(clears, 0);
	assert_int_equal(joins, 1);
	end();
	owe(false);
	report(0, "'state':'failed','ended':3000");
	report(1, "'state':'ended','ended':3000");
	work();
	assert_int_equal(clears, 0);
	end();
}

/* No agent could say so, and its machine shows that nothing runs. */
static void of_a_killed_attempt_they_are_cleared_by_its_last_sign_of_life(void **state)
{
	(void)state;
	owe(true);
	status.silent = true;
	report(0, "'state':'running'");
	assert_int_equal(work(), 0);
	assert_int_equal(clears, 1);
	assert_int_equal(cleared_from, 1000);
	assert_int_equal(cleared_to, 5000);
	assert_int_equal(joins, 1);
	end();
}

static void nothing_is_cleared_while_the_job_may_run(void **state)
{
	static const enum engine_state states[] = { ENGINE_RUNNING, ENGINE_STOPPING,
						    ENGINE_UNKNOWN };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(states); i++) {
		owe(true);
		status.silent = true;
		status.state = states[i];
		assert_int_equal(work(), 0);
		assert_int_equal(clears, 0);
		assert_int_equal(joins, 1);
		end();
	}
}

static void what_fails_is_tried_again(void **state)
{
	(void)state;
	owe(true);
	status.silent = clear_fails = true;
	assert_int_equal(work(), 300);
	assert_int_equal(joins, 0);
	clear_fails = false;
	join_fails = true;
	assert_int_equal(work(), 600);
	assert_int_equal(driver.facts.owed.tries, 2);
	assert_true(driver.facts.owed.due);
	join_fails = false;
	assert_int_equal(work(), 0);
	assert_false(driver.facts.owed.due);
	assert_recorded(0);
	end();
}

static void a_chore_that_is_given_up_is_told_with_its_cure(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(err_freep) struct err *why = NULL;

	(void)state;
	owe(false);
	(void)!err_set(&why, EXIT_REFUSED, "no");
	(void)!err_hint(&why, "say yes");
	assert_int_equal(chores_fail(&driver, PHASE_PRECOMPILE, 4, "it was asked", why, &err), 0);
	assert_string_equal(newest("chore.failed", "reason"), "it was asked: no");
	assert_string_equal(newest("chore.failed", "hint"), "say yes");
	assert_string_equal(newest("chore.failed", "phase"), "precompile");
	assert_int_equal(newest_int("chore.failed", "attempt"), 4);
	driver.stood_down = true;
	assert_taken_over(chores_fail(&driver, PHASE_TRAIN, 1, "x", why, &err), &err);
	assert_recorded(1);
	/* one that stands down leaves its chores to the other driver */
	driver.stood_down = describe_fails = driver.facts.owed.due = true;
	{
		int64_t wait_ms;

		assert_int_equal(chores_do(&driver, &wait_ms, &err), -1);
	}
	assert_int_equal(driver.facts.owed.tries, 0);
	driver.stood_down = false;
	end();
}

static void what_has_no_cache_of_its_own_owes_nothing(void **state)
{
	(void)state;
	owe(true);
	driver.kind = compile_kind_find("none");
	describe_fails = true; /* nobody is asked */
	assert_int_equal(work(), 0);
	assert_false(driver.facts.owed.due);
	assert_int_equal(joins, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_are_cleared_once_all_agents_have_ended),
		cmocka_unit_test(of_a_killed_attempt_they_are_cleared_by_its_last_sign_of_life),
		cmocka_unit_test(nothing_is_cleared_while_the_job_may_run),
		cmocka_unit_test(what_fails_is_tried_again),
		cmocka_unit_test(a_chore_that_is_given_up_is_told_with_its_cure),
		cmocka_unit_test(what_has_no_cache_of_its_own_owes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
