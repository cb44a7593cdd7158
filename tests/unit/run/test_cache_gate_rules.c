/* What the driver makes of verdicts and of locks: what is recorded, and what is done before the
 * next look. Verdicts are the test's. See jobs/run/cache_gate.c. */
#include "attempt_clock.h"
#include "attempt_fixture.h"

#include "jobs/cache/manifest/orphaned_own_locks.h"
#include "jobs/cache/verdict/cache_verdict.h"
#include "jobs/run/journal/lease.h"

#define KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PLAN                                                                                       \
	"{'name':'n','nodes':1,'metrics':[],'image':{'reference':'i:1'},'compile':{'kind':'jax',"  \
	"'quiet_ms':7,'graph_key':'" KEY "','ingredients':{'a':1},'compiler':{'jax':'1'}}}"

int __wrap_cache_verify(const struct verify_request *request, struct cache_verdict *ret,
			struct err **err);
int __wrap_cache_repair(const struct verify_request *request, json_t **ret_removed,
			struct err **err);
enum lock_writer __wrap_compile_manifest_name_writer(const struct compile_kind *kind,
						     const struct graph_tally *tally,
						     json_t *compiler);
int __wrap_compile_manifest_write(const struct lock_facts *facts, const struct graph_tally *tally,
				  struct compile_manifest **ret, json_t **ret_refreshed,
				  struct err **err);
int __wrap_compile_manifest_withdraw(struct store *store, const char *graph_key, const char *run,
				     struct err **err);
int __wrap_orphaned_own_locks_clear(const struct orphaned_own_locks *request, json_t **ret_removed,
				    struct err **err);
int __wrap_compile_manifest_join_late(const struct lock_facts *facts, const char *graph_key,
				      const struct graph_tally *tally, int64_t *ret_joined,
				      struct err **err);

static struct verify_request asked;
static char asked_before[65]; /* its `seen_before`; empty: NULL */
static char asked_words[64];
static struct {
	bool complete, waits_in_vain, fails;
	int64_t again_ms, locked;
	const char *seen, *reason, *hint, *problems;
} verdict;

int __wrap_cache_verify(const struct verify_request *request, struct cache_verdict *ret,
			struct err **err)
{
	asked = *request;
	snprintf(asked_before, sizeof asked_before, "%s",
		 request->seen_before ? request->seen_before : "");
	snprintf(asked_words, sizeof asked_words, "%s", request->job_words);
	if (verdict.fails)
		return err_set(err, EXIT_UNREACHABLE, "the network is gone");
	*ret = (struct cache_verdict){ .complete = verdict.complete,
				       .waits_in_vain = verdict.waits_in_vain,
				       .again_ms = verdict.again_ms,
				       .graphs = 6,
				       .done = 1,
				       .failed = 2,
				       .locked = verdict.locked,
				       .missing = 3,
				       .made = 4 };
	snprintf(ret->seen, sizeof ret->seen, "%s", verdict.seen ? verdict.seen : "");
	ret->reason = verdict.reason ? mem_copy(verdict.reason) : NULL;
	ret->hint = verdict.hint ? mem_copy(verdict.hint) : NULL;
	ret->evidence = json_object();
	ret->problems = quoted_json(verdict.problems ? verdict.problems : "[]");
	return 0;
}

static const char *removed; /* JSON */
static int repairs;
static bool repair_fails;

int __wrap_cache_repair(const struct verify_request *request, json_t **ret_removed,
			struct err **err)
{
	(void)request;
	repairs++;
	if (repair_fails)
		return err_set(err, EXIT_UNREACHABLE, "the network is gone");
	*ret_removed = quoted_json(removed);
	return 0;
}

static enum lock_writer writer;

enum lock_writer __wrap_compile_manifest_name_writer(const struct compile_kind *kind,
						     const struct graph_tally *tally,
						     json_t *compiler)
{
	(void)kind, (void)tally, (void)compiler;
	return writer;
}

static int writes, withdrawals;
static bool write_fails, withdraw_fails;
static char written_key[SHA256_HEX], written_compiler[64], written_run[64], written_image[64];
static const char *refreshed; /* JSON */

int __wrap_compile_manifest_write(const struct lock_facts *facts, const struct graph_tally *tally,
				  struct compile_manifest **ret, json_t **ret_refreshed,
				  struct err **err)
{
	(void)tally;
	writes++;
	if (write_fails)
		return err_set(err, EXIT_UNREACHABLE, "the network is gone");
	*ret = mem_zero(1, sizeof **ret);
	memcpy((*ret)->graph_key, written_key, SHA256_HEX);
	*ret_refreshed = quoted_json(refreshed);
	snprintf(written_compiler, sizeof written_compiler, "%s", js_str(facts->compiler, "jax"));
	snprintf(written_run, sizeof written_run, "%s %s", facts->run, facts->name);
	snprintf(written_image, sizeof written_image, "%s", facts->image);
	assert_non_null(json_object_get(facts->ingredients, "a"));
	assert_int_equal(facts->pause.fn(facts->pause.arg, err), 0);
	return 0;
}

int __wrap_compile_manifest_withdraw(struct store *store, const char *graph_key, const char *run,
				     struct err **err)
{
	(void)store;
	withdrawals++;
	assert_string_equal(graph_key, KEY);
	assert_string_equal(run, "r1");
	return withdraw_fails ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : 0;
}

static struct orphaned_own_locks orphans;
static int clears;

int __wrap_orphaned_own_locks_clear(const struct orphaned_own_locks *request, json_t **ret_removed,
				    struct err **err)
{
	clears++;
	orphans = *request;
	if (repair_fails)
		return err_set(err, EXIT_UNREACHABLE, "the network is gone");
	*ret_removed = quoted_json(removed);
	return 0;
}

static char joined_key[SHA256_HEX];
static int joins;

int __wrap_compile_manifest_join_late(const struct lock_facts *facts, const char *graph_key,
				      const struct graph_tally *tally, int64_t *ret_joined,
				      struct err **err)
{
	(void)facts, (void)tally;
	joins++;
	*ret_joined = 1;
	snprintf(joined_key, sizeof joined_key, "%s", graph_key);
	return repair_fails ? err_set(err, EXIT_UNREACHABLE, "the network is gone") : 0;
}

static void begin_gate(void)
{
	AUTO(auto_free) char *cache = NULL;
	AUTO(err_freep) struct err *err = NULL;

	now.ms = 0;
	(void)begin(PHASE_PRECOMPILE, PLAN);
	driver.kind = compile_kind_find("jax");
	cache = mem_format("%s/cache", dir);
	assert_int_equal(store_open(cache, &driver.cache, &err), 0);
	assert_int_equal(lease_take(driver.journal, "r1", NULL, NULL, NULL, &driver.lease, &err),
			 0);
	memset(&verdict, 0, sizeof verdict);
	verdict.reason = "graphs are missing";
	removed = refreshed = "[]";
	repairs = writes = withdrawals = clears = joins = 0;
	repair_fails = write_fails = withdraw_fails = false;
	writer = WRITER_SAME;
	memcpy(written_key, KEY, sizeof KEY);
}

static void end_gate(void)
{
	now.ms = 0;
	lease_freep(&driver.lease);
	key_claim_clear(&driver.key);
	end();
}

static int64_t verify(void)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = -1;

	if (cache_gate_verify(&driver, &wait_ms, &err) < 0)
		fail_msg("%s", err->message);
	return wait_ms;
}

static void verify_fails(const char *words)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms;

	assert_int_equal(cache_gate_verify(&driver, &wait_ms, &err), -1);
	assert_string_equal(err->message, words);
}

/* ---- a look ---- */

static void a_verdict_is_asked_for_with_how_the_job_ended(void **state)
{
	(void)state;
	begin_gate();
	verdict.complete = true;
	driver.flow.compile_exit = 3;
	driver.flow.compile_failed = true;
	assert_int_equal(verify(), 0);
	assert_false(asked.job_ok);
	assert_int_equal(asked.exit_status, 3);
	assert_string_equal(asked_words, "exit 3");
	assert_int_equal(asked.quiet_ms, 7);
	assert_string_equal(asked_before, "");
	assert_int_equal(asked.seen_ago_ms, 0);
	assert_ptr_equal(asked.store, driver.cache);
	assert_ptr_equal(asked.tally, driver.watch->tally);
	{
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(asked.pause.fn(asked.pause.arg, &err), 0);
	}
	driver.flow.compile_failed = false;
	verify();
	assert_true(asked.job_ok);
	end_gate();
}

static void an_unfinished_look_is_continued(void **state)
{
	(void)state;
	begin_gate();
	now.ms = 5000;
	verdict.again_ms = 11;
	verdict.seen = "abc";
	assert_int_equal(verify(), 11);
	assert_recorded(0);
	now.ms = 5600;
	assert_int_equal(verify(), 11);
	assert_string_equal(asked_before, "abc");
	assert_int_equal(asked.seen_ago_ms, 600);
	now.ms = 5700; /* the same was seen all the time */
	verdict.seen = "abd";
	assert_int_equal(verify(), 11);
	assert_int_equal(asked.seen_ago_ms, 700);
	now.ms = 5750;
	verdict.again_ms = 0;
	assert_int_equal(verify(), 0);
	assert_string_equal(asked_before, "abd");
	assert_int_equal(asked.seen_ago_ms, 50);
	assert_false(driver.verify_pending);
	assert_recorded(1);
	verify();
	assert_string_equal(asked_before, "");
	end_gate();
}

static void a_cache_that_cannot_be_looked_at_has_no_verdict(void **state)
{
	(void)state;
	begin_gate();
	verdict.fails = true;
	verify_fails("cannot verify the compile cache: the network is gone");
	assert_recorded(0);
	end_gate();
	begin_gate();
	verdict.complete = write_fails = true;
	verify_fails("cannot write the compile manifest: the network is gone");
	assert_recorded(0);
	end_gate();
	begin_gate();
	repair_fails = true;
	verify_fails("the network is gone");
	assert_recorded(0);
	end_gate();
	/* nor one that another driver has */
	begin_gate();
	removed = "[{'graph':'g'}]";
	driver.stood_down = true;
	verify_fails("another driver took run r1 over");
	assert_recorded(0);
	end_gate();
}

/* ---- words of a verdict ---- */

static void of_an_incomplete_cache_the_first_graph_is_named(void **state)
{
	(void)state;
	begin_gate();
	verdict.reason = "graphs are missing";
	verdict.hint = "mend them";
	verdict.problems = "[{'graph':'g','what':'is not there'},{'graph':'h','what':'x'}]";
	removed = "[{'graph':'g'}]";
	verify();
	assert_string_equal(newest("cache.repaired", "reason"), "entries of this run were damaged");
	assert_string_equal(newest("cache.repaired", "graph_key"), KEY);
	assert_string_equal(newest("cache.verified", "reason"),
			    "graphs are missing: g: is not there");
	assert_string_equal(newest("cache.verified", "hint"), "mend them");
	assert_string_equal(newest("cache.verified", "graph_key"), KEY);
	assert_int_equal(newest_int("cache.verified", "attempt"), 1);
	assert_int_equal(newest_int("cache.verified", "graphs"), 6);
	assert_int_equal(newest_int("cache.verified", "done"), 1);
	assert_int_equal(newest_int("cache.verified", "failed"), 2);
	assert_int_equal(newest_int("cache.verified", "missing"), 3);
	assert_int_equal(newest_int("cache.verified", "compiled"), 4);
	assert_false(json_is_true(newest_value("cache.verified", "complete")));
	assert_null(newest_value("cache.verified", "action"));
	assert_int_equal(json_array_size(json_object_get(newest_value("cache.verified", "sources"),
							 "problems")),
			 2);
	assert_int_equal(writes, 0);
	assert_int_equal(repairs, 1);
	/* if there is one */
	verdict.problems = NULL;
	verdict.hint = NULL;
	removed = "[]";
	verify();
	assert_string_equal(newest("cache.verified", "reason"), "graphs are missing");
	assert_null(newest_value("cache.verified", "hint"));
	assert_recorded(3); /* nothing was removed */
	verdict.waits_in_vain = true;
	verify();
	assert_string_equal(newest("cache.verified", "action"), "stop");
	end_gate();
}

static void manifests_that_were_refreshed_are_counted(void **state)
{
	(void)state;
	begin_gate();
	verdict.complete = true;
	refreshed = "[{'graph_key':'x'},{'graph_key':'y'}]";
	verify();
	assert_string_equal(
		newest("cache.verified", "reason"),
		"4 compiled now, 0 found in the cache; compile manifests of other graph "
		"keys refreshed: 2");
	assert_int_equal(json_array_size(json_object_get(newest_value("cache.verified", "sources"),
							 "refreshed")),
			 2);
	assert_int_equal(repairs, 0);
	assert_int_equal(withdrawals, 0);
	assert_string_equal(written_run, "r1 n");
	assert_string_equal(written_image, "i:1");
	assert_string_equal(written_compiler, "1");
	refreshed = "[]";
	verify();
	assert_null(json_object_get(newest_value("cache.verified", "sources"), "refreshed"));
	end_gate();
}

/* A proof under the planned key may be of either compiler. */
static void a_manifest_of_another_key_takes_the_place_of_the_planned_one(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	static const char key[] = "runs/r1/precompile-1/node-0/report.json";
	static const char told[] =
		"{\"v\":1,\"compiler\":{\"found\":{\"python\":\"3.10\",\"jax\":\"2\"}}}";

	(void)state;
	begin_gate();
	ops.report = NULL;
	assert_int_equal(store_put(driver.workspace, key, told, sizeof told - 1, &err), 0);
	verdict.complete = true;
	written_key[0] = 'b';
	withdraw_fails = true;
	verify_fails("cannot write the compile manifest: the network is gone");
	withdraw_fails = false;
	verify();
	assert_int_equal(withdrawals, 2);
	assert_string_equal(newest("cache.verified", "graph_key"), written_key);
	assert_string_equal(written_compiler, "2");
	end_gate();
}

static void a_report_that_tells_no_compiler_leaves_that_of_the_plan(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	static const char key[] = "runs/r1/precompile-1/node-0/report.json";
	static const char told[] = "{\"v\":1,\"compiler\":{\"found\":{}}}";

	(void)state;
	begin_gate();
	assert_int_equal(store_put(driver.workspace, key, told, sizeof told - 1, &err), 0);
	verdict.complete = true;
	verify();
	assert_string_equal(written_compiler, "1");
	/* a report that cannot be read leaves it open */
	assert_int_equal(store_put(driver.workspace, key, "{", 1, &err), 0);
	{
		int64_t wait_ms;

		assert_int_equal(cache_gate_verify(&driver, &wait_ms, &err), -1);
	}
	assert_recorded(1);
	assert_int_equal(writes, 1);
	end_gate();
}

static void several_compilers_are_no_complete_cache(void **state)
{
	(void)state;
	begin_gate();
	verdict.complete = true;
	verdict.hint = "x";
	writer = WRITER_MIXED;
	verify();
	assert_int_equal(writes, 0);
	assert_int_equal(repairs, 1);
	assert_false(json_is_true(newest_value("cache.verified", "complete")));
	assert_string_equal(
		newest("cache.verified", "reason"),
		"the compiler was replaced while phase 1 ran: graphs of this run lie in "
		"the folders of several compiler versions");
	assert_string_equal(newest("cache.verified", "hint"),
			    "do not replace the compiler while phase 1 runs");
	end_gate();
	begin_gate();
	verdict.complete = true;
	writer = WRITER_OTHER;
	verify();
	assert_int_equal(writes, 1);
	end_gate();
}

static void locks_may_be_left_of_the_run_that_had_the_claim(void **state)
{
	static const char words[] = "run r0 had the claim on these graphs before; if that run is "
				    "dead, 'stoker stop r0' removes its compiler locks";
	static const struct {
		const char *holder, *hint, *want;
		int64_t locked;
		bool complete;
	} rows[] = {
		{ "r0", "wait", "!; else wait", 1, false },
		{ "r0", NULL, "!", 1, false },
		{ "r0", "wait", "wait", 0, false },
		{ NULL, "wait", "wait", 1, false },
		{ "r1", "wait", "wait", 1, false },
		{ "no id; rm", "wait", "wait", 1, false },
		{ "r0", "wait", "wait", 1, true },
		{ NULL, NULL, "", 1, false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *want = mem_format("%s%s", rows[i].want[0] == '!' ? words : "",
					rows[i].want + (rows[i].want[0] == '!'));

		begin_gate();
		driver.key.holder = rows[i].holder ? mem_copy(rows[i].holder) : NULL;
		verdict.reason = "x";
		verdict.hint = rows[i].hint;
		verdict.locked = rows[i].locked;
		verdict.complete = rows[i].complete;
		verify();
		assert_string_equal(newest("cache.verified", "hint"), want);
		assert_int_equal(newest_int("cache.verified", "locked"), rows[i].locked);
		end_gate();
	}
}

/* ---- locks and late graphs ---- */

static void locks_of_its_own_are_cleared_and_told(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_gate();
	driver.flow.attempt = 3;
	assert_int_equal(cache_gate_clear_own_locks(&driver, 5, 9, &err), 0);
	assert_int_equal(orphans.began_ms, 5);
	assert_int_equal(orphans.ended_ms, 9);
	assert_ptr_equal(orphans.store, driver.cache);
	assert_ptr_equal(orphans.tally, driver.watch->tally);
	assert_recorded(0);
	removed = "[{'graph':'g'},{'graph':'h'}]";
	assert_int_equal(cache_gate_clear_own_locks(&driver, 5, 9, &err), 0);
	assert_string_equal(newest("cache.repaired", "reason"),
			    "locks of graphs that precompile 3 was compiling when the last of its "
			    "processes ended: 2");
	assert_int_equal(json_array_size(newest_value("cache.repaired", "removed")), 2);
	repair_fails = true;
	assert_int_equal(cache_gate_clear_own_locks(&driver, 5, 9, &err), -1);
	assert_recorded(1);
	store_freep(&driver.cache);
	err_freep(&err);
	clears = 0;
	assert_int_equal(cache_gate_clear_own_locks(&driver, 5, 9, &err), 0);
	assert_int_equal(clears, 0);
	end_gate();
}

static void late_graphs_join_the_manifest_that_the_training_rests_on(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_gate();
	assert_int_equal(cache_gate_join_late(&driver, PHASE_TRAIN, "", &err), 0);
	assert_string_equal(joined_key, KEY);
	assert_int_equal(cache_gate_join_late(&driver, PHASE_TRAIN, "another", &err), 0);
	assert_string_equal(joined_key, "another");
	repair_fails = true;
	assert_int_equal(cache_gate_join_late(&driver, PHASE_TRAIN, "", &err), -1);
	err_freep(&err);
	json_object_del(driver.plan, "compile");
	assert_int_equal(cache_gate_join_late(&driver, PHASE_TRAIN, "", &err), 0);
	assert_int_equal(joins, 3);
	end_gate();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_asked_for_with_how_the_job_ended),
		cmocka_unit_test(an_unfinished_look_is_continued),
		cmocka_unit_test(a_cache_that_cannot_be_looked_at_has_no_verdict),
		cmocka_unit_test(of_an_incomplete_cache_the_first_graph_is_named),
		cmocka_unit_test(manifests_that_were_refreshed_are_counted),
		cmocka_unit_test(a_manifest_of_another_key_takes_the_place_of_the_planned_one),
		cmocka_unit_test(a_report_that_tells_no_compiler_leaves_that_of_the_plan),
		cmocka_unit_test(several_compilers_are_no_complete_cache),
		cmocka_unit_test(locks_may_be_left_of_the_run_that_had_the_claim),
		cmocka_unit_test(locks_of_its_own_are_cleared_and_told),
		cmocka_unit_test(late_graphs_join_the_manifest_that_the_training_rests_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
