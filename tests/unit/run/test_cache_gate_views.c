/* What the driver makes of the view of a cache: what it takes over, repairs and records before a
 * verdict, and when proved graphs count as lost. Views are the test's. See jobs/run/cache_gate.c.
 */
#include "attempt_fixture.h"

#define KEY  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PLAN "{'nodes':1,'metrics':[],'compile':{'kind':'jax','graph_key':'" KEY "'}}"
#define GONE "the network is gone"

static struct {
	enum cache_state verdict;
	size_t behind, problems;
	int behind_views; /* of the next views these are behind; the others are not */
	bool locked, changed, fails;
} says;

static int views, refreshes, repairs, loads;
static bool refresh_fails, repair_fails, check_fails;
static int found; /* manifests, by tag and by reading */
static const char *tag, *damage, *removed;
static size_t lost;

int __wrap_cache_view_make(const json_t *plan, struct cache_view *ret, struct err **err);
int __wrap_compile_manifest_refresh(struct store *store, const char *graph_key, int64_t *ret_taken,
				    struct err **err);
int __wrap_compile_manifest_repair(struct store *store, const struct compile_manifest *lock,
				   const struct lock_report *report, json_t **ret_removed,
				   struct err **err);
int __wrap_compile_manifest_tag(struct store *store, const char *graph_key, char ret_tag[STORE_TAG],
				struct err **err);
int __wrap_compile_manifest_load(struct store *store, const char *graph_key,
				 struct compile_manifest **ret, char **ret_damage,
				 struct err **err);
int __wrap_compile_manifest_check_sizes(struct store *store, const struct compile_manifest *lock,
					struct lock_report *ret, struct err **err);

static struct compile_manifest *manifest(void)
{
	struct compile_manifest *lock = mem_zero(1, sizeof *lock);

	memcpy(lock->graph_key, KEY, sizeof KEY);
	lock->count = 3;
	lock->graphs = mem_zero(3, sizeof *lock->graphs);
	for (int i = 0; i < 3; i++)
		lock->graphs[i].key = mem_format("g%d", i);
	return lock;
}

int __wrap_cache_view_make(const json_t *plan, struct cache_view *ret, struct err **err)
{
	(void)plan;
	views++;
	if (says.fails)
		return err_set(err, EXIT_UNREACHABLE, GONE);
	*ret = (struct cache_view){ .verdict = says.verdict, .graphs = 3 };
	ret->reason = mem_copy("as it is");
	ret->lock = says.locked ? manifest() : NULL;
	ret->report.behind = says.behind_views-- > 0 ? says.behind : 0;
	ret->report.count = says.problems;
	ret->changed = quoted_json(says.changed ? "[{'field':'b'}]" : "[]");
	return 0;
}

int __wrap_compile_manifest_refresh(struct store *store, const char *graph_key, int64_t *ret_taken,
				    struct err **err)
{
	(void)store;
	assert_string_equal(graph_key, KEY);
	refreshes++;
	*ret_taken = 2;
	return refresh_fails ? err_set(err, EXIT_UNREACHABLE, GONE) : 0;
}

int __wrap_compile_manifest_repair(struct store *store, const struct compile_manifest *lock,
				   const struct lock_report *report, json_t **ret_removed,
				   struct err **err)
{
	(void)store, (void)lock;
	assert_true(report->count > 0);
	repairs++;
	*ret_removed = quoted_json(removed);
	return repair_fails ? err_set(err, EXIT_UNREACHABLE, GONE) : 0;
}

int __wrap_compile_manifest_tag(struct store *store, const char *graph_key, char ret_tag[STORE_TAG],
				struct err **err)
{
	(void)store;
	assert_string_equal(graph_key, KEY);
	memset(ret_tag, 0, STORE_TAG);
	snprintf(ret_tag, STORE_TAG, "%s", tag);
	return found < 0 ? err_set(err, EXIT_UNREACHABLE, GONE) : found;
}

int __wrap_compile_manifest_load(struct store *store, const char *graph_key,
				 struct compile_manifest **ret, char **ret_damage, struct err **err)
{
	(void)store, (void)graph_key;
	loads++;
	if (found < 0)
		return err_set(err, EXIT_UNREACHABLE, GONE);
	*ret = found > 0 ? manifest() : NULL;
	*ret_damage = damage ? mem_copy(damage) : NULL;
	return found;
}

int __wrap_compile_manifest_check_sizes(struct store *store, const struct compile_manifest *lock,
					struct lock_report *ret, struct err **err)
{
	(void)store, (void)lock;
	if (check_fails)
		return err_set(err, EXIT_UNREACHABLE, GONE);
	ret->count = lost;
	ret->problems = mem_zero(2, sizeof *ret->problems);
	ret->problems[0].graph = 1;
	ret->problems[0].fault = LOCK_TRUNCATED;
	ret->problems[0].size = 7;
	return 0;
}

static void begin_view(void)
{
	AUTO(auto_free) char *cache = NULL;
	AUTO(err_freep) struct err *err = NULL;

	(void)begin(PHASE_PRECOMPILE, PLAN);
	cache = mem_format("%s/cache", dir);
	assert_int_equal(store_open(cache, &driver.cache, &err), 0);
	memset(&says, 0, sizeof says);
	says.verdict = CACHE_COLD;
	views = refreshes = repairs = loads = 0;
	refresh_fails = repair_fails = check_fails = false;
	found = 1;
	tag = "t1";
	damage = NULL;
	removed = "[]";
	lost = 0;
}

static void fails_as(int result, struct err **err, const char *words)
{
	assert_int_equal(result, -1);
	assert_string_equal((*err)->message, words);
	err_freep(err);
	assert_recorded(0);
}

/* ---- views before phase 1 ---- */

static void check(void)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(cache_gate_check(&driver, &err), 0);
}

static void a_verdict_is_recorded_with_what_it_rests_on(void **state)
{
	(void)state;
	begin_view();
	check();
	assert_string_equal(newest("cache.checked", "verdict"), "cold");
	assert_string_equal(newest("cache.checked", "graph_key"), KEY);
	assert_string_equal(newest("cache.checked", "reason"), "as it is");
	assert_null(newest_value("cache.checked", "graphs"));
	assert_null(newest_value("cache.checked", "changed"));
	says.verdict = CACHE_WARM;
	says.locked = says.changed = true;
	check();
	assert_string_equal(newest("cache.checked", "verdict"), "warm");
	assert_int_equal(newest_int("cache.checked", "graphs"), 3);
	assert_int_equal(json_array_size(newest_value("cache.checked", "changed")), 1);
	assert_int_equal(refreshes, 0);
	end();
}

static void what_others_proved_is_taken_over_in_a_few_rounds(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *words = NULL;

	(void)state;
	begin_view();
	says.locked = true;
	says.behind = 1;
	says.behind_views = 7;
	check();
	assert_int_equal(refreshes, 7);
	assert_int_equal(views, 8);
	assert_string_equal(newest("cache.checked", "reason"),
			    "as it is; entries compiled anew, taken over from other compile "
			    "manifests: 14");
	end();
	begin_view();
	words = mem_format("the compile cache '%s/cache' keeps changing", dir);
	says.locked = true;
	says.behind = 1;
	says.behind_views = 8;
	assert_int_equal(cache_gate_check(&driver, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_string_equal(err->hint, "wait until other runs have compiled, then resume this one");
	fails_as(-1, &err, words);
	assert_int_equal(views, 8);
	/* without a manifest there is nothing to take over */
	says.behind_views = 8;
	says.locked = false;
	check();
	assert_int_equal(refreshes, 8);
	end();
}

static void a_cache_that_cannot_be_viewed_has_no_verdict(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	begin_view();
	says.fails = true;
	fails_as(cache_gate_check(&driver, &err), &err, GONE);
	says.fails = false;
	says.locked = refresh_fails = true;
	says.behind = 1;
	says.behind_views = 1;
	fails_as(cache_gate_check(&driver, &err), &err, GONE);
	repair_fails = true;
	says.problems = 1;
	fails_as(cache_gate_check(&driver, &err), &err, GONE);
	end();
}

static void only_bad_entries_of_its_own_manifest_are_removed(void **state)
{
	static const struct {
		enum cache_state verdict;
		bool locked, compiles;
		size_t problems;
		int repairs;
	} rows[] = {
		{ CACHE_COLD, true, false, 1, 1 }, { CACHE_COLD, true, true, 1, 0 },
		{ CACHE_WARM, true, false, 1, 0 }, { CACHE_COLD, false, false, 1, 0 },
		{ CACHE_COLD, true, false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		begin_view();
		says.verdict = rows[i].verdict;
		says.locked = rows[i].locked;
		says.problems = rows[i].problems;
		driver.flow.policy.compiles = rows[i].compiles;
		removed = "[{'graph':'g'}]";
		check();
		assert_int_equal(repairs, rows[i].repairs);
		assert_recorded((size_t)rows[i].repairs + 1);
		if (rows[i].repairs)
			assert_string_equal(newest("cache.repaired", "reason"),
					    "entries of the compile manifest were damaged");
		end();
	}
}

/* ---- while another run has the claim ---- */

static bool recheck(bool mine)
{
	AUTO(err_freep) struct err *err = NULL;
	bool warm = !mine;

	if (cache_gate_recheck(&driver, mine, &warm, &err) < 0)
		fail_msg("%s", err->message);
	return warm;
}

static void the_same_manifest_is_viewed_once(void **state)
{
	(void)state;
	begin_view();
	says.locked = true;
	found = 0;
	assert_false(recheck(false));
	assert_int_equal(views, 0);
	found = 1;
	assert_false(recheck(false));
	assert_int_equal(views, 1);
	assert_false(recheck(false));
	assert_int_equal(views, 1);
	tag = "t2";
	assert_false(recheck(false));
	assert_int_equal(views, 2);
	assert_recorded(0);
	assert_int_equal(repairs, 0);
	/* except that it may be repaired by who has the claim */
	says.problems = 1;
	removed = "[{'graph':'g'}]";
	assert_false(recheck(false));
	assert_false(recheck(true));
	assert_int_equal(views, 3);
	assert_int_equal(repairs, 1);
	assert_recorded(1);
	says.verdict = CACHE_WARM;
	assert_true(recheck(true));
	assert_string_equal(newest("cache.checked", "verdict"), "warm");
	tag = "t3";
	assert_true(recheck(false));
	assert_int_equal(repairs, 1);
	end();
}

static void a_recheck_that_fails_tells_nothing(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	bool warm = true;

	(void)state;
	begin_view();
	found = -1;
	fails_as(cache_gate_recheck(&driver, true, &warm, &err), &err, GONE);
	found = 1;
	says.fails = true;
	fails_as(cache_gate_recheck(&driver, true, &warm, &err), &err, GONE);
	assert_false(warm);
	says.fails = false;
	says.locked = repair_fails = true;
	says.problems = 1;
	fails_as(cache_gate_recheck(&driver, true, &warm, &err), &err, GONE);
	end();
}

/* ---- views before a retry ---- */

static bool is_lost(void)
{
	AUTO(err_freep) struct err *err = NULL;
	bool ret = true;

	if (cache_gate_find_lost(&driver, &ret, &err) < 0)
		fail_msg("%s", err->message);
	return ret;
}

static void begin_proved(void)
{
	begin_view();
	driver.flow.policy.compiles = driver.flow.cache_proved = true;
}

static void only_what_was_proved_can_be_lost(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin_proved();
		found = 0;
		if (i == 0)
			driver.flow.policy.compiles = false;
		else
			driver.flow.cache_proved = false;
		assert_false(is_lost());
		assert_int_equal(loads, 0);
		assert_recorded(0);
		end();
	}
	begin_proved();
	assert_false(is_lost());
	assert_int_equal(loads, 1);
	assert_recorded(0);
	end();
}

static void lost_is_told(const char *reason)
{
	assert_true(is_lost());
	assert_string_equal(newest("cache.checked", "verdict"), "cold");
	assert_string_equal(newest("cache.checked", "graph_key"), KEY);
	assert_string_equal(newest("cache.checked", "reason"), reason);
	end();
}

static void what_is_lost_is_told(void **state)
{
	(void)state;
	begin_proved();
	found = 0;
	lost_is_told("the compile manifest is gone");
	begin_proved();
	found = 0;
	damage = "it is cut short";
	lost_is_told("it is cut short");
	begin_proved();
	lost = 2;
	lost_is_told("verified graphs are lost: 2 of 3: g1: 7 bytes instead of 0");
}

static void what_cannot_be_looked_at_is_not_lost(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	bool ret;

	(void)state;
	begin_proved();
	found = -1;
	fails_as(cache_gate_find_lost(&driver, &ret, &err), &err, GONE);
	found = 1;
	check_fails = true;
	fails_as(cache_gate_find_lost(&driver, &ret, &err), &err, GONE);
	assert_false(ret);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_recorded_with_what_it_rests_on),
		cmocka_unit_test(what_others_proved_is_taken_over_in_a_few_rounds),
		cmocka_unit_test(a_cache_that_cannot_be_viewed_has_no_verdict),
		cmocka_unit_test(only_bad_entries_of_its_own_manifest_are_removed),
		cmocka_unit_test(the_same_manifest_is_viewed_once),
		cmocka_unit_test(a_recheck_that_fails_tells_nothing),
		cmocka_unit_test(only_what_was_proved_can_be_lost),
		cmocka_unit_test(what_is_lost_is_told),
		cmocka_unit_test(what_cannot_be_looked_at_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
