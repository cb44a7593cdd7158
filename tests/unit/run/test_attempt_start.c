/* How the beginning of an attempt is told, and what is told before it. See
 * jobs/run/attempt/attempt_start.c. */
#include "watched_fixture.h"

#include "jobs/run/attempt/versions.h"
#include "jobs/store/store_backend.h"

#define TRAINS   "{'nodes':1,'metrics':[{'name':'step','regex':'step ([0-9]+)'}]}"
#define COMPILES "{'nodes':2,'compile':{'kind':'jax'},'metrics':[]}"

/* ---- beginning of an attempt ---- */

static void the_beginning_is_told_once_it_is_known(void **state)
{
	(void)state;
	begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	look();
	seen.started.ms = 1;
	driver.flow.claimed = false;
	look();
	driver.flow.claimed = driver.flow.started = true;
	look();
	assert_told("");
	driver.flow.started = false;
	look();
	assert_told("attempt.started");
	assert_int_equal(newest_int("attempt.started", "started"), 1);
	assert_int_equal(newest_int("attempt.started", "attempt"), 1);
	end();
}

/* A folder of the kernel's is one of a file system that syncs none. */
static void a_place_that_cannot_be_synced_is_named_at_the_first_attempt(void **state)
{
	static const struct {
		const char *url;
		int precompiles, trainings;
		bool told;
	} rows[] = {
		{ "/proc", 0, 1, true },  { "/proc", 1, 0, true }, { "/proc", 1, 1, false },
		{ "/proc", 0, 2, false }, { "/tmp", 0, 1, false }, { "s3://b/x", 0, 1, false },
		{ "proc", 0, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *plan = mem_format("{'nodes':1,'metrics':[],'checkpoint':{'url':'%s'}}",
					rows[i].url);
		struct attempt_watch *watch = begin_seen(PHASE_TRAIN, plan, ENGINE_RUNNING);
		AUTO(err_freep) struct err *err = NULL;

		driver.flow.attempts[PHASE_PRECOMPILE] = rows[i].precompiles;
		driver.flow.attempts[PHASE_TRAIN] = rows[i].trainings;
		assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
		assert_told(rows[i].told ? "environment.checked attempt.started"
					 : "attempt.started");
		if (rows[i].told) {
			assert_string_equal(newest("environment.checked", "reason"),
					    "the file system of '/proc' cannot sync folders");
			assert_string_equal(newest("environment.checked", "hint"),
					    "a power cut of its server may take away files that "
					    "were written last; checkpoints and graphs are checked "
					    "again before they are used");
			assert_null(newest_value("environment.checked", "node"));
		}
		end();
	}
}

static void the_cache_is_such_a_place_too(void **state)
{
	struct store fake = { .directory = (char[]){ "/proc" } };
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TRAINS, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.cache = &fake;
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("environment.checked attempt.started");
	driver.cache = NULL;
	end();
}

#define OTHER "'compiler':{'changed':[{'field':'jax','old':'1','new':'2'}],'pair':'p'}"

static void compilers_and_variables_are_told_before_the_beginning(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, COMPILES, ENGINE_RUNNING);

	(void)state;
	driver.flow.policy.compiles = true;
	report(0, "'host':'a'");
	report(1, "'environment':{'withheld':['A'],'image_known':true}," OTHER);
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("environment.checked compiler.checked attempt.started");
	assert_int_equal(newest_int("environment.checked", "node"), 1);
	assert_int_equal(newest_int("compiler.checked", "node"), 1);
	assert_int_equal(json_array_size(newest_value("compiler.checked", "changed")), 1);
	end();
	/* by the first node that has something to say of each */
	watch = begin_seen(PHASE_TRAIN, COMPILES, ENGINE_RUNNING);
	driver.flow.policy.compiles = true;
	report(0, "'environment':{'withheld':['A'],'image_known':true}");
	report(1, "'environment':{'withheld':['A'],'image_known':true}," OTHER);
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("environment.checked compiler.checked attempt.started");
	assert_int_equal(newest_int("environment.checked", "node"), 0);
	assert_int_equal(newest_int("compiler.checked", "node"), 1);
	end();
}

#define TWO "{'nodes':2,'metrics':[],'image':{'reference':'a:1','pinned':'a@sha256:0'}}"

static void versions_are_told_once_and_again_if_more_nodes_tell_them(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TWO, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *elsewhere =
		json_pack("[{s:i, s:s, s:s, s:s}, {s:i, s:s, s:s, s:n}]", "node", 1, "field", "jax",
			  "old", "1", "new", "2", "node", 1, "field", "os", "old", "x", "new");

	(void)state;
	report(0, "'versions':{'jax':'1','os':'x'}");
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("attempt.versions attempt.started");
	assert_int_equal(newest_int("attempt.versions", "nodes"), 1);
	assert_string_equal(newest("attempt.versions", "image"), "a@sha256:0");
	assert_null(newest_value("attempt.versions", "elsewhere"));
	assert_int_equal(versions_record(watch, &err), 0);
	assert_told("attempt.versions attempt.started");
	report(1, "'versions':{'jax':'2'}");
	assert_int_equal(versions_record(watch, &err), 0);
	assert_int_equal(versions_record(watch, &err), 0);
	assert_told("attempt.versions attempt.started attempt.versions");
	assert_int_equal(newest_int("attempt.versions", "nodes"), 2);
	assert_true(json_equal(newest_value("attempt.versions", "elsewhere"), elsewhere));
	assert_string_equal(newest("attempt.versions", "reason"),
			    "node 1 has jax 2 in place of 1; node 1 has os none in place of x");
	end();
}

static void an_agent_that_tells_no_versions_is_no_failure(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, TWO, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	report(0, "'host':'a'");
	report(1, "'versions':'foreign'");
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("attempt.started");
	end();
}

static void only_a_training_after_a_phase_1_is_compared(void **state)
{
	static const struct {
		const char *plan;
		enum phase phase;
		bool compiles;
		const char *told;
	} rows[] = {
		{ COMPILES, PHASE_PRECOMPILE, true, "environment.checked attempt.started" },
		{ COMPILES, PHASE_TRAIN, false, "environment.checked attempt.started" },
		{ "{'nodes':2,'metrics':[]}", PHASE_TRAIN, true, "attempt.started" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch =
			begin_seen(rows[i].phase, rows[i].plan, ENGINE_RUNNING);
		AUTO(err_freep) struct err *err = NULL;

		driver.flow.policy.compiles = rows[i].compiles;
		report(0, "'environment':{'withheld':['A'],'image_known':true}," OTHER);
		assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
		assert_told(rows[i].told);
		end();
	}
}

static void a_beginning_that_cannot_be_read_or_journalled_is_none(void **state)
{
	struct attempt_watch *watch = begin_seen(PHASE_TRAIN, COMPILES, ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	driver.flow.policy.compiles = true;
	said.away = true;
	assert_away(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	report(0, "'environment':{'withheld':['A'],'image_known':true}");
	driver.stood_down = true;
	assert_taken_over(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	report(0, OTHER);
	driver.stood_down = true;
	assert_taken_over(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	report(0, "'host':'a'");
	json_object_set_new(driver.plan, "checkpoint", json_pack("{s:s}", "url", "/proc"));
	driver.stood_down = true;
	assert_taken_over(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	assert_recorded(0);
	end();
}

/* A check-up that cannot be read yet is told before the beginning all the same. */
static void the_beginning_waits_for_the_check_up(void **state)
{
	struct attempt_watch *watch =
		begin_seen(PHASE_TRAIN, "{'nodes':1,'metrics':[],'health':{'ops':['all_reduce']}}",
			   ENGINE_RUNNING);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	said.away = true;
	assert_away(attempt_start_record(watch, (struct utc){ 5 }, &err), &err);
	assert_told("");
	report(0, "'health':{'verdict':'healthy','nodes':[{'node':0}]}");
	assert_int_equal(attempt_start_record(watch, (struct utc){ 5 }, &err), 0);
	assert_told("health.checked attempt.started");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_beginning_is_told_once_it_is_known),
		cmocka_unit_test(a_place_that_cannot_be_synced_is_named_at_the_first_attempt),
		cmocka_unit_test(the_cache_is_such_a_place_too),
		cmocka_unit_test(compilers_and_variables_are_told_before_the_beginning),
		cmocka_unit_test(versions_are_told_once_and_again_if_more_nodes_tell_them),
		cmocka_unit_test(an_agent_that_tells_no_versions_is_no_failure),
		cmocka_unit_test(only_a_training_after_a_phase_1_is_compared),
		cmocka_unit_test(a_beginning_that_cannot_be_read_or_journalled_is_none),
		cmocka_unit_test(the_beginning_waits_for_the_check_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
