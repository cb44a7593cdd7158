/* What is left to do after an attempt has ended, and what is said where that does not work. */
#include "attempt_fixture.h"

#define PLAN                                                                                       \
	"{'compile':{'kind':'neuron'},'metrics':[{'name':'step','regex':'step ([0-9]+)'}],"        \
	"'workspace':'/w'}"

static enum engine_state state_of_job = ENGINE_UNKNOWN;

static int describe(struct engine *of, const char *name, const char *prefix,
		    struct engine_status *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix;
	if (said.away)
		return no_answer(err);
	*ret = (struct engine_status){ .state = state_of_job, .started = { 1000 } };
	return 0;
}

/* Attempt 1 has ended, and its chores are due. */
static void owe(bool went_well)
{
	AUTO(auto_free) char *cache = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)begin(PHASE_TRAIN, PLAN);
	ops.describe = describe;
	cache = mem_format("%s/cache", dir);
	assert_int_equal(store_open(cache, &driver.cache, &err), 0);
	driver.facts.owed = (struct owed){
		.due = true, .went_well = went_well, .phase = PHASE_TRAIN, .attempt = 1
	};
}

/* Tries until the chores are given up. */
static void is_given_up(const char *reason)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
	assert_int_equal(wait_ms, 300);
	assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
	assert_int_equal(wait_ms, 600);
	assert_recorded(0);
	assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
	assert_int_equal(wait_ms, 0);
	assert_string_equal(newest("chore.failed", "reason"), reason);
	assert_int_equal(newest_int("chore.failed", "attempt"), 1);
	assert_false(driver.facts.owed.due);
}

static void what_cannot_be_read_again_is_given_up_and_named(void **state)
{
	(void)state;
	owe(false);
	said.away = true;
	is_given_up("locks of the job in the compile cache may be left: the engine does not "
		    "answer");
	end();
	owe(true);
	watch_close(&driver);
	json_object_set_new(json_array_get(json_object_get(driver.plan, "metrics"), 0), "regex",
			    json_string("step ("));
	driver.facts.owed.tries = 2;
	{
		AUTO(err_freep) struct err *err = NULL;
		int64_t wait_ms;

		assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
	}
	assert_memory_equal(newest("chore.failed", "reason"),
			    "graphs that the job compiled late may be missing in the compile "
			    "manifest: metric 'step': ",
			    strlen("graphs that the job compiled late may be missing in the "
				   "compile manifest: metric 'step': "));
	end();
}

static void a_failure_of_the_journal_is_none_of_a_chore(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	owe(false);
	said.away = driver.journal_fails = true;
	assert_away(chores_do(&driver, &wait_ms, &err), &err);
	assert_int_equal(driver.facts.owed.tries, 0);
	assert_true(driver.facts.owed.due);
	end();
}

static void a_long_log_is_read_on_in_the_next_turn(void **state)
{
	char line[1024];
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;
	int turns = 0;

	(void)state;
	owe(false);
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	for (size_t len = 0; len < (size_t)4 << 20; len += sizeof line)
		sb_add(&said.logs[0], line, sizeof line);
	do {
		assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
		assert_int_equal(driver.facts.owed.due, wait_ms > 0);
		turns++;
	} while (wait_ms > 0);
	assert_true(turns > 3);
	assert_int_equal(driver.facts.owed.tries, 0);
	assert_recorded(0);
	end();
}

/* A process that compiles may hold locks yet. */
static void no_lock_is_looked_for_before_the_job_has_ended(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	for (int ended = 0; ended < 2; ended++) {
		owe(false);
		state_of_job = ended ? ENGINE_ENDED : ENGINE_RUNNING;
		report(0, "'state':5"); /* of which is asked then */
		assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
		assert_int_equal(wait_ms, ended ? 300 : 0);
		assert_int_equal(driver.facts.owed.due, ended);
		end();
	}
	state_of_job = ENGINE_UNKNOWN;
}

static void a_run_that_has_ended_owes_nothing(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	for (int ended = 0; ended < 2; ended++) {
		owe(false);
		driver.facts.owed.due = ended;
		driver.flow.state = ended ? FLOW_ENDED : FLOW_TRAIN;
		said.away = true; /* nobody is asked */
		assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
		assert_int_equal(wait_ms, 0);
		assert_int_equal(driver.facts.owed.tries, 0);
		said.away = false;
		end();
	}
}

static void without_a_cache_there_is_nothing_to_do(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	(void)state;
	owe(true);
	store_freep(&driver.cache);
	said.away = true; /* nobody is asked */
	assert_int_equal(chores_do(&driver, &wait_ms, &err), 0);
	assert_int_equal(wait_ms, 0);
	assert_false(driver.facts.owed.due);
	assert_recorded(0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_read_again_is_given_up_and_named),
		cmocka_unit_test(a_failure_of_the_journal_is_none_of_a_chore),
		cmocka_unit_test(a_long_log_is_read_on_in_the_next_turn),
		cmocka_unit_test(no_lock_is_looked_for_before_the_job_has_ended),
		cmocka_unit_test(a_run_that_has_ended_owes_nothing),
		cmocka_unit_test(without_a_cache_there_is_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
